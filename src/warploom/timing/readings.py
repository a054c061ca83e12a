"""Declares the types of what the model of time reports of a launch (roofs, states of warps, copies
in flight), for modules that read a result.

`Roof`, `StateInterval` and `CopyInFlight` are parts of a result. `TimedLaunch` is the interface
through which `timing.roofs` (what bounds a kernel) and `timing.traced` (modelled time in a trace)
read a result. `timing.result.Timing` implements it and imports both modules, so neither imports it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

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
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def size(self) -> int: ...

    def opcode(self, instruction: int) -> str: ...

    def line(self, instruction: int) -> str: ...


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
    def sms(self) -> int: ...

    @property
    def cycles(self) -> int: ...

    @property
    def sample_cycles(self) -> int: ...

    @property
    def issued(self) -> int: ...

    @property
    def scheduler_cycles(self) -> int: ...

    @cached_property
    def stalls(self) -> dict[str, int]: ...

    @cached_property
    def warp_states(self) -> dict[str, int]: ...

    @cached_property
    def unit_use(self) -> dict[str, float]: ...

    @property
    def lsu_use(self) -> tuple[float, float]: ...

    @property
    def l2_bytes(self) -> int: ...

    @property
    def dram_bytes(self) -> int: ...

    @cached_property
    def pipeline(self) -> Pipeline | None: ...

    @cached_property
    def roofs(self) -> tuple[Roof, ...]: ...

    def timeline(self, sm: int = 0) -> list[StateInterval]: ...

    def copies(self, sm: int = 0) -> list[CopyInFlight]: ...

    def warp_cycles(self, sm: int = 0) -> int: ...
