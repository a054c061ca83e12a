"""Launches of the kernels of published search spaces, shortened, and their modelled time.

A wave of blocks is as many as the device holds. Of a convolution two waves are replayed, of a point
in polygon one: its code depends on how many edges there are. The other kernels have a loop that
takes all their time: one wave is replayed with two short lengths of it, from which follows what a
turn takes. Waves follow each other until the SM that has most blocks has run all of its own; the
last row of the grid comes after the others, and after these the blocks that have nothing to do.

Blocks of dedispersion read the same rows for each of their sums, which are more than L1 holds. If
L2 holds what a wave reads, the first sum alone waits for DRAM. A short loop reads less, so its sums
read rows of their own here, and are replayed three times: as they are, with a DRAM that is as fast
as L2, and so with one block on each SM. The replayed blocks begin together and stay in step; those
of a long launch do not: while one waits for DRAM, the others of its SM have sums that L2 answers.
All sums of a block then take what they take of the SM (`FAST` DRAM), or as long as its first sum
and the others after it take one after the other, where that is more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from compiler import Compiler

from warploom.devices.timing import TimingSpec
from warploom.host.device import Device
from warploom.host.kernel import Kernel
from warploom.host.run import Run
from warploom.timing.result import Timing

Configuration = dict[str, Any]
Grid = tuple[int, int]
HERE = Path(__file__).parent

POINTS = 20_000_000
SIDE = 4096
"""Rows and columns of the image and of the matrices."""
CHANNELS, SAMPLES, MEASURES, DELAY = 1536, 25_000, 2048, 650
SUMS = 2
"""So many sums of a thread of dedispersion are replayed."""
FAST = 32
"""How many times as fast DRAM is where L2 has all data."""
L2_PARTITIONS = {(8, 0): 2, (9, 0): 2}
"""Parts of L2 by compute capability, where there are several: each keeps what SMs near it read, so
data that all read is held once in each (NVIDIA A100 Tensor Core GPU Architecture, 2020). An H100,
whose 50 MiB are in two, read the data of dedispersion from DRAM once for each row of blocks where a
wave reads up to 20 MiB, and for every sum from 33 MiB on (validation/hardware/h100.json)."""
EMPTY_WAVES = 4
"""Waves that are replayed of blocks that have nothing to do."""


@dataclass(frozen=True)
class Part:
    """Blocks of a launch that have as much to do as each other: their grid, the first row that they
    work on, and how many times as much as the blocks that are replayed they do. `empty`: their
    threads have nothing to do."""

    grid: Grid
    first: int = 0
    share: float = 1.0
    empty: bool = False


@dataclass(frozen=True)
class Space:
    """A kernel, the parts of its published launch, which run one after the other, and its arguments
    for a length of its loop and the first row of a part; `lengths` are two short ones and the
    published one, which is alone where the loop is not shortened."""

    kernel: str
    parts: Callable[[Configuration], Sequence[Part]]
    block: Callable[[Configuration], Grid]
    arguments: Callable[[Device, int, int], tuple[Any, ...]]
    lengths: tuple[int, ...] = ()
    rereads: Callable[[Configuration, int, int], int] = lambda c, blocks, l2_bytes: 0
    """How often blocks read the same data again from an L2 of so many bytes, where as many run at a
    time."""


def modelled(
    space: Space, device: str, configuration: Configuration, compiler: Compiler | None = None
) -> float:
    """Return the modelled seconds of the published launch."""
    gpu = Device(device, record=True, sampled=True)
    kernel = compiled(space, gpu, configuration, compiler)
    block = space.block(configuration)

    def run(part: Part, length: int = 0) -> Run:
        return kernel[part.grid, block](*space.arguments(gpu, length, part.first))

    def seconds(part: Part) -> float:
        if part.empty:
            return run(part, space.lengths[0]).time(sample=EMPTY_WAVES).seconds
        if not space.lengths:
            return run(part).time(sample=2).seconds
        runs = [run(part, length) for length in _tried(space)]
        timings = [made.time(sample=1) for made in runs]
        wave = _wave(timings, space.lengths)
        held = gpu.spec.l2_bytes // L2_PARTITIONS.get(gpu.spec.compute_capability, 1)
        again = space.rereads(configuration, timings[-1].sampled_blocks, held)
        if again:
            fast = _without_dram(timings[-1].spec)
            warm = _wave([made.time(sample=1, spec=fast) for made in runs], space.lengths)
            few = [run(replace(part, grid=(gpu.spec.sms, 1)), n) for n in _tried(space)]
            alone = _wave([made.time(spec=fast) for made in few], space.lengths)
            wave = max((1 + again) * warm, wave + again * alone) / (1 + again)
        return part.share * _waves(timings[-1]) * wave / (timings[-1].spec.clock_mhz * 1e6)

    return sum(map(seconds, space.parts(configuration)))


def _without_dram(spec: TimingSpec) -> TimingSpec:
    """Return the time of a device whose L2 has all data: DRAM is as near as L2, and fast."""
    bandwidth = FAST * spec.dram_gb_per_s
    return replace(spec, latency_dram=spec.latency_l2, dram_gb_per_s=bandwidth)


def _tried(space: Space) -> tuple[int, ...]:
    """Return the lengths that are modelled."""
    return space.lengths[:-1] or space.lengths


def _wave(timings: Sequence[Timing], lengths: Sequence[int]) -> float:
    """Return the cycles of a wave of blocks whose loops have the published length, from one wave of
    each length that was modelled."""
    cycles = [timing.sample_cycles for timing in timings]
    if len(lengths) == 1:
        return float(cycles[-1])
    short, longer, whole = lengths
    return cycles[-1] + (whole - longer) * (cycles[1] - cycles[0]) / (longer - short)


def _waves(timing: Timing) -> float:
    """Return how many waves of blocks the SM runs that has most blocks, which is the last one."""
    return _cover(timing.blocks, timing.sms) / _cover(timing.sampled_blocks, timing.sms)


def compiled(
    space: Space, gpu: Device, configuration: Configuration, compiler: Compiler | None = None
) -> Kernel:
    """Return the kernel of a configuration; by Warploom's NVRTC, or by another."""
    source, options = source_of(space, configuration)
    if compiler is None:
        return gpu.compile(source, options=options)[space.kernel]
    ptx = compiler.ptx(source, options, gpu.spec.compute_capability)
    return gpu.compile(ptx, language="ptx")[space.kernel]


