"""Prints what the measured times of dedispersion are made of: a regression over all configurations.

    python benchmarks/tuning/explained.py PATH

PATH is a clone of https://github.com/AutoTuningAssociation/benchmark_hub (`sample.py`). Prints, for
each device, the cycles of a multiprocessor for a channel of a warp's sum (two conversions of 16
lanes a cycle take 4) and how many each of these adds: a sector that L1 misses; DRAM's own time for
what a wave misses in L2; the time by which one sub-partition has more to do than the mean, if the
first warp of every block is on the first one.
"""

from __future__ import annotations

import gzip
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from measure import ranks
from published import CHANNELS, DELAY, MEASURES, SAMPLES

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

ROW = SAMPLES + DELAY
NAMES = ("cycles", "sector missed in L1", "time of DRAM", "uneven sub-partitions")
PROBES = 96
"""Random pairs of a channel and a block whose sectors are counted."""


@dataclass(frozen=True)
class Hardware:
    """A device of the published times, by the figures of its specification; `l2_bytes` is the part
    of L2 that caches for one multiprocessor: of the A100, the half that is connected to it."""

    file: str
    sms: int
    mhz: int
    warps: int
    blocks: int
    l2_bytes: int
    dram_gb_per_s: int


DEVICES = {
    "a100": Hardware("A100", 108, 1410, 64, 32, 20 << 20, 1555),
    "rtx-a4000": Hardware("A4000", 48, 1560, 48, 16, 4 << 20, 448),
    "rtx-a6000": Hardware("A6000", 84, 1800, 48, 16, 6 << 20, 768),
}


class Shape:
    """What blocks of a configuration do, whatever the device."""

    def __init__(self, one: dict[str, Any], shifts: Floats) -> None:
        self.wide, self.high = (one[f"block_size_{at}"] for at in "xy")
        self.tiles: tuple[int, int] = one["tile_size_x"], one["tile_size_y"]
        self.strided_tiles = [one["tile_stride_x"], one["tile_stride_y"]]
        self.warps = -(-self.wide * self.high // 32)
        self.columns = -(-SAMPLES // (self.wide * self.tiles[0]))
        self.rows, self.rest = divmod(MEASURES, self.high * self.tiles[1])
        full, last = (self._sums(self.rest if short else MEASURES) for short in (False, True))
        self.sums = self.columns * (self.rows * full.sum() + last.sum())
        uneven = (4 * last.max() - last.sum()) * (self.warps % 4 == 0)
        self.uneven = self.columns * uneven / self.sums
        self.missed = self._missed(shifts)

    def _near(self, axis: int) -> Numbers:
        threads = np.arange(self.wide * self.high)
        near = threads // self.wide if axis else threads % self.wide
        return near * (1 if self.strided_tiles[axis] else self.tiles[axis])

    def _step(self, axis: int) -> int:
        return (self.wide, self.high)[axis] if self.strided_tiles[axis] else 1

    def _sums(self, measures: int) -> Numbers:
        """Return the sums of the warps of a block, by sub-partition, where so many measures are
        left."""
        steps = self._step(1) * np.arange(self.tiles[1])[:, None]
        inside = self._near(1) + steps < measures
        begins = np.arange(0, self.wide * self.high, 32)
        of_warps = np.logical_or.reduceat(inside, begins, axis=1).sum(axis=0) * self.tiles[0]
        return np.bincount(np.arange(len(of_warps)) % 4, of_warps, 4).astype(np.int64)

    def _missed(self, shifts: Floats) -> float:
        """Return the sectors that a block reads of a row for one sum, by warp."""
        random = np.random.default_rng(0)
        found = 0
        for _ in range(PROBES):
            channel = random.integers(CHANNELS)
            x = random.integers(self.columns) * self.wide * self.tiles[0]
            y = random.integers(max(1, self.rows)) * self.high * self.tiles[1]
            measure = y + self._near(1) + random.integers(self.tiles[1]) * self._step(1)
            delay = (measure * 0.02 * shifts[channel]).astype(np.int64)
            found += len(np.unique((channel * ROW + x + self._near(0) + delay) // 32))
        return found / PROBES / self.warps

    def dram_bytes(self, device: Hardware) -> float:
        """Return the bytes that a multiprocessor has from DRAM for a channel of a warp's sum."""
        held = min(device.blocks, device.warps // self.warps)
        blocks = min(self.columns * (self.rows + (self.rest > 0)), held * device.sms)
        width = min(SAMPLES, blocks * self.wide * self.tiles[0]) + DELAY
        over = np.clip(width * CHANNELS / device.l2_bytes - 1, 0, 1)
        share = over + (1 - over) / np.prod(self.tiles)
        return float(share * width / (blocks * self.warps))


def main(root: Path) -> None:
    inverse = 1.0 / (1425.0 + np.arange(CHANNELS) * 0.1953125) ** 2
    shifts = 4148.808 * (inverse - inverse[-1]) / 0.00004096
    shapes: dict[str, Shape] = {}
    for name, device in DEVICES.items():
        file = root / "cachefiles/dedispersion_milo" / f"{device.file}.json.gz"
        cache = json.loads(gzip.decompress(file.read_bytes()))["cache"]
        ran = {key: one for key, one in cache.items() if isinstance(one["time"], int | float)}
        for key, one in ran.items():
            shapes.setdefault(key, Shape(one, shifts))
        made = [shapes[key] for key in ran]
        _print_coefficients(name, device, made, np.array([one["time"] for one in ran.values()]))


def _print_coefficients(name: str, device: Hardware, made: list[Shape], times: Floats) -> None:
    """Print the coefficients of a device, and Spearman's of what they predict."""
    sums = np.array([one.sums for one in made])
    cycles = times * device.mhz * 1e3 * device.sms / (sums * CHANNELS)
    rate = device.dram_gb_per_s * 1e3 / device.mhz / device.sms
    columns = [
        np.ones(len(made)),
        np.array([one.missed for one in made]),
        np.array([one.dram_bytes(device) / rate for one in made]),
        4 * np.array([one.uneven for one in made]),
    ]
    found = np.linalg.lstsq(np.stack(columns, axis=1), cycles, rcond=None)[0]
    guess = sums * sum(part * each for part, each in zip(columns, found, strict=True))
    spearman = np.corrcoef(ranks(guess), ranks(times))[0, 1]
    figures = ", ".join(f"{what} {value:.2f}" for what, value in zip(NAMES, found, strict=True))
    print(f"{name}: {figures}; Spearman {spearman:.2f} of {len(made):,}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
