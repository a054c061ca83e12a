"""Defines the options of a kernel's code: layout of threads in warps, scheduling, instrumentation,
tier, disabled passes. Code is compiled and cached for each combination separately."""

from __future__ import annotations

from dataclasses import dataclass, replace

from warploom.ir.options import Pass
from warploom.isa.instruction import Space
from warploom.program.tracking import Tracking
from warploom.shapes.warp_layout import WarpLayout

Size = tuple[int, int, int]
"""The threads of a block along x, y and z."""


@dataclass(frozen=True, slots=True)
class Sanitizing:
    """Selects the events that a kernel's code records in the detector, beside accesses that fault
    (`lower.instrument.sanitizing`).

    `accesses`: accesses to these state spaces. `synchronisation`: instructions that order threads.
    `in_order`: accesses are performed in program order, each after its event, in which the detector
    reads the memory as it was before; otherwise stores may be batched, and a store by one of
    `written` only marks its bytes as written. `together`: warps count the barriers that they pass
    (`DetectorState.aligned`).

    Instructions whose accesses are proven to be free of findings (`sanitize.unchecked`) record
    nothing: `unchecked` ones never; `aligned` ones while all threads of a block wait at the same
    barriers; `written` ones if all that they access in shared memory has been written. An
    instruction in both of these sets needs both conditions.
    """

    accesses: frozenset[Space]
    synchronisation: bool
    in_order: bool = False
    together: bool = False
    unchecked: frozenset[int] = frozenset()
    aligned: frozenset[int] = frozenset()
    written: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Debugging:
    """Selects what a debugger needs. `steps`: code runs one warp after the other in the order of
    the schedule and stores registers lane by lane, so that the state between two turns can be read.
    `watches`: code counts the accesses to one range of memory (`lower.instrument.watchpoints`)."""

    steps: bool
    watches: bool = False


@dataclass(frozen=True, slots=True)
class Observing:
    """Selects the events that code reports to an observer (`simt.event_layout`)."""

    accesses: bool = False
    branches: bool = False
    barriers: bool = False
    block_begins: bool = False
    block_ends: bool = False


@dataclass(frozen=True, slots=True)
class KernelVariant:
    """Holds the options that decide a kernel's code, beside the kernel and the device's access
    rules.

    Threads: `warp_layout`: the layout of a thread block's threads in its warps. `alike`: all warps
    of a block have the same layout. `size`: the size of thread blocks, None in code for any size.

    Scheduling: `independent`: each thread has its own program counter, as from compute capability
    7.0 on. `concurrent`: several workers run blocks that may conflict, so that atomics and fences
    are those of the host. `interleaves_paths`: diverged lanes run in turn by a policy, instead of
    one side after the other. `shuffles`: the launch's policy chooses the order of warps, blocks and
    the lanes of an atomic. `clusters`: clusters have several blocks, or the program uses `mapa` or
    cancels launches.

    Instrumentation: `records`: code writes a log (`abi.log`). `sanitizes`: the events for a
    detector. `debugging`: the needs of a debugger. `observes`: the events for an observer.
    `tracks`: the accesses that are recorded, for several workers may run blocks that conflict. None
    stands for none of these.

    Tier: `baseline`: code is baseline code (`lower.baseline`). `disabled`: transformations that are
    left out (`ir.options`).
    """

    warp_layout: WarpLayout
    alike: bool
    size: Size | None
    independent: bool
    interleaves_paths: bool
    shuffles: bool
    records: bool
    sanitizes: Sanitizing | None = None
    clusters: bool = False
    debugging: Debugging | None = None
    baseline: bool = False
    disabled: frozenset[Pass] = frozenset()
    observes: Observing | None = None
    tracks: Tracking | None = None
    concurrent: bool = False

    def does(self, optional_pass: Pass) -> bool:
        """Returns whether a transformation is enabled."""
        return optional_pass not in self.disabled

    def for_baseline(self) -> KernelVariant:
        """Returns the variant of baseline code for the same launches: for blocks of any size, and
        with no transformation left out."""
        return replace(self, baseline=True, size=None, disabled=frozenset())

    def for_any_order(self) -> KernelVariant:
        """Returns the variant of sanitized code that runs launches under each policy, which it
        reads from the schedule (`any_order`); for blocks of any size."""
        assert self.sanitizes is not None
        return replace(self, interleaves_paths=self.independent, shuffles=True, size=None)

    @property
    def any_order(self) -> bool:
        """Returns whether code runs launches under each policy, `converge` among them: sanitized
        code whose policy is chosen by the launch (`shuffles`)."""
        return self.sanitizes is not None and self.shuffles

    @property
    def has_one_copy(self) -> bool:
        """Returns whether each basic block is emitted once, as the divergent copy, instead of up to
        three times (`lower.frame.blocks`): in baseline code, and in code for any order. The
        divergent copy is right whether lanes have diverged or not."""
        return self.baseline or self.any_order

    @property
    def has_policy_layout(self) -> bool:
        """Returns whether a launch's buffers are laid out as under a policy, with slots of resident
        blocks and space for operations that complete late: under one, and in sanitized code, whose
        launches may begin in code for any order."""
        return self.shuffles or self.sanitizes is not None

    @property
    def stores_lane_by_lane(self) -> bool:
        """Returns whether all registers are stored lane by lane, without uniform or affine forms:
        under a policy that mixes lanes, in code that records, is observed or debugged step by step,
        in code of one copy, or without the pass `uniformity`."""
        by_lane = self.interleaves_paths or self.is_watched or self.steps or self.has_one_copy
        return by_lane or not self.does(Pass.UNIFORMITY)

    @property
    def policy_orders_paths(self) -> bool:
        """Returns whether the sides of a branch run one after the other in an order that the
        launch's policy chooses: the variant `shuffles`, and threads are not `independent`."""
        return self.shuffles and not self.independent

    @property
    def runs_side_by_side(self) -> bool:
        """Returns whether the code is for workers whose blocks may conflict."""
        return self.concurrent or self.tracks is not None

    @property
    def is_watched(self) -> bool:
        """Returns whether the code writes a log or reports to an observer."""
        return self.records or self.observes is not None

    @property
    def steps(self) -> bool:
        """Returns whether a debugger reads the state between turns."""
        return self.debugging is not None and self.debugging.steps
