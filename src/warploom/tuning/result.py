"""The result of a tuning: the costs of each configuration, the best of them, the Pareto set."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from warploom.core.errors import WarploomError
from warploom.tuning.correction import believed
from warploom.tuning.files import write_results
from warploom.tuning.measured import Measurement
from warploom.tuning.plan import Plan, chosen
from warploom.tuning.space import Configuration, described
from warploom.tuning.trial import About, Costs, Trial

OBJECTIVES = (
    "seconds",
    "cycles",
    "dram_bytes",
    "global_sectors",
    "shared_bank_conflicts",
    "warp_instructions",
    "registers",
)
"""The costs that can be minimized."""


@dataclass(frozen=True)
class Tuned:
    """All trials of a tuning, in the order of the space; `reused` of them came from the cache."""

    trials: tuple[Trial, ...]
    objectives: tuple[str, ...] = field(default=("seconds", "dram_bytes"))
    reused: int = 0
    about: About | None = None

    @property
    def ranked(self) -> list[Trial]:
        """Returns those that ran, the best by the first objective first; the others decide ties."""
        return sorted((t for t in self.trials if t.costs), key=self.values)

    @property
    def refused(self) -> list[Trial]:
        """Returns those that did not run."""
        return [trial for trial in self.trials if trial.costs is None]

    @property
    def best(self) -> Trial:
        """Returns the best by the first objective. Raises WarploomError where none ran."""
        if not self.ranked:
            raise WarploomError(
                f"none of the {len(self.trials)} configurations ran. The first was refused: "
                f"{self.trials[0].refused}"
            )
        return self.ranked[0]

    @property
    def pareto(self) -> list[Trial]:
        """Returns those that no other beats: as good in all objectives, better in one."""
        ranked = self.ranked
        rows = [self.values(trial) for trial in ranked]
        return [
            trial
            for trial, row in zip(ranked, rows, strict=True)
            if not any(dominates(other, row) for other in rows)
        ]

    def values(self, trial: Trial) -> tuple[float, ...]:
        """Returns a trial's objectives; of seconds those that are corrected, if any are."""
        return tuple(
            trial.seconds
            if name == "seconds" and trial.seconds is not None
            else getattr(trial.costs, name)
            for name in self.objectives
        )

    def rows(self) -> list[dict[str, Any]]:
        """Returns a row for each trial, the ranked ones first: its parameters, its costs by name,
        `measured`, and why it was `refused`. `pandas.DataFrame(found.rows())` is their table."""
        names = [one.name for one in fields(Costs) if one.name not in ("stalls", "limiters")]
        return [
            {
                **trial.configuration,
                **{name: getattr(trial.costs, name, None) for name in names},
                "measured": trial.measured,
                "refused": trial.refused,
            }
            for trial in (*self.ranked, *self.refused)
        ]

    def to_csv(self) -> str:
        """Returns the rows as CSV, with a line of names."""
        out, rows = StringIO(), self.rows()
        writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()

    def measure(self, count: int = 3) -> Plan:
        """Returns up to `count` configurations to measure on hardware, which have not been, and the
        expected loss of taking the best of them. Raises WarploomError where none ran, and where
        they are for several devices."""
        ran = self.ranked
        if not ran:
            raise WarploomError(f"none of the {len(self.trials)} configurations ran")
        devices = {trial.configuration.get("device") for trial in ran}
        if len(devices) > 1:
            raise WarploomError(
                "configurations to measure can be suggested only for one device, but the space "
                f"has {len(devices)}: {', '.join(map(str, devices))}"
            )
        measured = {at: one.measured for at, one in enumerate(ran) if one.measured is not None}
        configurations = [one.configuration for one in ran]
        modelled = [one.costs.seconds for one in ran if one.costs]
        belief = believed(configurations, modelled, measured)
        taken, losses = chosen(belief, measured, count)
        return Plan(tuple(configurations[at] for at in taken), tuple(losses))

    def corrected(self, measurements: Sequence[Measurement]) -> Tuned:
        """Returns the tuning with what was measured, and with modelled times corrected by it,
        device by device. Raises WarploomError where none of it is of a trial, or fits several
        devices."""
        found: dict[int, float] = {}
        for one in measurements:
            at = self._find(one.configuration)
            if at is not None and self.trials[at].costs is not None:
                found[at] = one.seconds
        if not found:
            raise WarploomError("measured: none of the measured configurations has a modelled time")
        trials = list(self.trials)
        groups: dict[Any, list[int]] = {}
        for at, trial in enumerate(trials):
            if trial.costs is not None:
                groups.setdefault(trial.configuration.get("device"), []).append(at)
        for places in groups.values():
            own = {at: found[place] for at, place in enumerate(places) if place in found}
            if not own:
                continue
            ran = [trials[place] for place in places]
            modelled = [one.costs.seconds for one in ran if one.costs]
            belief = believed([one.configuration for one in ran], modelled, own)
            for at, place in enumerate(places):
                trials[place] = replace(
                    ran[at],
                    measured=own.get(at),
                    seconds=own.get(at, float(np.exp(belief.mean[at]))),
                )
        return replace(self, trials=tuple(trials))

    def write(self, path: str | Path, form: str = "kernel-tuner") -> None:
        """Writes the trials as a cache file of Kernel Tuner, or as results in the format "t4".

        Raises WarploomError for another format, and where the file cannot be written.
        """
        if self.about is None:
            raise WarploomError(
                "only a result that tune() returned can be written, because other results do not "
                "describe the search"
            )
        write_results(self.trials, self.about, path, form)

    def _find(self, configuration: Configuration) -> int | None:
        fits = [
            at
            for at, trial in enumerate(self.trials)
            if all(trial.configuration.get(name) == value for name, value in configuration.items())
        ]
        if len(fits) > 1:
            raise WarploomError(
                f"measured: {described(configuration)} matches {len(fits)} configurations in the "
                "search space; tune for one device, or give the device in each key"
            )
        return fits[0] if fits else None


def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    """Returns whether one is nowhere worse than the other, and somewhere better; less is better."""
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def check_objectives(names: Sequence[str]) -> tuple[str, ...]:
    """Returns the objectives by name. Raises WarploomError for what is none."""
    for name in names:
        if name not in OBJECTIVES:
            raise WarploomError(
                f"there is no objective {name!r}; choose from {', '.join(OBJECTIVES)}"
            )
    if not names:
        raise WarploomError(f"give one or more objectives to minimize: {', '.join(OBJECTIVES)}")
    return tuple(names)
