"""One trial of a tuning: a configuration and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warploom.tuning.space import Configuration, Value


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of a launch.

    Counted: `global_sectors` (loads and stores, 32 bytes each), `shared_bank_conflicts`,
    `warp_instructions`. Modelled: `cycles` and how far off they may be (`cycles_error`), `seconds`,
    `achieved_occupancy`, `dram_bytes`, `stalls` (the share of the warps' cycles in each state, by
    name) and `bound`, a sentence. Where only a part of the blocks was `replayed` (a share),
    `dram_bytes` is scaled up from it; where only a sample was executed, so is what was counted. By
    the device's facts: `occupancy`, its `limiters`.
    `registers` are a thread's, `registers_from` says how they are known.
    """

    cycles: int
    cycles_error: int
    seconds: float
    replayed: float
    occupancy: float
    achieved_occupancy: float
    limiters: tuple[str, ...]
    registers: int
    registers_from: str
    dram_bytes: int
    global_sectors: int
    shared_bank_conflicts: int
    warp_instructions: int
    stalls: dict[str, float]
    bound: str


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration and its costs, or why it was `refused`; `measured` are its seconds on
    hardware, `seconds` those of the model, corrected by what was measured on its device."""

    configuration: Configuration
    costs: Costs | None = None
    refused: str = ""
    measured: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class About:
    """Names what was tuned: the kernel, the device where the space has none, and the space."""

    kernel: str
    device: str
    problem_size: tuple[int, ...]
    space: Mapping[str, Sequence[Value]]
