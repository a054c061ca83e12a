"""Holds measurements of kernels, and writes the table and the summary of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Timing:
    """Holds the figures of one launch shape.

    `seconds` is processor time a launch of optimised code, `compile_seconds` what the first launch
    of all took beyond that, and `optimise_seconds` what the first one of optimised code did.
    `tier` is the code of the launches that `seconds` is of (`Run.tier`).
    """

    shape: str
    warp_instructions: int
    seconds: float
    compile_seconds: float
    optimise_seconds: float
    tier: str

    @property
    def rate(self) -> float:
        """Gives warp instructions a second of processor time."""
        return self.warp_instructions / self.seconds


@dataclass(frozen=True)
class Measurement:
    """Holds a kernel's timings by shape, the natural one first.

    `native_seconds` is what the native loop takes in the natural shape.
    """

    name: str
    timings: tuple[Timing, ...]
    native_seconds: float | None = None

    @property
    def ratios(self) -> list[float]:
        """Gives the rate of each shape relative to the best of them."""
        best = max(timing.rate for timing in self.timings)
        return [timing.rate / best for timing in self.timings]

    @property
    def native_ratio(self) -> float:
        """Gives the time of the native loop over that of the launch in the natural shape."""
        return (self.native_seconds or 0.0) / self.timings[0].seconds


HEADER = (
    f"{'kernel':26}{'Mwi/s':>8}{'compile':>9}{'optimize':>10}{'native':>8}"
    "  shapes, relative to the best"
)


def row(measured: Measurement) -> str:
    """Writes one kernel's line of the table."""
    natural = measured.timings[0]
    cells = [
        f"{timing.shape} {ratio:.2f}"
        for timing, ratio in zip(measured.timings, measured.ratios, strict=True)
    ]
    native = "" if measured.native_seconds is None else f"{measured.native_ratio:.2f}"
    return (
        f"{measured.name:26}{natural.rate / 1e6:8,.0f}{natural.compile_seconds:9.2f}"
        f"{natural.optimise_seconds:10.2f}{native:>8}  "
        + "  ".join(f"{cell:>12}" for cell in cells)
    )


def table(measurements: Sequence[Measurement]) -> str:
    """Writes the table, a line for each kernel."""
    return "\n".join([HEADER, *map(row, measurements)])


def summary(measurements: Sequence[Measurement]) -> str:
    """Writes means, medians, percentiles and the worst ratio of the table."""
    ratios = [
        (ratio, f"{measured.name} in {timing.shape}")
        for measured in measurements
        for timing, ratio in zip(measured.timings, measured.ratios, strict=True)
    ]
    rates = [measured.timings[0].rate / 1e6 for measured in measurements]
    lines = [
        f"{len(measurements)} kernels, {len(ratios)} launch shapes",
        f"code of the timed launches: {_codes(measurements)}",
        f"rate relative to the rate in the kernel's best shape: {mean_and_worst(ratios)}",
        f"rate in the natural shape: median {np.median(rates):,.0f},"
        f" 10th percentile {np.quantile(rates, 0.1):,.0f} Mwi/s",
        _seconds("compile", [m.timings[0].compile_seconds for m in measurements]),
        _seconds("optimize", [m.timings[0].optimise_seconds for m in measurements]),
    ]
    natives = [(m.native_ratio, m.name) for m in measurements if m.native_seconds is not None]
    if natives:
        lines.append(
            f"native loop's time divided by Warploom's, {len(natives)} kernels:"
            f" {mean_and_worst(natives)}"
        )
    return "\n".join(lines)


def _codes(measurements: Sequence[Measurement]) -> str:
    """Names the codes in which launches were timed."""
    return ", ".join(sorted({timing.tier for one in measurements for timing in one.timings}))


def _seconds(name: str, seconds: Sequence[float]) -> str:
    """Writes the median and the 90th percentile of times."""
    median, tenth = np.median(seconds), np.quantile(seconds, 0.9)
    return f"{name}: median {median:.2f} s, 90th percentile {tenth:.2f} s"


def mean_and_worst(ratios: Sequence[tuple[float, str]]) -> str:
    """Writes the geometric mean of ratios, and the least of them with its name."""
    worst, name = min(ratios)
    mean = statistics.geometric_mean(ratio for ratio, _ in ratios)
    return f"geometric mean {mean:.2f}, worst {worst:.2f} ({name})"