def source_of(space: Space, configuration: Configuration) -> tuple[str, list[str]]:
    """Return the source of a configuration, and its options for the compiler."""
    macros = {space.kernel.upper(): 1, **configuration}
    options = [f"-D{name}={value}" for name, value in macros.items()]
    return (HERE / "kernels.cu").read_text("utf-8"), options


def _cover(size: int, *parts: int) -> int:
    return -(-size // int(np.prod(parts)))


def _image(c: Configuration) -> list[Part]:
    wide, high = (_cover(SIDE, c[f"block_size_{at}"], c[f"tile_size_{at}"]) for at in "xy")
    return [Part((wide, high))]


def _series(c: Configuration) -> list[Part]:
    """Return the rows of whole blocks; the last one, where some threads have no measure; and the
    blocks without any: Kernel Tuner divided the problem by the size of a block alone, for the
    script of the published times (kernels/dedisp_milo) does not say that tiles count too."""
    wide, high = (c[f"block_size_{at}"] * c[f"tile_size_{at}"] for at in "xy")
    columns, rows = _cover(SAMPLES, wide), MEASURES // high
    share = SAMPLES / (columns * wide)
    parts = [Part((columns, rows), 0, share * _sums(c, 0))] if rows else []
    last = rows * high
    if last < MEASURES:
        parts.append(Part((columns, 1), last, share * _sums(c, last)))
    launched = _cover(SAMPLES, c["block_size_x"]) * _cover(MEASURES, c["block_size_y"])
    empty = launched - columns * _cover(MEASURES, high)
    return parts + [Part((empty, 1), MEASURES, empty=True)] * (empty > 0)


def _sums(c: Configuration, first: int) -> float:
    """Return how many times as many sums as the first `SUMS` of their threads the warps of a block
    have whose first measure is this one."""
    wide, high, tile = c["block_size_x"], c["block_size_y"], c["tile_size_y"]
    row = np.arange(wide * high) // wide
    near, step = (row, high) if c["tile_stride_y"] else (row * tile, 1)
    inside = first + near + step * np.arange(tile)[:, None] < MEASURES
    begins = np.arange(0, wide * high, 32)
    of_warps = np.logical_or.reduceat(inside, begins, axis=1).sum(axis=1)
    done = np.tile(of_warps, c["tile_size_x"])
    return float(done.sum() / done[:SUMS].sum())


def _sums_from_l2(c: Configuration, blocks: int, l2_bytes: int) -> int:
    """Return the sums of a thread behind the first, where L2 holds what these blocks read."""
    columns = min(SAMPLES, blocks * c["block_size_x"] * c["tile_size_x"])
    held = CHANNELS * (columns + DELAY) <= l2_bytes
    return held * (c["tile_size_x"] * c["tile_size_y"] - 1)


def _threads(c: Configuration) -> Grid:
    return c["block_size_x"], c.get("block_size_y", 1)


def _floats(gpu: Device, *counts: int) -> tuple[Any, ...]:
    return tuple(gpu.zeros(count, np.float32) for count in counts)


def _points(gpu: Device, length: int, first: int) -> tuple[Any, ...]:
    """Return the first points alone: so many as the executed blocks cover."""
    points = np.random.default_rng(1).random((1 << 21, 2), np.float32)
    return gpu.zeros(len(points), np.int32), gpu.to_device(points.reshape(-1)), POINTS


def _products(gpu: Device, length: int, first: int) -> tuple[Any, ...]:
    matrices = _floats(gpu, SIDE * length, SIDE * length, SIDE * SIDE)
    return SIDE, SIDE, length, 1.0, 1.0, *matrices


def _signals(gpu: Device, length: int, first: int) -> tuple[Any, ...]:
    """Return as many of the 1,536 channels, evenly spread. Each sum of a thread reads rows of its
    own."""
    channels = np.arange(CHANNELS)
    inverse = 1.0 / (1425.0 + channels * 0.1953125) ** 2
    shifts = (4148.808 * (inverse - inverse[-1]) / 0.00004096).astype(np.float32)
    row = SAMPLES + DELAY
    data = gpu.zeros(row * length * SUMS, np.uint8)
    every = gpu.to_device(shifts[np.arange(length) * CHANNELS // length])
    return data, *_floats(gpu, MEASURES * SAMPLES), every, length, first, SUMS, row * length


SPACES = {
    "convolution": Space(
        "convolution",
        _image,
        _threads,
        lambda gpu, length, first: _floats(gpu, SIDE * SIDE, (SIDE + 32) ** 2),
    ),
    "pnpoly": Space(
        "pnpoly",
        lambda c: [Part((_cover(POINTS, c["block_size_x"], c["tile_size"]), 1))],
        _threads,
        _points,
        (600,),
    ),
    "gemm": Space(
        "gemm",
        lambda c: [Part((SIDE // c["MWG"], SIDE // c["NWG"]))],
        lambda c: (c["MDIMC"], c["NDIMC"]),
        _products,
        (32, 64, SIDE),
    ),
    "dedispersion": Space(
        "dedispersion",
        _series,
        _threads,
        _signals,
        (64, 96, CHANNELS),
        _sums_from_l2,
    ),
}
