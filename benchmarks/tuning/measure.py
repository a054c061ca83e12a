"""Holds what tuning by modelled time picks against published search spaces: `spaces.json` has times
that were measured on two devices each, `kernels.cu` kernels with the same parameters.

    python benchmarks/tuning/measure.py --workers 2 --cache tuning.jsonl

prints the table of docs/timing.md. What was modelled is kept in the file, to go on from there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from compiler import Compiler
from published import SPACES, modelled

from warploom.core.errors import WarploomError
from warploom.tuning.correction import Floats, believed
from warploom.tuning.plan import chosen

Configuration = dict[str, Any]
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """A search space on a device, with milliseconds measured there and on the other device."""

    space: str
    device: str
    other: str
    configurations: tuple[Configuration, ...]
    measured: tuple[float, ...]
    measured_on_other: tuple[float, ...]


def cases() -> Iterator[Case]:
    """Yield the published search spaces on each of their devices."""
    spaces = json.loads((HERE / "spaces.json").read_text("utf-8"))["spaces"]
    for name, space in spaces.items():
        names, rows = space["parameters"], space["rows"]
        devices = list(space["files"])
        chosen = tuple(dict(zip(names, row, strict=False)) for row in rows)
        times = [tuple(row[len(names) + at] for row in rows) for at in range(2)]
        for at, device in enumerate(devices):
            yield Case(name, device, devices[1 - at], chosen, times[at], times[1 - at])


def trial(
    space: str, device: str, configuration: Configuration, compiler: Compiler | None
) -> tuple[float, str]:
    """Return the modelled milliseconds of a configuration, and why there are none."""
    try:
        return 1e3 * modelled(SPACES[space], device, configuration, compiler), ""
    except WarploomError as error:
        return float("nan"), str(error).partition("\n")[0]


def model(
    wanted: Sequence[Case], file: Path, workers: int, compiler: Compiler | None
) -> dict[str, float]:
    """Return the modelled milliseconds of all configurations by key; those in the file are not
    modelled again."""
    known: dict[str, float] = {}
    if file.exists():
        for line in file.read_text("utf-8").splitlines():
            known.update([json.loads(line)])
    todo = [(c.space, c.device, one) for c in wanted for one in c.configurations]
    left = [job for job in todo if _key(*job) not in known]
    with ProcessPoolExecutor(workers) as pool, file.open("a", encoding="utf-8") as kept:
        jobs = {pool.submit(trial, *job, compiler): job for job in left}
        for future in as_completed(jobs):
            (time, reason), job = future.result(), jobs[future]
            known[_key(*job)] = time
            if reason:
                print(f"{job}: {reason}", flush=True)
            kept.write(json.dumps([_key(*job), time]) + "\n")
            kept.flush()
    return known


def _key(space: str, device: str, configuration: Configuration) -> str:
    return json.dumps([space, device, *configuration.values()])


def ranks(values: Floats) -> Floats:
    """Return the rank of each value; equal ones share their mean."""
    return np.array([(values < one).sum() + ((values == one).sum() - 1) / 2 for one in values])


def picks(guess: Floats, measured: Floats) -> str:
    """Return Spearman's coefficient, and in percent of the best what the first pick and the best of
    the first three have."""
    times = measured[np.argsort(guess, kind="stable")]
    spearman = np.corrcoef(ranks(guess), ranks(measured))[0, 1]
    best = times.min()
    return f"{spearman:.2f} | {100 * best / times[0]:.0f} % | {100 * best / times[:3].min():.0f} %"


def corrected(configurations: Sequence[Configuration], modelled: Floats, measured: Floats) -> str:
    """Return what `tune` finds that measures three times two configurations of its choice, in
    percent of the best, and what it expects."""
    known: dict[int, float] = {}
    losses = [0.0]
    for _ in range(3):
        belief = believed(configurations, modelled.tolist(), known)
        taken, losses = chosen(belief, known, 2)
        known |= {at: float(measured[at]) for at in taken}
    share = measured.min() / min(known.values())
    return f"{100 * share:.0f} % ({100 / (1 + losses[-1]):.0f} %)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path("tuning.jsonl"))
    parser.add_argument("--space", choices=SPACES)
    parser.add_argument("--nvrtc", type=Path, help="the folder of another NVRTC (compiler.py)")
    asked = parser.parse_args()
    compiler = None if asked.nvrtc is None else Compiler(asked.nvrtc)
    wanted = [case for case in cases() if asked.space in (None, case.space)]
    known = model(wanted, asked.cache, asked.workers, compiler)
    print(
        "| space | device | configurations | Spearman | first pick | best of three |"
        " other device's times: Spearman | first pick | best of three | six measured (expected) |"
    )
    print("|" + " --- |" * 10)
    for case in wanted:
        keys = (_key(case.space, case.device, one) for one in case.configurations)
        guess = np.array([known.get(key, np.nan) for key in keys])
        ran = np.isfinite(guess)
        measured, other = np.array(case.measured)[ran], np.array(case.measured_on_other)[ran]
        tried = [one for one, did in zip(case.configurations, ran, strict=True) if did]
        cells = (
            f"{case.space} | {case.device} | {ran.sum()}",
            picks(guess[ran], measured),
            picks(other, measured),
            corrected(tried, guess[ran], measured),
        )
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
