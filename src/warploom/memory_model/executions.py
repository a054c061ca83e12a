"""Candidate executions: one path of each thread, which write each read finds, the chosen orders.

An execution's events are numbered: first one write for the initial value of each location, then the
events of the threads, thread by thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from warploom.core.lazy import cached_property
from warploom.memory_model.evaluation import Value as ModelValue
from warploom.memory_model.events import Coordinates, Event, Kind, Place, Strength
from warploom.memory_model.paths import Path
from warploom.memory_model.relations import Relation
from warploom.memory_model.values import Value, resolved

INITIAL = -1
"""The thread of the writes that stand for initial values."""

PROXIES = ("generic", "constant", "texture", "surface", "alias")
ORDERS = ("weak", "relaxed", "acquire", "release", "acq_rel", "sc")


class Unknown(Exception):
    """A value rests on a read that has no write yet."""


class ThinAir(Exception):
    """A value rests on itself."""


@dataclass(frozen=True)
class Combination:
    """One path of each thread: the events, and what does not depend on who reads from whom."""

    paths: tuple[Path, ...]
    coordinates: tuple[Coordinates, ...]
    initial: Mapping[str, int]

    @cached_property
    def events(self) -> tuple[tuple[int, Event], ...]:
        """Returns all events with their threads."""
        written = (
            (INITIAL, Event(Kind.WRITE, Strength(), Place(name, name), value, text="initial"))
            for name, value in self._locations.items()
        )
        own = ((thread, event) for thread, path in enumerate(self.paths) for event in path.events)
        return (*written, *own)

    @cached_property
    def _locations(self) -> dict[str, int]:
        """Returns the initial values of the locations that are accessed."""
        places = (event.place for path in self.paths for event in path.events)
        return {place.physical: self.initial.get(place.physical, 0) for place in places if place}

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Returns the number of the first event of each thread."""
        found, at = list[int](), len(self._locations)
        for path in self.paths:
            found.append(at)
            at += len(path.events)
        return tuple(found)

    @property
    def size(self) -> int:
        """Returns how many events there are."""
        return len(self.events)

    @cached_property
    def reads(self) -> tuple[int, ...]:
        """Returns the numbers of the reads."""
        return tuple(i for i, (_, event) in enumerate(self.events) if event.kind is Kind.READ)

    @cached_property
    def sources(self) -> Mapping[int, list[int]]:
        """Returns the writes that each read could find."""
        return {read: self._sources(read) for read in self.reads}

    def _sources(self, read: int) -> list[int]:
        """Returns the writes to a read's location, but none that its own thread makes later."""
        thread, event = self.events[read]
        assert event.place is not None
        return [
            i
            for i, (other, write) in enumerate(self.events)
            if write.kind is Kind.WRITE
            and write.place is not None
            and write.place.physical == event.place.physical
            and not (other == thread and i > read)
        ]

    @cached_property
    def static(self) -> dict[str, ModelValue]:
        """Returns the sets and relations of a model that follow from the paths alone."""
        size, events = self.size, self.events
        pairs = [(i, j) for i in range(size) for j in range(size) if i != j]
        own = {INITIAL: Coordinates(cta=INITIAL, cluster=INITIAL, gpu=INITIAL)}
        own |= dict(enumerate(self.coordinates))

        def relation(holds: _Holds) -> Relation:
            chosen = ((i, j) for i, j in pairs if holds(*events[i], *events[j]))
            return Relation.of(size, chosen)

        def scope(t: int, a: Event, u: int, b: Event) -> bool:
            if INITIAL in (t, u):
                return False
            within = own[t].within(a.strength.scope, own[u])
            return within and own[u].within(b.strength.scope, own[t])

        found: dict[str, ModelValue] = {
            "po": Relation.of(
                size, ((i, j) for i, j in pairs if i < j and events[i][0] == events[j][0] >= 0)
            ),
            "loc": relation(lambda t, a, u, b: _same(a, b, physical=True)),
            "vloc": relation(lambda t, a, u, b: _same(a, b, physical=False)),
            "scope": relation(scope),
            "same-cta": relation(lambda t, a, u, b: own[t].within("cta", own[u])),
            "id": Relation.of(size, ((i, i) for i in range(size))),
            "rmw": self._linked(lambda event: () if event.partner is None else (event.partner,)),
            "addr": self._linked(lambda event: event.address),
            "data": self._linked(lambda event: event.data),
            "ctrl": self._linked(lambda event: event.control),
            "IW": (1 << len(self._locations)) - 1,
        }
        for name, kinds in (("R", "R"), ("W", "W"), ("M", "RW"), ("F", "F"), ("B", "B")):
            found[name] = self._set(lambda event, kinds=kinds: event.kind.value in kinds)
        for order in ORDERS:
            found[order] = self._set(lambda event, order=order: event.strength.order == order)
        for proxy in PROXIES:
            found[proxy] = self._set(lambda event, proxy=proxy: event.strength.proxy == proxy)
        return found

    def _set(self, holds: _HoldsOne) -> int:
        return sum(1 << i for i, (_, event) in enumerate(self.events) if holds(event))

    def _linked(self, partners: _Partners) -> Relation:
        """Returns the pairs of events of one thread that `partners` gives by numbers there."""
        return Relation.of(
            self.size,
            (
                (self.starts[thread] + partner, i)
                for i, (thread, event) in enumerate(self.events)
                for partner in partners(event)
            ),
        )

    # ---- values -------------------------------------------------------------------------------

    def value(self, thread: int, value: Value, rf: Mapping[int, int]) -> int:
        """Returns a value of a thread where reads return what `rf` determines. Raises Unknown where
        it does not determine one, ThinAir where the value rests on itself."""
        return self._resolved(thread, value, rf, frozenset())

    def _resolved(
        self, thread: int, value: Value, rf: Mapping[int, int], asked: frozenset[int]
    ) -> int:
        if isinstance(value, int):
            return value
        start = self.starts[thread]

        def found(event: int) -> int:
            read = start + event
            if read in asked:
                raise ThinAir
            if read not in rf:
                raise Unknown
            writer, write = self.events[rf[read]]
            return self._resolved(writer, write.value, rf, asked | {read})

        return resolved(value, found)

    def possible(self, rf: Mapping[int, int]) -> bool:
        """Returns whether no condition of a path fails, as far as `rf` determines it."""
        for thread, path in enumerate(self.paths):
            for value, wanted in path.conditions:
                try:
                    if self.value(thread, value, rf) != wanted:
                        return False
                except Unknown:
                    continue
                except ThinAir:
                    return False
        return True

    def same_barrier(self, rf: Mapping[int, int]) -> Relation | None:
        """Returns the pairs of an arrival and a wait of one phase; None where a barrier waits for
        threads that never come, or two for each other."""
        phases: dict[tuple[object, ...], list[int]] = {}
        counts: dict[tuple[object, ...], int | None] = {}
        passed: dict[tuple[object, ...], int] = {}
        for i, (thread, event) in enumerate(self.events):
            if event.arrival is None:
                continue
            arrival, own = event.arrival, self.coordinates[thread]
            number = self.value(thread, arrival.number, rf)
            barrier = (own.gpu, own.cta, number, arrival.instance)
            turn = passed[thread, barrier] = passed.get((thread, barrier), 0) + 1
            phases.setdefault((barrier, turn), []).append(i)
            count = arrival.count
            counts[barrier, turn] = None if count is None else self.value(thread, count, rf)
        for phase, arrived in phases.items():
            count = counts[phase]
            if count is not None and len(arrived) != count:
                return None
        if not self._can_end(list(phases.values())):
            return None
        return Relation.of(
            self.size,
            (
                (i, j)
                for arrived in phases.values()
                for i in arrived
                for j in arrived
                if i != j and _waits(self.events[j][1])
            ),
        )

    def _can_end(self, phases: Sequence[Sequence[int]]) -> bool:
        """Returns whether no two phases of barriers each begin after the other."""
        phase_of = {event: phase for phase, arrived in enumerate(phases) for event in arrived}
        behind = (
            (phase_of[i], phase_of[j])
            for i in phase_of
            for j in phase_of
            if i < j and self.events[i][0] == self.events[j][0] and _waits(self.events[i][1])
        )
        return Relation.of(len(phases), behind).is_acyclic


