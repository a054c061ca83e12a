"""Launches of the kernels of published search spaces, shortened, and their modelled time.

A wave of blocks is as many as the device holds. Of a convolution two waves are replayed. The other
kernels have a loop that takes all their time: one wave is replayed with two short lengths of it,
and both tell what a turn takes. Waves follow each other until all blocks of the published launch
have run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warploom.host.device import Device
from warploom.host.kernel import Kernel

Configuration = dict[str, Any]
Grid = tuple[int, int]
HERE = Path(__file__).parent

POINTS = 20_000_000
SIDE = 4096
"""Rows and columns of the image and of the matrices."""
CHANNELS, SAMPLES, MEASURES, DELAY = 1536, 25_000, 2048, 650


@dataclass(frozen=True)
class Space:
    """A kernel, its published launch, and its arguments for a length of its loop; `lengths` are two
    short ones and the published one. `whole` is how many times the work of a block the launch has,
    where that is less than its blocks: threads of those at the edges have none."""

    kernel: str
    grid: Callable[[Configuration], Grid]
    block: Callable[[Configuration], Grid]
    arguments: Callable[[Device, int], tuple[Any, ...]]
    lengths: tuple[int, int, int] | None = None
    length_macro: str = ""
    whole: Callable[[Configuration], float] | None = None


def modelled(space: Space, device: str, configuration: Configuration) -> float:
    """Return the modelled seconds of the published launch."""
    if space.lengths is None:
        gpu = Device(device, record=True, sampled=True)
        run = _launch(space, gpu, configuration, 0)
        return run.time(sample=2).seconds
    short, longer, whole = space.lengths
    cycles: list[int] = []
    for length in (short, longer):
        gpu = Device(device, record=True, sampled=True)
        timing = _launch(space, gpu, configuration, length).time(sample=1)
        cycles.append(timing.sample_cycles)
    turn = (cycles[1] - cycles[0]) / (longer - short)
    blocks = timing.blocks if space.whole is None else space.whole(configuration)
    waves = blocks / timing.sampled_blocks
    return waves * (cycles[1] + (whole - longer) * turn) / (timing.spec.clock_mhz * 1e6)


def _launch(space: Space, gpu: Device, configuration: Configuration, length: int) -> Any:
    kernel = compiled(space, gpu, configuration, length)
    launcher = kernel[space.grid(configuration), space.block(configuration)]
    return launcher(*space.arguments(gpu, length))


def compiled(space: Space, gpu: Device, configuration: Configuration, length: int) -> Kernel:
    """Return the kernel of a configuration."""
    source, options = source_of(space, configuration, length)
    return gpu.compile(source, options=options)[space.kernel]


def source_of(space: Space, configuration: Configuration, length: int) -> tuple[str, list[str]]:
    """Return the source of a configuration, and its options for the compiler."""
    source = (HERE / "kernels.cu").read_text("utf-8")
    if space.length_macro:
        source = source.replace("CORNERS", _corners(length), 1)
    macros = {space.kernel.upper(): 1, **configuration}
    if space.length_macro:
        macros[space.length_macro] = length
    return source, [f"-D{name}={value}" for name, value in macros.items()]


def _corners(count: int) -> str:
    """Return the corners of a polygon around the origin, as initial values."""
    corners = np.random.default_rng(0).standard_normal((count, 2))
    order = np.argsort(np.arctan2(corners[:, 1], corners[:, 0]))
    return ",".join(f"{{{x:.6f}f,{y:.6f}f}}" for x, y in corners[order])


def _cover(size: int, *parts: int) -> int:
    return -(-size // int(np.prod(parts)))


def _tiles(width: int, height: int) -> Callable[[Configuration], Grid]:
    return lambda c: (
        _cover(width, c["block_size_x"], c["tile_size_x"]),
        _cover(height, c["block_size_y"], c["tile_size_y"]),
    )


def _area(width: int, height: int) -> Callable[[Configuration], float]:
    return lambda c: (
        width * height / int(np.prod([c[f"{kind}_size_{at}"] for kind in KINDS for at in "xy"]))
    )


KINDS = "block", "tile"


def _threads(c: Configuration) -> Grid:
    return c["block_size_x"], c.get("block_size_y", 1)


def _floats(gpu: Device, *counts: int) -> tuple[Any, ...]:
    return tuple(gpu.zeros(count, np.float32) for count in counts)


def _points(gpu: Device, length: int) -> tuple[Any, ...]:
    """Return the first points alone: so many as the blocks that are executed reach."""
    points = np.random.default_rng(1).standard_normal((1 << 21, 2)).astype(np.float32)
    return gpu.zeros(len(points), np.int32), gpu.to_device(points.reshape(-1)), POINTS


def _products(gpu: Device, length: int) -> tuple[Any, ...]:
    matrices = _floats(gpu, SIDE * length, SIDE * length, SIDE * SIDE)
    return SIDE, SIDE, length, 1.0, 1.0, *matrices


def _signals(gpu: Device, length: int) -> tuple[Any, ...]:
    """Return as many of the 1,536 channels, evenly spread."""
    channels = np.arange(CHANNELS)
    inverse = 1.0 / (1425.0 + channels * 0.1953125) ** 2
    shifts = (4148.808 * (inverse - inverse[-1]) / 0.00004096).astype(np.float32)
    data = gpu.zeros((SAMPLES + DELAY) * length, np.uint8)
    every = gpu.to_device(shifts[:: CHANNELS // length][:length].copy())
    return data, *_floats(gpu, MEASURES * SAMPLES), every, length


SPACES = {
    "convolution": Space(
        "convolution",
        _tiles(SIDE, SIDE),
        _threads,
        lambda gpu, length: _floats(gpu, SIDE * SIDE, (SIDE + 32) ** 2),
    ),
    "pnpoly": Space(
        "pnpoly",
        lambda c: (_cover(POINTS, c["block_size_x"], c["tile_size"]), 1),
        _threads,
        _points,
        (24, 48, 600),
        "EDGES",
    ),
    "gemm": Space(
        "gemm",
        lambda c: (SIDE // c["MWG"], SIDE // c["NWG"]),
        lambda c: (c["MDIMC"], c["NDIMC"]),
        _products,
        (32, 64, SIDE),
    ),
    "dedispersion": Space(
        "dedispersion",
        _tiles(SAMPLES, MEASURES),
        _threads,
        _signals,
        (16, 48, CHANNELS),
        whole=_area(SAMPLES, MEASURES),
    ),
}
