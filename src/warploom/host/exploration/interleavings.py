"""Searches the orders in which warps can take turns at accesses that conflict.

Dynamic partial-order reduction with source sets (P. Abdulla et al., POPL 2014) and sleep sets
(P. Godefroid, 1996): a run shows which turns access the same bytes, and each pair of these that
nothing orders is run in the other order; orders that differ only in turns that do not conflict are
run once. A turn goes from one interrupt to the next, so it has one such access at most, its first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from warploom.host.exploration.orders import Order, Outcome, Ready
from warploom.isa.instruction import Space
from warploom.isa.kinds import OpKind
from warploom.machine.launch import WarpId
from warploom.machine.reference.state import Warp, WarpAccess
from warploom.observe.origins import SHARED_BY_ALL, RecordingFull

MOST_TURNS = 1_000
"""So many turns of a run are looked at: beyond that, orders are too many to try."""

MOST_INSTRUCTIONS = 100_000
"""So many warp instructions of a run are executed."""

Byte = tuple[int, int]
"""A byte of memory: the block whose shared memory has it, -1 for global memory, and its address."""

BARRIERS = (
    OpKind.BLOCK_BARRIER,
    OpKind.CLUSTER_BARRIER,
    OpKind.WARP_GROUP_BARRIER,
    OpKind.REGISTER_WAIT,
    OpKind.WARP_BARRIER,
)


@dataclass(slots=True)
class Turn:
    """A turn of a warp: the bytes that it reads and writes by accesses that conflict; `waits`: it
    ends at a barrier."""

    who: WarpId
    reads: set[Byte] = field(default_factory=set[Byte])
    writes: set[Byte] = field(default_factory=set[Byte])
    waits: bool = False

    def meets(self, other: Turn) -> bool:
        """Returns whether it matters which of two turns comes first."""
        mine = not self.writes.isdisjoint(other.reads) or not self.writes.isdisjoint(other.writes)
        return mine or not self.reads.isdisjoint(other.writes)


@dataclass(slots=True)
class Node:
    """A state between two turns: the warps that are `able` to run, the `turn` that one of them has
    in the current run, those that have been `tried` from here, and those that are `to_do`. A turn
    of a warp that is `asleep` would lead to an order that has been run."""

    able: tuple[WarpId, ...]
    asleep: dict[WarpId, Turn]
    turn: Turn
    tried: dict[WarpId, Turn] = field(default_factory=dict[WarpId, Turn])
    to_do: set[WarpId] = field(default_factory=set[WarpId])

    def still_asleep(self) -> dict[WarpId, Turn]:
        """Returns the warps that are asleep after the turn."""
        known = {**self.asleep, **self.tried}
        return {who: turn for who, turn in known.items() if not turn.meets(self.turn)}


class Interleavings:
    """Chooses the turns of one run after the other (`machine.reference.state.Chooser`). `cut`: the
    last run was given up; `whole`: none was but those whose order had been run."""

    def __init__(self, points: Iterable[int]) -> None:
        self.whole, self.cut = True, False
        self._points = frozenset(points)
        self._path: list[Node] = []
        self._begun = self._issued = 0

    @property
    def turns(self) -> tuple[WarpId, ...]:
        """Returns who had the turns of the last run."""
        return tuple(node.turn.who for node in self._path[: self._begun])

    def begin(self) -> None:
        """Prepares for a run."""
        self.cut, self._begun, self._issued = False, 0, 0

    # ---- what happens in a run -------------------------------------------------------------------

    def choose(self, able: Sequence[WarpId]) -> WarpId:
        """Returns who goes next: as in the run before up to where this one differs, then the warps
        that are not asleep in turn. Raises RecordingFull where all are, or turns are too many."""
        if self._begun == len(self._path):
            self._path.append(self._new(tuple(able)))
        node = self._path[self._begun]
        node.turn = Turn(node.turn.who)
        self._begun += 1
        return node.turn.who

    def _new(self, able: tuple[WarpId, ...]) -> Node:
        asleep: dict[WarpId, Turn] = {}
        last = (-1, 0)
        if self._path:
            asleep, last = self._path[-1].still_asleep(), self._path[-1].turn.who
        if len(self._path) == MOST_TURNS:
            self._give_up(known=False)
        awake = sorted(who for who in able if who not in asleep)
        if not awake:
            self._give_up(known=True)
        following = next((who for who in awake if who > last), awake[0])
        return Node(able, asleep, Turn(following))

    def _give_up(self, *, known: bool) -> NoReturn:
        """Ends the run; `known`: its order has been run."""
        self.cut, self.whole = True, self.whole and known
        raise RecordingFull

    def issued(self, warp: Warp, instruction: int, mask: int) -> None:
        """Counts an instruction, and records whether it is a barrier, at which the turn waits."""
        self._issued += 1
        if self._issued > MOST_INSTRUCTIONS:
            self._give_up(known=False)
        made = warp.run.program.instructions[instruction]
        self._path[self._begun - 1].turn.waits = made.operation.kind in BARRIERS

    def accessed(self, warp: Warp, access: WarpAccess) -> None:
        """Records the bytes of an access if its instruction is one of those that conflict."""
        if access.instruction not in self._points or access.space not in SHARED_BY_ALL:
            return
        home = warp.block.number if access.space is Space.SHARED else -1
        turn = self._path[self._begun - 1].turn
        bytes_ = turn.reads if access.op == "load" else turn.writes
        for address in access.addresses:
            bytes_.update((home, address + byte) for byte in range(access.size))

    # ---- between two runs ------------------------------------------------------------------------

    def advance(self) -> bool:
        """Prepares the next order; returns whether there is one."""
        del self._path[self._begun :]
        find_reversals(self._path)
        while self._path:
            node = self._path[-1]
            node.tried[node.turn.who] = node.turn
            left = sorted(node.to_do - node.tried.keys() - node.asleep.keys())
            if left:
                node.turn = Turn(left[0])
                return True
            self._path.pop()
        return False


def find_reversals(path: Sequence[Node]) -> None:
    """Records for each two turns of a run that conflict, though nothing between them orders them,
    which warp is to go first in another run, so that they come in the other order."""
    clocks: dict[
        WarpId, dict[WarpId, int]
    ] = {}  # the last turn of each warp that a warp comes after
    after: list[dict[WarpId, int]] = []  # the same behind each turn, which is among them
    for at, node in enumerate(path):
        if at:
            _let_go(path[at - 1], node, clocks, after[-1])
        who, before = node.turn.who, clocks.get(node.turn.who, {})
        met = [i for i in range(at) if path[i].turn.who != who and path[i].turn.meets(node.turn)]
        clocks[who] = _joined([before, *(after[i] for i in met)]) | {who: at}
        after.append(clocks[who])
        for first in met:
            between = [before, *(after[i] for i in met if i != first)]
            if not any(_has(clock, path[first], first) for clock in between):
                _reverse(path, first, at, after)


def _has(clock: Mapping[WarpId, int], node: Node, at: int) -> bool:
    """Returns whether what has a clock comes after turn number `at`."""
    return clock.get(node.turn.who, -1) >= at


def _reverse(
    path: Sequence[Node], first: int, second: int, after: Sequence[Mapping[WarpId, int]]
) -> None:
    """Adds a run in which the `second` of two turns comes before the `first`, unless one is planned
    already: it begins with one of the warps that go first in what does not come after the `first`
    turn."""
    node = path[first]
    rest = [i for i in range(first + 1, second) if not _has(after[i], node, first)] + [second]
    initial = dict[WarpId, bool]()
    for number, at in enumerate(rest):
        free = not any(_has(after[at], path[i], i) for i in rest[:number])
        initial.setdefault(path[at].turn.who, free)
    ways = [who for who, free in initial.items() if free]
    if node.to_do.isdisjoint(ways) and node.tried.keys().isdisjoint(ways):
        awake = [who for who in ways if who not in node.asleep and who in node.able]
        node.to_do.update(awake[:1])


def _let_go(
    last: Node, node: Node, clocks: dict[WarpId, dict[WarpId, int]], behind: dict[WarpId, int]
) -> None:
    """Orders the warps that a turn has released after it, and after each other: they have
    synchronized."""
    let_go = [who for who in node.able if who not in last.able and who != last.turn.who]
    if not let_go:
        return
    joined = _joined([behind, *(clocks.get(who, {}) for who in let_go)])
    for who in (*let_go, *((last.turn.who,) if last.turn.waits else ())):
        clocks[who] = joined


def _joined(clocks: Iterable[dict[WarpId, int]]) -> dict[WarpId, int]:
    joined: dict[WarpId, int] = {}
    for clock in clocks:
        for who, at in clock.items():
            joined[who] = max(at, joined.get(who, -1))
    return joined


def search_orders(ready: Ready, points: Sequence[int], runs: int) -> tuple[list[Outcome], bool]:
    """Runs a job in every distinguishable order of its turns between `points`, in at most `runs`
    runs; returns the outcomes, and whether these are all orders that can differ. Instructions that
    are found to conflict only in one of these orders are added to the points of a further
    search."""
    found, whole = _search(ready, points, runs)
    if not whole:
        return found, False
    conflicting = {index for one in found for pair in ready.conflicts(one.order) for index in pair}
    if conflicting <= set(points):
        return found, True
    more = sorted(conflicting.union(points))
    others, whole = search_orders(ready, more, runs - len(found))
    return [*found, *others], whole


def _search(ready: Ready, points: Sequence[int], runs: int) -> tuple[list[Outcome], bool]:
    """Searches with these points alone."""
    search, outcomes = Interleavings(points), list[Outcome]()
    order = Order("converge", 0, tuple(points))
    for _ in range(runs):
        search.begin()
        error = ready.watch(search, order)
        if not search.cut:
            done = replace(order, turns=search.turns)
            outcomes.append(Outcome(done, b"" if error else ready.digest(), error))
        if not outcomes:
            return [], False
        search.whole = search.whole and not error  # nobody knows what would have come behind it
        if not search.advance():
            return outcomes, search.whole
    return outcomes, False
