"""Describes the work of streams for the timeline of a device, and what each work needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from warploom.sanitize.stream_order import IssuedWork


class Engine(Enum):
    """Names the part of a device that executes work."""

    SMS = "kernel"
    TO_DEVICE = "copy to the device"
    TO_HOST = "copy to the host"
    ON_DEVICE = "copy on the device"
    FILL = "fill"

    @property
    def is_in_dram(self) -> bool:
        """Returns whether the work moves bytes within DRAM, and needs no copy engine."""
        return self in (Engine.ON_DEVICE, Engine.FILL)


@dataclass(frozen=True)
class Demand:
    """Holds what a work needs when it runs alone: its time, and the share of each throughput that
    it uses on average. `shares` has, for each of equal parts of its time, the share of the device's
    block slots that its blocks occupy; `block_share` is the share that one block occupies.

    A kernel of 264 blocks on 132 SMs, one per SM, needs two waves: shares (1, 1), block_share
    1 / 132.
    """

    seconds: float
    shares: tuple[float, ...] = (0.0,)
    block_share: float = 0.0
    uses: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, eq=False)
class TimelineWork:
    """Describes a launch or a copy that a stream issued. `basis` states how its time is known if
    it is not by a replay of the launch itself."""

    name: str
    issued: IssuedWork
    engine: Engine
    demand: Demand
    basis: str = ""

    @property
    def title(self) -> str:
        """Returns the name with the basis."""
        return f"{self.name}, {self.basis}" if self.basis else self.name


@dataclass(frozen=True)
class ScheduledWork:
    """Holds when a work begins and ends, in seconds from the beginning of the first. `slots` has,
    for a kernel, the moments from which on it occupies another share of the device's block slots,
    each with that share."""

    work: TimelineWork
    begin: float
    end: float
    slots: tuple[tuple[float, float], ...] = ()
