"""The outcomes that a memory model allows for a program, with an execution that leads to each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product as choices

from warploom.core.errors import WarploomError
from warploom.memory_model.cat import Model
from warploom.memory_model.evaluation import Evaluation
from warploom.memory_model.events import Coordinates, Kind
from warploom.memory_model.executions import Combination, ThinAir, orders
from warploom.memory_model.paths import Path, paths_of
from warploom.memory_model.relations import Relation

ROUNDS = 2
"""How often a path may come to any place of a program, by default."""

MOST = 20_000
"""So many beginnings of executions are looked at: seconds to minutes, by their events."""

PRUNE = 8
"""Where so many ways to choose the rest are left, a beginning is held against the model first."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of a program: its name, where it runs, what it does (`paths`)."""

    name: str
    coordinates: Coordinates
    run: Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Observed:
    """Names a register or location whose final value is reported: a register of thread `thread`, or
    the memory location `name` where that is None."""

    label: str
    name: str
    thread: int | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """Threads, the initial values of locations (0 where none is given), and what is observed."""

    name: str
    threads: tuple[Thread, ...]
    initial: Mapping[str, int]
    observed: tuple[Observed, ...]


State = tuple[int, ...]
"""The values of what a program observes, in that order."""


@dataclass(frozen=True, slots=True)
class Witness:
    """An execution: its events, which write each read finds, the coherence and fence orders."""

    combination: Combination
    rf: Mapping[int, int]
    co: Relation
    fence_sc: Relation


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The final states that a model allows, an execution for each. `longer`: threads have paths
    that arrive at an instruction more often than was looked at; `stuck`: some executions wait at a
    barrier for threads that never come."""

    allowed: Mapping[State, Witness]
    longer: bool
    stuck: bool


def outcomes(program: Program, model: Model, rounds: int = ROUNDS) -> Outcomes:
    """Returns the final states that `model` allows for a program, of paths that arrive at any
    instruction at most `rounds` times. Raises WarploomError where the model is none, and where the
    program has too many executions."""
    search = _Search(program, model)
    longer = False
    paths: list[list[Path]] = []
    for thread in program.threads:
        found, more = paths_of(thread.run, rounds)
        paths.append(found)
        longer |= more
    for chosen in choices(*paths):
        search.combine(chosen)
    return Outcomes(search.allowed, longer, search.stuck)


class _Search:
    """The executions of a program, one combination of paths at a time."""

    def __init__(self, program: Program, model: Model) -> None:
        self.allowed: dict[State, Witness] = {}
        self.stuck = False
        self._seen = 0
        self._program, self._model = program, model

    def combine(self, paths: Sequence[Path]) -> None:
        """Adds the outcomes of one path of each thread."""
        coordinates = tuple(thread.coordinates for thread in self._program.threads)
        combination = Combination(tuple(paths), coordinates, self._program.initial)
        evaluation = Evaluation(self._model, combination.size, combination.static)
        for rf in self._readings(combination, evaluation, {}):
            self._add(combination, evaluation, rf)

    def _readings(
        self, combination: Combination, evaluation: Evaluation, rf: dict[int, int]
    ) -> Iterator[dict[int, int]]:
        """Yields every choice of a write for each read that fits the paths."""
        self._count()
        left = combination.reads[len(rf) :]
        if not left:
            yield rf
            return
        ways = 1
        for read in left:
            ways *= len(combination.sources[read])
        for write in combination.sources[left[0]]:
            extended = {**rf, left[0]: write}
            if not combination.possible(extended):
                continue
            if ways > PRUNE and not self._may_hold(combination, evaluation, extended):
                continue
            yield from self._readings(combination, evaluation, extended)

    def _count(self) -> None:
        """Counts one more beginning of an execution. Raises WarploomError for one too many."""
        self._seen += 1
        if self._seen > MOST:
            raise WarploomError(
                f"{self._program.name} has more than {MOST:,} executions: use fewer threads, "
                "loops or accesses to the same locations"
            )

    def _may_hold(
        self, combination: Combination, evaluation: Evaluation, rf: Mapping[int, int]
    ) -> bool:
        """Returns whether the model allows a beginning; more pairs of `rf` break more axioms."""
        size = combination.size
        empty = Relation((0,) * size)
        known = evaluation.given(rf=_reads_from(size, rf), same_barrier=empty, fence_sc=empty)
        before = _initial_first(combination) | known.relation("co-before")
        return _allows(known, before.closure())

    def _add(self, combination: Combination, evaluation: Evaluation, rf: Mapping[int, int]) -> None:
        """Adds the outcomes where reads return what `rf` determines."""
        try:
            barriers = combination.same_barrier(rf)
            registers = self._registers(combination, rf)
            for thread, event in combination.events:
                combination.value(thread, event.value, rf)
        except ThinAir:
            return
        if barriers is None:
            self.stuck = True
            return
        size = combination.size
        read = evaluation.given(rf=_reads_from(size, rf), same_barrier=barriers)
        fences = read.relation("fence-sc-before"), read.relation("fence-sc-either")
        for fence_sc in orders(size, *fences):
            fenced = read.given(fence_sc=fence_sc)
            before = _initial_first(combination) | fenced.relation("co-before")
            either = fenced.relation("co-either")
            for co in orders(size, before, either, partial(_allows, fenced)):
                self._count()
                self._judge(combination, fenced, registers, Witness(combination, rf, co, fence_sc))

    def _judge(
        self,
        combination: Combination,
        fenced: Evaluation,
        registers: Mapping[Observed, int],
        witness: Witness,
    ) -> None:
        """Adds the final states of an execution, if the model allows it and they are new."""
        states = [
            state
            for state in self._states(combination, witness, registers)
            if state not in self.allowed
        ]
        if states and _allows(fenced, witness.co):
            self.allowed.update(dict.fromkeys(states, witness))

    def _registers(self, combination: Combination, rf: Mapping[int, int]) -> dict[Observed, int]:
        """Returns the final values of the observed registers."""
        found: dict[Observed, int] = {}
        for one in self._program.observed:
            if one.thread is not None:
                value = combination.paths[one.thread].registers.get(one.name, 0)
                found[one] = combination.value(one.thread, value, rf)
        return found

    def _states(
        self, combination: Combination, witness: Witness, registers: Mapping[Observed, int]
    ) -> Iterator[State]:
        """Yields the final states: of a location, each write may be the last that no other follows
        in coherence order."""
        options: list[list[int]] = []
        for one in self._program.observed:
            if one.thread is not None:
                options.append([registers[one]])
            else:
                options.append(self._last(combination, witness, one.name))
        yield from choices(*options)

    def _last(self, combination: Combination, witness: Witness, location: str) -> list[int]:
        """Returns the values that a location may have at the end."""
        writes = [
            i
            for i, (_, event) in enumerate(combination.events)
            if event.kind is Kind.WRITE and event.place and event.place.physical == location
        ]
        if not writes:
            return [self._program.initial.get(location, 0)]
        among = sum(1 << i for i in writes)
        last = [i for i in writes if not witness.co.rows[i] & among]
        events = combination.events
        values = (combination.value(events[i][0], events[i][1].value, witness.rf) for i in last)
        return sorted(set(values))


def _allows(evaluation: Evaluation, co: Relation) -> bool:
    """Returns whether all axioms hold with a coherence order; more pairs break more of them."""
    return not evaluation.given(co=co).violated()


def _reads_from(size: int, rf: Mapping[int, int]) -> Relation:
    return Relation.of(size, ((write, read) for read, write in rf.items()))


def _initial_first(combination: Combination) -> Relation:
    """Returns the pairs of an initial write and another write to its location."""
    events = combination.events
    return Relation.of(
        combination.size,
        (
            (i, j)
            for i, (thread, first) in enumerate(events)
            for j, (_, second) in enumerate(events)
            if thread < 0
            and i != j
            and second.kind is Kind.WRITE
            and first.place is not None
            and second.place is not None
            and first.place.physical == second.place.physical
        ),
    )
