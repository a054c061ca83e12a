"""The slow definition of a race: a vector clock for every thread, every access kept for good.

It hears the reference machine and follows the PTX ISA, "Memory Consistency Model", word by word; it
shares no code with `detector`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from warploom.isa.instruction import Immediate, Space
from warploom.machine.launch import shared_stride
from warploom.machine.reference.state import Warp, WarpAccess

Thread = tuple[int, int]
"""Block, and thread in the block."""
Clock = dict[Thread, int]
SCOPES = ("cta", "cluster", "gpu", "sys")
CLUSTER_SPACE = "shared::cluster"


@dataclass(frozen=True)
class Done:
    """An access that was made: of whom and when, and what it was."""

    thread: Thread
    time: int
    instruction: int
    writes: bool
    strong: bool
    scope: str


@dataclass(frozen=True)
class Release:
    """What a thread knew when it released, and to whom."""

    thread: Thread
    clock: Clock
    scope: str


@dataclass
class BarrierPhase:
    """One generation of a barrier."""

    came: set[Thread] = field(default_factory=set[Thread])
    clock: Clock = field(default_factory=dict[Thread, int])


def joined(a: Clock, b: Clock) -> Clock:
    return {t: max(a.get(t, 0), b.get(t, 0)) for t in a.keys() | b.keys()}


class Oracle:
    """A listener that finds the pairs of instructions that race. `cluster`: the blocks of a
    cluster."""

    def __init__(self, threads: int, cluster: int = 1) -> None:
        self.threads, self.cluster = threads, cluster
        self.arrivals: defaultdict[Thread, int] = defaultdict(int)
        self.cluster_barriers: defaultdict[tuple[int, int], BarrierPhase] = defaultdict(
            BarrierPhase
        )
        self.clocks: defaultdict[Thread, Clock] = defaultdict(dict)
        self.accesses: defaultdict[int, list[Done]] = defaultdict(list)
        self.released: defaultdict[int, list[Release]] = defaultdict(list)
        self.fences: defaultdict[Thread, list[Release]] = defaultdict(list)
        self.read: defaultdict[Thread, list[tuple[Release, str]]] = defaultdict(list)
        self.barriers: dict[tuple[int, int], BarrierPhase] = {}
        self.waits: dict[Thread, BarrierPhase] = {}
        self.races: set[tuple[int, int]] = set()

    # ---- the listener ---------------------------------------------------------------------------

    def issued(self, warp: Warp, instruction: int, mask: int) -> None:
        made = warp.run.program.instructions[instruction]
        threads = self._threads(warp, mask)
        for thread in threads:
            self._step(thread)
        modifiers, name = made.operation.modifiers, made.operation.name
        if name == "fence":
            for thread in threads:
                self._fence(thread, modifiers.text("scope", ""))
        elif name == "bar" and "warp" in modifiers:
            everything: Clock = {}
            for thread in threads:
                everything = joined(everything, self.clocks[thread])
            for thread in threads:
                self.clocks[thread] = joined(self.clocks[thread], everything)
                self._step(thread)
        elif name == "barrier" and "cluster" in modifiers:
            for thread in threads:
                self._meet(
                    thread, "arrive" in modifiers, relaxed=modifiers.text("sem", "") == "relaxed"
                )
        elif name == "bar" and threads:
            numbers = [o.value for o in made.operands if isinstance(o, Immediate)]
            self._arrive(threads, numbers[0], numbers[1] if len(numbers) > 1 else self.threads)

    def accessed(self, warp: Warp, access: WarpAccess) -> None:
        if access.space not in (Space.GLOBAL, Space.SHARED):
            return
        modifiers = warp.run.program.instructions[access.instruction].operation.modifiers
        order = next((o for o in ("acquire", "release", "relaxed") if o in modifiers), "")
        strong = access.op == "atomic" or bool(order)
        order = modifiers.text("sem", "relaxed") if access.op == "atomic" else order
        scope = modifiers.text("scope", "gpu")
        for lane, address in zip(access.lanes, access.addresses, strict=True):
            thread = warp.block.number, warp.number * 32 + lane
            now = self.clocks[thread].get(thread, 0)
            done = Done(thread, now, access.instruction, access.op != "load", strong, scope)
            if access.space is Space.SHARED:
                address = self._shared(
                    warp, address, everywhere=CLUSTER_SPACE in modifiers.values.values()
                )
            for byte in range(access.size):
                self._check(address + byte, done)
            if strong and access.op != "store":
                self._acquire(thread, address, order, scope)
            if strong and access.op != "load":
                self._release(thread, address, order, scope, continues=access.op == "atomic")
            if not strong and access.op == "store":
                self.released[address] = []

    # ---- what happens ---------------------------------------------------------------------------

    def _threads(self, warp: Warp, mask: int) -> list[Thread]:
        lanes = (lane for lane in range(32) if mask >> lane & 1)
        return [(warp.block.number, warp.number * 32 + lane) for lane in lanes]

    def _step(self, thread: Thread) -> None:
        """A thread does something new; if it waited at a barrier, it has been let go."""
        barrier = self.waits.pop(thread, None)
        if barrier is not None:
            self.clocks[thread] = joined(self.clocks[thread], barrier.clock)
        self.clocks[thread][thread] = self.clocks[thread].get(thread, 0) + 1

    def _arrive(self, threads: list[Thread], number: int, count: int) -> None:
        for thread in threads:
            key = thread[0], number
            barrier = self.barriers.setdefault(key, BarrierPhase())
            barrier.came.add(thread)
            barrier.clock = joined(barrier.clock, self.clocks[thread])
            self.waits[thread] = barrier
        barrier = self.barriers[threads[0][0], number]
        if len(barrier.came) >= count:
            del self.barriers[threads[0][0], number]

    def _meet(self, thread: Thread, arrives: bool, *, relaxed: bool) -> None:
        """A thread arrives at the barrier of its cluster, or waits there for the phase that it has
        arrived at."""
        self.arrivals[thread] += arrives
        barrier = self.cluster_barriers[thread[0] // self.cluster, self.arrivals[thread]]
        if not arrives:
            self.waits[thread] = barrier
        elif not relaxed:
            barrier.clock = joined(barrier.clock, self.clocks[thread])
            self._step(thread)

    def _shared(self, warp: Warp, address: int, *, everywhere: bool) -> int:
        """Returns a number of its own for each byte of the shared memory of each cluster; an
        address is one of the block's, or, `everywhere`, one of the cluster's."""
        block = warp.block.number
        if not everywhere:
            stride = shared_stride(warp.run.program, warp.run.launch)
            address += block % self.cluster * stride
        return address - (block // self.cluster + 1 << 32)

    def _fence(self, thread: Thread, scope: str) -> None:
        for release, read_scope in self.read[thread]:
            if self._included(release, thread, scope) and self._included(
                release, thread, read_scope
            ):
                self.clocks[thread] = joined(self.clocks[thread], release.clock)
        self.fences[thread].append(Release(thread, dict(self.clocks[thread]), scope))
        self._step(thread)

    def _acquire(self, thread: Thread, address: int, order: str, scope: str) -> None:
        for release in self.released[address]:
            if order in ("acquire", "acq_rel") and self._included(release, thread, scope):
                self.clocks[thread] = joined(self.clocks[thread], release.clock)
            self.read[thread].append((release, scope))

    def _release(
        self, thread: Thread, address: int, order: str, scope: str, *, continues: bool
    ) -> None:
        kept = self.released[address] if continues else []
        made: list[Release] = []
        if order in ("release", "acq_rel"):
            made = [Release(thread, dict(self.clocks[thread]), scope)]
            self._step(thread)
        for fence in self.fences[thread]:
            narrow = min(scope, fence.scope, key=SCOPES.index)
            made.append(Release(thread, fence.clock, narrow))
        self.released[address] = [*kept, *made]

    def _check(self, address: int, done: Done) -> None:
        known = self.clocks[done.thread]
        for old in self.accesses[address]:
            if old.thread == done.thread or known.get(old.thread, 0) >= old.time:
                continue
            near = self._is_in_scope(old.thread, done.thread, (old.scope, done.scope))
            if (old.writes or done.writes) and not (old.strong and done.strong and near):
                self.races.add((old.instruction, done.instruction))
        self.accesses[address].append(done)

    def _included(self, release: Release, thread: Thread, scope: str) -> bool:
        """Returns whether a release and a thread are in each other's scope."""
        return self._is_in_scope(release.thread, thread, (release.scope, scope))

    def _is_in_scope(self, one: Thread, other: Thread, scopes: tuple[str, str]) -> bool:
        """Returns whether each of two threads is in the other's scope."""
        narrowest = min(map(SCOPES.index, scopes))
        block, cluster = one[0] == other[0], one[0] // self.cluster == other[0] // self.cluster
        return (block, cluster, True, True)[narrowest]
