"""Declares the types of what the model of time reports of a launch (roofs, states of warps, copies
in flight, times of lines, its basis), for modules that read a result.

`Roof`, `StateInterval` and `CopyInFlight` are parts of a result. `TimedLaunch` is the interface
through which `timing.roofs` (what bounds a kernel) and `timing.traced` (modelled time in a trace)
read a result. `timing.result.Timing` implements it and imports both modules, so neither imports it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from warploom.core.lazy import cached_property
from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import TimingSpec
from warploom.machine.launch import Launch
from warploom.timing.pipeline import Pipeline


class Roof(NamedTuple):
    """Holds one throughput of the device: its name, the share of it that the kernel used (0 to 1),
    its peak for the whole device per second, and the unit that the peak is counted in."""

    name: str
    used: float
    peak: float
    unit: str


@dataclass(frozen=True)
class StateInterval:
    """Holds an interval in which one warp was in one state: the cycles from `since` to `until`,
    before or while the warp issued the PTX instruction with the index `instruction`.

    `slot` is the warp's slot on its SM, `warp` its number in the launch, `visit` how often the warp
    had executed that instruction before.
    """

    slot: int
    warp: int
    state: str
    since: int
    until: int
    instruction: int
    visit: int


@dataclass(frozen=True)
class CopyInFlight:
    """Holds a copy by the Tensor Memory Accelerator of an SM, from its issue (`since`) until its
    bytes have arrived (`until`), with the slot and the number of the warp that issued it and the
    index of its PTX instruction."""

    slot: int
    warp: int
    since: int
    until: int
    instruction: int


class NamedCode(Protocol):
    """Declares what is read of the code of a launch: its name, the name for users (`title`), the
    number of instructions, and of each instruction the opcode and the source line."""

    @property
    def name(self) -> str:
        """Returns the name of the kernel."""
        ...

    @property
    def title(self) -> str:
        """Returns the name of the kernel for users."""
        ...

    @property
    def size(self) -> int:
        """Returns the number of instructions."""
        ...

    def opcode(self, instruction: int) -> str:
        """Returns the opcode of an instruction, by its index."""
        ...

    def line(self, instruction: int) -> str:
        """Returns the source line of an instruction, by its index."""
        ...


class TimedLaunch(Protocol):
    """Declares the figures of a replayed launch; `timing.result.Timing` documents each.

    Figures that `Timing` caches are cached properties here as well: type checkers do not accept
    one for a plain property.
    """

    program: NamedCode
    device: DeviceSpec
    spec: TimingSpec
    scheduler: str
    launch: Launch
    blocks: int
    sampled_blocks: int

    @property
    def sms(self) -> int:
        """Returns the number of SMs that had blocks."""
        ...

    @property
    def cycles(self) -> int:
        """Returns the cycles of all blocks, extrapolated if only a part was replayed."""
        ...

    @property
    def sample_cycles(self) -> int:
        """Returns the cycles of the replayed blocks."""
        ...

    @property
    def issued(self) -> int:
        """Returns the scheduler cycles with an issue, summed over all schedulers."""
        ...

    @property
    def scheduler_cycles(self) -> int:
        """Returns the cycles of all schedulers of the SMs that had blocks."""
        ...

    @cached_property
    def stalls(self) -> dict[str, int]:
        """Returns the scheduler cycles without an issue, by stall reason."""
        ...

    @cached_property
    def warp_states(self) -> dict[str, int]:
        """Returns the cycles of all warps, by state."""
        ...

    @cached_property
    def unit_use(self) -> dict[str, float]:
        """Returns the share of cycles, 0 to 1, in which a unit was occupied, by name."""
        ...

    @property
    def lsu_use(self) -> tuple[float, float]:
        """Returns the shares of the load/store unit's cycles for L1 and for shared memory."""
        ...

    @property
    def l2_bytes(self) -> int:
        """Returns the bytes that the SMs exchanged with L2 (DRAM without an L2)."""
        ...

    @property
    def dram_bytes(self) -> int:
        """Returns the bytes that were read from DRAM and written to it."""
        ...

    @cached_property
    def pipeline(self) -> Pipeline | None:
        """Returns how well asynchronous copies are hidden; None if there are none."""
        ...

    @cached_property
    def roofs(self) -> tuple[Roof, ...]:
        """Returns the throughputs of the device, the most used first."""
        ...

    def timeline(self, sm: int = 0) -> list[StateInterval]:
        """Returns the recorded states of the warps of an SM."""
        ...

    def copies(self, sm: int = 0) -> list[CopyInFlight]:
        """Returns the recorded copies of the Tensor Memory Accelerator of an SM."""
        ...

    def warp_cycles(self, sm: int = 0) -> int:
        """Returns the cycles of residency, summed over the warps of an SM."""
        ...


@dataclass(frozen=True)
class LineTime:
    """Holds the time of a source line: machine instructions issued for it, and the cycles that all
    warps spent before them, by state."""

    line: str
    issued: int
    states: Mapping[str, int]

    @property
    def stalled(self) -> int:
        """Returns the cycles, summed over all warps, in which a warp could not issue: all states
        but "selected" and "not_selected"."""
        issuable = self.states["selected"] + self.states["not_selected"]
        return sum(self.states.values()) - issuable


@dataclass(frozen=True)
class Basis:
    """Describes the code that a time rests on: "machine code", "ptx" or "trace".

    `matched_share` is, for machine code, the share of the executed PTX instructions that were found
    in it, from 0 to 1; `reason` states for "ptx" why machine code, which was requested, was not
    used.
    """

    code: str
    matched_share: float = 0.0
    reason: str = ""

    @property
    def found(self) -> float:
        """Returns `matched_share`, under the name that it had before."""
        message = "`found` is deprecated: use `matched_share`"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.matched_share

    def __str__(self) -> str:
        """Returns the basis as text for users: PTX, with the reason if there is one; a trace; or
        machine code, with the share of the executed PTX that was found in it."""
        if self.code == "ptx":
            reason = f": {self.reason}" if self.reason else ""
            return f"PTX (less exact than machine code){reason}"
        if self.code == "trace":
            return "a trace of machine code"
        return (
            f"machine code, in which {100 * self.matched_share:.1f} % of the executed PTX was found"
        )
