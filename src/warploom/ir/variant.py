"""The variant of a kernel that machine code is made for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from warploom.analysis.shape_transfer import WarpLayout
from warploom.analysis.static_schedule import Size
from warploom.ir.options import Pass
from warploom.ptx.ir import Space


@dataclass(frozen=True, slots=True)
class Sanitizing:
    """The events that the code of a kernel has the detector take (`lower.instrument.sanitizing`),
    beside the accesses that fail: `accesses`, all that reach memory of these spaces;
    `synchronisation`, those that order threads. `in_order`: an access has to be done when its event
    is taken, for the detector looks at memory; else it keeps no more than which bytes are written.
    `together`: warps count the barriers that they pass (`detector.layout.TOGETHER`). Accesses that
    cannot be found fault with make none (`sanitize.unchecked`): those of `unchecked` never, those
    of `aligned` while all threads of a block meet at the same barriers, those of `written` where
    all that they reach in shared memory has been written; those of both, where both hold. They are
    named by instruction."""

    accesses: frozenset[Space]
    synchronisation: bool
    in_order: bool = False
    together: bool = False
    unchecked: frozenset[int] = frozenset()
    aligned: frozenset[int] = frozenset()
    written: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Debugging:
    """The needs of a debugger. `steps`: the code runs one warp after the other in the order of the
    schedule, and keeps registers lane by lane, so that the state between two turns can be read.
    `watches`: it counts the accesses to one range of memory (`lower.instrument.watchpoints`)."""

    steps: bool
    watches: bool = False


@dataclass(frozen=True, slots=True)
class Observing:
    """The events of which an observer is told (`simt.event_layout`)."""

    accesses: bool = False
    branches: bool = False
    barriers: bool = False
    block_begins: bool = False
    block_ends: bool = False


@dataclass(frozen=True, slots=True)
class KernelVariant:
    """The options that decide a kernel's code, beside the kernel and the device's access rules.

    `warp_layout` says how the warps of the launch are formed from threads; `alike`: in all of a
    block's warps threads lie alike. `size` is the size of the
    blocks, None where code is made for any. `independent`: each thread has its own program counter,
    as from compute capability 7.0 on. `mixes`: lanes that part take turns by a policy, instead of
    one side after the other. `shuffles`: warps, blocks and the lanes of an atomic go in an order
    that the launch's policy chooses. `records`: the code writes a log of all that it does
    (`abi.log`). `sanitizes`: what a detector takes, None without one. `clusters`: clusters have
    several blocks, or the program names those of its own. `debugging`: the needs of a debugger,
    None without one. `baseline`: the code is the one that is compiled fastest (`lower.baseline`).
    `disabled`: the transformations that are not done (`ir.options`).
    `observes`: the events of which the code tells an observer, None without one.
    """

    warp_layout: WarpLayout
    alike: bool
    size: Size | None
    independent: bool
    mixes: bool
    shuffles: bool
    records: bool
    sanitizes: Sanitizing | None = None
    clusters: bool = False
    debugging: Debugging | None = None
    baseline: bool = False
    disabled: frozenset[Pass] = frozenset()
    observes: Observing | None = None

    def does(self, one: Pass) -> bool:
        """Returns whether a transformation is done."""
        return one not in self.disabled

    def for_baseline(self) -> KernelVariant:
        """Returns the variant of baseline code for the same launches."""
        return replace(self, baseline=True, size=None, disabled=frozenset())

    @property
    def plain(self) -> bool:
        """Returns whether every register is kept lane by lane."""
        kept = self.mixes or self.is_watched or self.steps or self.baseline
        return kept or not self.does(Pass.UNIFORMITY)

    @property
    def chooses(self) -> bool:
        """Returns whether one side of a branch goes after the other, and the launch's policy says
        which is first."""
        return self.shuffles and not self.independent

    @property
    def is_watched(self) -> bool:
        """Return whether the code takes notes of what it does, or tells others."""
        return self.records or self.observes is not None

    @property
    def steps(self) -> bool:
        """Returns whether a debugger reads the state between turns."""
        return self.debugging is not None and self.debugging.steps