_Holds = Callable[[int, Event, int, Event], bool]
_HoldsOne = Callable[[Event], bool]
_Partners = Callable[[Event], Iterable[int]]


def _waits(event: Event) -> bool:
    return event.arrival is not None and event.arrival.waits


def _same(first: Event, second: Event, *, physical: bool) -> bool:
    """Returns whether two accesses have the same physical location, or, unless `physical`, the same
    virtual one."""
    if first.place is None or second.place is None:
        return False
    if physical:
        return first.place.physical == second.place.physical
    return first.place.virtual == second.place.virtual


def orders(
    size: int,
    before: Relation,
    either: Relation,
    may_hold: Callable[[Relation], bool] = lambda order: True,
) -> Iterator[Relation]:
    """Yields the least transitive orders with all pairs of `before`, in which each pair of `either`
    goes one way or the other; none where `before` has a cycle. `may_hold(order)` says of the
    beginning of an order whether any that has more pairs is wanted."""
    order = before.closure()
    if order.is_irreflexive:
        open_pairs = [(i, j) for i, j in (either | either.inverse()).pairs if i < j]
        yield from _oriented(size, order, open_pairs, may_hold)


def _oriented(
    size: int,
    order: Relation,
    open_pairs: Sequence[tuple[int, int]],
    may_hold: Callable[[Relation], bool],
) -> Iterator[Relation]:
    left = [(i, j) for i, j in open_pairs if not (order.rows[i] >> j | order.rows[j] >> i) & 1]
    if not left:
        yield order
    elif may_hold(order):
        i, j = left[0]
        for pair in ((i, j), (j, i)):
            extended = (order | Relation.of(size, (pair,))).closure()
            yield from _oriented(size, extended, left[1:], may_hold)
