"""The published benchmarks, launched as they were and timed on the modelled device.

Most figures are of long runs; here they are differences of a longer and a shorter one, for a launch
begins and ends slowly. Streams begin with L2 as a long run leaves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from warploom.devices.timing import find_timing
from warploom.host.buffer import Buffer
from warploom.host.device import Device
from warploom.host.kernel import Kernel
from warploom.host.run import Run
from warploom.timing.policies import CacheModel
from warploom.validation.figures import Figure

Floats = npt.NDArray[np.float64]
Seconds = Callable[[Run], Floats]
"""The modelled time of a launch, by each of CODES."""

CODES = ("ptx", "machine")
STREAM_BYTES = {"init": 8, "read": 8, "scale": 16, "triad": 24}
STREAM_DIRTY = {"init": 1, "read": 0, "scale": 1 / 2, "triad": 1 / 3}
"""The share of the lines a stream touches that it writes, which is the share of L2's lines that are
dirty while it runs."""


def modelled(figure: Figure) -> Floats:
    """Returns the figure as the model has it, replaying each of CODES."""
    gpu = Device(figure.device, record=True)
    # The published benchmarks launch a kernel many times, so TLBs have its pages.
    timing = replace(find_timing(gpu.spec), latency_translation=0)
    if figure.clock_mhz is not None:
        timing = replace(timing, clock_mhz=figure.clock_mhz)

    l2 = CacheModel(dirty=STREAM_DIRTY.get(figure.kernel, 0))

    def seconds(run: Run) -> Floats:
        return np.array([run.time(code=code, spec=timing, l2=l2).seconds for code in CODES])

    family = figure.kernel.partition("_")[0]
    name = family if family in ("gemm", "sum") else figure.kernel
    measured = _BENCHMARKS[name](gpu, figure, seconds)
    return measured * timing.clock_mhz * 1e6 if figure.unit == "cycles" else measured


def _kernel(gpu: Device, name: str, **macros: int) -> Kernel:
    return gpu.compile(
        _text("kernels.cu"), options=[f"-D{key}={value}" for key, value in macros.items()]
    )[name]


def _text(name: str) -> str:
    return files("warploom.validation").joinpath(name).read_text("utf-8")


def _floats(gpu: Device, count: int) -> Buffer:
    return gpu.zeros(count, np.float32)


def _stream(gpu: Device, figure: Figure, seconds: Seconds) -> Floats:
    """GB/s, of so many more blocks than of half as many, two of them on an SM."""
    threads = figure.parameters["threads"]
    kernel = _kernel(gpu, figure.kernel)
    shared = gpu.spec.shared_bytes_per_sm * 3 // 8  # two blocks fit, three do not
    rounds = (8, 20) if threads < 1024 else (5, 11)
    times: list[Floats] = []
    for count in rounds:
        blocks = 2 * count * gpu.spec.sms
        n = blocks * threads
        a, b = gpu.zeros(n, np.float64), gpu.zeros(2 * n, np.float64)
        times.append(seconds(kernel[blocks, threads, 0, shared](a, b, n)))
        a.free()
        b.free()
    moved = STREAM_BYTES[figure.kernel] * threads * 2 * gpu.spec.sms * (rounds[1] - rounds[0])
    return moved / (times[1] - times[0]) / 1e9


def _cached(gpu: Device, figure: Figure, seconds: Seconds) -> Floats:
    """GB/s of all SMs, each with a block that reads the same again."""
    length = figure.parameters["kib"] * 256 // 512 * 512
    kernel = _kernel(gpu, "cached", LENGTH=length)
    out, data = _floats(gpu, 256), _floats(gpu, length)
    few = max(1, (1 << 16) // length)
    first, second = (
        seconds(kernel[gpu.spec.sms, 256](out, data, rounds, 0)) for rounds in (few, 2 * few)
    )
    return 4 * length * few * gpu.spec.sms / (second - first) / 1e9


def _roofline(gpu: Device, figure: Figure, seconds: Seconds) -> Floats:
    """GFLOP/s with as many blocks of 256 threads as the device holds."""
    factor = figure.parameters["factor"]
    rounds = (16, 32) if factor < 64 else (4, 8)
    kernel = _kernel(gpu, "roofline", FACTOR=factor)
    one = _floats(gpu, 256 * rounds[1])
    held = kernel[1, 256](one, one, _floats(gpu, 1), 2).occupancy.active_blocks
    blocks = gpu.spec.sms * held
    c, a, b = (_floats(gpu, count) for count in (blocks, *[blocks * 256 * rounds[1]] * 2))
    first, second = (seconds(kernel[blocks, 256](a, b, c, count)) for count in rounds)
    done = (2 + 2 * factor) * blocks * 256 * (rounds[1] - rounds[0])
    return done / (second - first) / 1e9


def _strided(gpu: Device, figure: Figure, seconds: Seconds) -> Floats:
    """Seconds of a load of a warp, by a block of 1,024 threads on one SM."""
    kernel, stride = _kernel(gpu, "strided"), figure.parameters["stride"]
    a, out = _floats(gpu, 64 * stride + 64), _floats(gpu, 1024)
    first, second = (seconds(kernel[1, 1024](a, out, n, stride, 0)) for n in (32, 96))
    return (second - first) / (64 * 8 * 32)


def _chase(gpu: Device, figure: Figure, seconds: Seconds) -> Floats:
    """Seconds of a load by one thread, in the order of the lines, after a first round."""
    lines = min(figure.parameters["kib"] * 8, 8192)
    x = gpu.zeros((lines, 16), np.int64)
    x.view[:, 0] = x.address + 128 * np.roll(np.arange(lines), -1)
    cold = figure.parameters["kib"] * 1024 > gpu.spec.l2_bytes
    few, many = (lines // 2, lines) if cold else (lines, 2 * lines)
    kernel = _kernel(gpu, "chase")
    first, second = (seconds(kernel[1, 1](x, steps)) for steps in (few, many))
    return (second - first) / (many - few)


def _barriers(gpu: Device, figure: Figure, seconds: Seconds) -> Floats:
    """Nanoseconds of a barrier."""
    kernel = _kernel(gpu, "barriers")
    few, many = (seconds(kernel[1, figure.parameters["threads"]](n)) for n in (64, 128))
    return (many - few) / 64 * 1e9


def _gemm(gpu: Device, figure: Figure, seconds: Seconds) -> Floats:
    """GFLOP/s of as many blocks as the device holds, in rows as long as those of the published
    product at most."""
    side, block = _GEMM[figure.kernel]
    kernel = _kernel(gpu, figure.kernel)
    data = _floats(gpu, side * side)
    held = kernel[1, block](data, data, _floats(gpu, side * side), side, 32).occupancy.active_blocks
    blocks = gpu.spec.sms * held
    wide = max(count for count in range(1, MOST_GEMM // side + 1) if blocks % count == 0)
    n = max(wide, blocks // wide) * side
    depths = (64, 192)
    a, b, c = (_floats(gpu, size) for size in (n * depths[1], depths[1] * n, n * n))
    grid = wide, blocks // wide
    first, second = (seconds(kernel[grid, block](a, b, c, n, k)) for k in depths)
    return 2 * blocks * side**2 * (depths[1] - depths[0]) / (second - first) / 1e9


def _sum(gpu: Device, figure: Figure, seconds: Seconds) -> Floats:
    """Milliseconds of a sum of 2^29 integers, by the time of a block in the middle of a launch."""
    kernel = gpu.compile(_text("counted.cu"))[figure.kernel]
    each = 256 * (2 if figure.kernel in _OF_TWO else 1)
    one = gpu.zeros(each, np.int32)
    held = kernel[1, 256, 0, 1024](one, one, each).occupancy.active_blocks
    times: list[Floats] = []
    waves = (4, 10)
    for count in waves:
        blocks = gpu.spec.sms * held * count
        data, sums = (gpu.zeros(size, np.int32) for size in (blocks * each, blocks))
        times.append(seconds(kernel[blocks, 256, 0, 1024](data, sums, blocks * each)))
    blocks = gpu.spec.sms * held * (waves[1] - waves[0])
    return (times[1] - times[0]) / blocks * (SUMMED // each) * 1e3


SUMMED = 1 << 29
_OF_TWO = ("sum_of_two", "sum_of_strided_pairs")
"""Kernels of which each thread begins with two integers."""

MOST_GEMM = 4096
"""The published products have 4,092 rows and columns."""


_GEMM: Mapping[str, tuple[int, tuple[int, ...] | int]] = {
    "gemm_naive": (32, (32, 32)),
    "gemm_coalesced": (32, 1024),
    "gemm_shared": (32, 1024),
    "gemm_rows": (64, 512),
    "gemm_tiles": (128, 256),
}
"""By kernel, how many rows and columns a block makes, and its threads."""

_BENCHMARKS: Mapping[str, Callable[[Device, Figure, Seconds], Floats]] = {
    **dict.fromkeys(STREAM_BYTES, _stream),
    "cached": _cached,
    "roofline": _roofline,
    "strided": _strided,
    "chase": _chase,
    "barriers": _barriers,
    "gemm": _gemm,
    "sum": _sum,
}
