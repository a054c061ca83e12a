"""Writes the trials of a tuning as result files that other tuners read: Kernel Tuner's cache files,
with which it also tunes in simulation, and results in the T4 format, version 1.0.0."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warploom.core.errors import WarploomError
from warploom.core.output_files import write_text
from warploom.tuning.trial import About, Trial

FORMATS = ("kernel-tuner", "t4")

_DURATIONS = ("compile_time", "verification_time", "benchmark_time", "strategy_time")
"""Times of the tuner itself that Kernel Tuner's readers want; ours say nothing of a GPU."""


def write_results(trials: Sequence[Trial], about: About, path: str | Path, form: str) -> None:
    """Writes the trials in one of FORMATS. Times are those that were measured, else the modelled
    ones; "time_source" says which. Raises WarploomError for another format, and where the file
    cannot be written."""
    if form not in FORMATS:
        raise WarploomError(f"there is no format {form!r}; choose from {', '.join(FORMATS)}")
    content = _cache(trials, about) if form == "kernel-tuner" else _results(trials)
    write_text(path, json.dumps(content, indent="") + "\n")


def _milliseconds(trial: Trial) -> float | None:
    if trial.costs is None:
        return None
    return 1e3 * (trial.costs.seconds if trial.seconds is None else trial.seconds)


def _source(trial: Trial) -> str:
    return "modelled" if trial.measured is None else "measured"


def _cache(trials: Sequence[Trial], about: About) -> dict[str, Any]:
    names = list(about.space)
    rows: dict[str, dict[str, Any]] = {}
    for trial in trials:
        time = _milliseconds(trial)
        row: dict[str, Any] = dict(trial.configuration)
        row["time"] = "RuntimeFailedConfig" if time is None else time
        row["times"] = [] if time is None else [time]
        row |= {**dict.fromkeys((*_DURATIONS, "framework_time"), 0), "time_source": _source(trial)}
        rows[",".join(str(trial.configuration[name]) for name in names)] = row
    return {
        "device_name": about.device,
        "kernel_name": about.kernel,
        "problem_size": list(about.problem_size),
        "tune_params_keys": names,
        "tune_params": {name: list(values) for name, values in about.space.items()},
        "objective": "time",
        "cache": rows,
    }


def _results(trials: Sequence[Trial]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for trial in trials:
        time = _milliseconds(trial)
        found = {"name": "time", "value": time, "unit": "ms"}
        source = {"name": "time_source", "value": _source(trial), "unit": ""}
        rows.append(
            {
                "configuration": trial.configuration,
                "objectives": ["time"],
                "times": {"runtimes": [] if time is None else [time]},
                "invalidity": "runtime" if time is None else "correct",
                "correctness": int(time is not None),
                "measurements": [] if time is None else [found, source],
            }
        )
    return {"results": rows, "schema_version": "1.0.0", "metadata": {"timeunit": "milliseconds"}}
