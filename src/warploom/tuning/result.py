"""The result of a tuning: the costs of each configuration, the best of them, the Pareto set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from warploom.core.errors import WarploomError
from warploom.tuning.space import Configuration

OBJECTIVES = (
    "seconds",
    "cycles",
    "dram_bytes",
    "global_sectors",
    "shared_bank_conflicts",
    "warp_instructions",
    "registers",
)
"""The costs that can be minimised."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of a launch.

    Counted: `global_sectors` (loads and stores, 32 bytes each), `shared_bank_conflicts`,
    `warp_instructions`. Modelled: `cycles` and how far off they may be (`cycles_error`), `seconds`,
    `achieved_occupancy`, `dram_bytes`, `stalls` (the share of the warps' cycles in each state, by
    name) and `bound`, a sentence. Where only a part of the blocks was `replayed` (a share),
    `dram_bytes` is scaled up from it. By the device's facts: `occupancy`, its `limiters`.
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
    """A configuration and its costs, or why it was `refused`."""

    configuration: Configuration
    costs: Costs | None = None
    refused: str = ""


@dataclass(frozen=True)
class Tuned:
    """All trials of a tuning, in the order of the space; `reused` of them came from the cache."""

    trials: tuple[Trial, ...]
    objectives: tuple[str, ...] = field(default=("seconds", "dram_bytes"))
    reused: int = 0

    @property
    def ranked(self) -> list[Trial]:
        """Return those that ran, the best by the first objective first; the others decide ties."""
        return sorted((t for t in self.trials if t.costs), key=self.values)

    @property
    def refused(self) -> list[Trial]:
        """Return those that did not run."""
        return [trial for trial in self.trials if trial.costs is None]

    @property
    def best(self) -> Trial:
        """Return the best by the first objective. Raises WarploomError where none ran."""
        if not self.ranked:
            raise WarploomError(
                f"none of {len(self.trials)} configurations ran; the first: "
                f"{self.trials[0].refused}"
            )
        return self.ranked[0]

    @property
    def pareto(self) -> list[Trial]:
        """Return those that no other beats: as good in all objectives, better in one."""
        ranked = self.ranked
        rows = [self.values(trial) for trial in ranked]
        return [
            trial
            for trial, row in zip(ranked, rows, strict=True)
            if not any(dominates(other, row) for other in rows)
        ]

    def values(self, trial: Trial) -> tuple[float, ...]:
        """Return a trial's objectives."""
        return tuple(getattr(trial.costs, name) for name in self.objectives)


def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    """Returns whether one is nowhere worse than the other, and somewhere better; less is better."""
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def check_objectives(names: Sequence[str]) -> tuple[str, ...]:
    """Return the objectives by name. Raises WarploomError for what is none."""
    for name in names:
        if name not in OBJECTIVES:
            raise WarploomError(
                f"there is no objective {name!r}; choose of {', '.join(OBJECTIVES)}"
            )
    if not names:
        raise WarploomError(f"say what to minimise: one or more of {', '.join(OBJECTIVES)}")
    return tuple(names)
