"""Launches: shapes, options and arguments, right and wrong, of two kernels whose results NumPy
calculates.

A case is a text of lines `field = value` (JSON); fields that are left out have good values. Values
that JSON lacks are names in ODD.
"""

from __future__ import annotations

import json
import linecache
import math
import operator
from typing import Any

import hypothesis.strategies as st
import numpy as np

import warploom as wl
from fuzzing.cases import Case, Target
from fuzzing.drawing import draw

SOURCE = """
__device__ unsigned place(unsigned &thread, unsigned &threads)
{
    threads = blockDim.x * blockDim.y * blockDim.z;
    thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    return ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * threads + thread;
}

extern "C" __global__ void sum(unsigned *out, unsigned n, short c, double d, long long step)
{
    unsigned thread, threads, i = place(thread, threads);
    if (i < n) out[i] = (unsigned)(i * step + c + (long long)d);
}

extern "C" __global__ void reverse(unsigned *out, unsigned n)
{
    extern __shared__ unsigned own[];
    unsigned thread, threads, i = place(thread, threads);
    own[thread] = 5 * i;
    __syncthreads();
    if (i < n) out[i] = own[threads - 1 - thread];
}
"""

ELEMENTS = 256
"""Of the buffer that the kernels write."""

GOOD: dict[str, Any] = {
    "kernel": "sum",
    "device": {},
    "grid": 2,
    "block": 64,
    "out": "odd:buffer",
    "n": 100,
    "c": -3,
    "d": 2.5,
    "step": 3,
    "options": {},
}

ODD: dict[str, Any] = {
    "none": None,
    "text": "7",
    "bytes": b"7",
    "nan": math.nan,
    "infinity": math.inf,
    "object": object(),
    "list": [1, 2],
    "empty": (),
    "nested": ((1, 2), 3),
    "true": True,
    "complex": 1j,
    "numpy 64": np.int64(64),
    "numpy 8": np.uint8(8),
    "numpy float": np.float32(1.5),
    "numpy array": np.arange(3),
    "numpy scalar array": np.array(5),
    "class": int,
}
"""Values of types that JSON lacks, or that few calls take."""

BUFFERS = ("buffer", "host array", "short", "doubles", "freed", "another device", "address")
NUMBERS = (-1, 0, 1, 1025, 2**16, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 2**70, -(2**63), 1.5)
"""Where limits lie."""

ODD_VALUES = [*NUMBERS, *(f"odd:{name}" for name in ODD)]
SHAPES = [*ODD_VALUES, [], [1, 2, 3, 4], [1, 0], [2, -1], [1, 2.5], [65536, 65536, 65536], ["1"]]
CHANGES: dict[str, list[Any]] = {
    "grid": SHAPES,
    "block": [*SHAPES, [32, 32, 2], [1, 1, 65], 0, 1024],
    "stream": ["odd:stream", "odd:stream", *ODD_VALUES],
    "shared": [*ODD_VALUES, 16, 1 << 20],
    "out": [*(f"odd:{name}" for name in BUFFERS), *ODD_VALUES],
    "n": [*ODD_VALUES, 256, 257],
    "c": [*ODD_VALUES, 32767, 32768, -32768],
    "d": ODD_VALUES,
    "step": ODD_VALUES,
    "extra": ODD_VALUES,
}
OPTIONS: dict[str, list[Any]] = {
    "max_instructions": [1, 5, 2**62, *(value for value in ODD_VALUES if value != "odd:none")],
    "schedule": ["fair", "random", "adversarial", "convergent", *ODD_VALUES],
    "seed": [7, -7, *ODD_VALUES],
    "cooperative": [True, False, *ODD_VALUES],
    "strict": [True, False, *ODD_VALUES],
    "max_instruction": [5],
    "": [1],
}
DEVICE: dict[str, list[Any]] = {
    "engine": ["compiled", "reference", "compield", *ODD_VALUES],
    "workers": [1, 2, -1, 0, 1.5, "odd:none", "odd:text", "odd:true"],
    "warp_size": [32, 64, 16, 33, 0, -32, "odd:none", "odd:text"],
    "cc": ["7.5", "5.2", "odd:none", 9.0, "99.9"],
    "name": ["gtx-1080", "h100", "rtx", *ODD_VALUES],
}
NOT_EXACT = 2.0**31
"""Doubles beyond are not compared: C++ does not define their conversion."""


class WrongResult(AssertionError):
    """A launch wrote something else than NumPy calculates."""


@st.composite
def launches(draw: st.DrawFn) -> str:
    """Draws a good launch, then up to two changes of it."""
    fields: dict[str, Any] = {
        "kernel": draw(st.sampled_from(["sum", "reverse"])),
        "device": {
            "engine": draw(st.sampled_from(["compiled", "reference"])),
            "workers": draw(st.integers(1, 2)),
        },
        "grid": draw(st.integers(1, 9) | st.lists(st.integers(1, 4), min_size=1, max_size=3)),
        "block": draw(st.integers(1, 1024) | st.lists(st.integers(1, 10), min_size=1, max_size=3)),
        "n": draw(st.integers(0, ELEMENTS)),
        "step": draw(st.integers(-(2**63), 2**63 - 1)),
        "options": {"schedule": draw(st.sampled_from(["converge", "fair", "random"]))},
    }
    changes = draw(st.sampled_from((0, 1, 1, 1, 2)))
    for _ in range(changes):
        kind = draw(st.sampled_from(("field", "field", "option", "device")))
        table = {"field": CHANGES, "option": OPTIONS, "device": DEVICE}[kind]
        name = draw(st.sampled_from(sorted(table)))
        value = draw(st.sampled_from(table[name]))
        if kind == "field":
            fields[name] = value
        else:
            inner = {"option": "options", "device": "device"}[kind]
            fields[inner] = {**fields[inner], name: value}
    if not changes:
        fields["succeeds"] = True
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())


def generate(seed: int) -> Case:
    """Returns the launch of a seed."""
    return Case("launches", draw(launches(), seed))


def check(case: Case) -> None:
    """Launches. Raises WrongResult, or an error that is not one of Warploom's own."""
    assert isinstance(case.content, str)
    lines = (line.split(" = ", 1) for line in case.content.splitlines() if " = " in line)
    fields = GOOD | {name: json.loads(value) for name, value in lines}
    try:
        result, sent = launch(fields)
    except Exception as error:
        if fields.get("succeeds") or not is_ours(error):
            raise
        return
    if isinstance(sent["d"], int | float) and not abs(sent["d"]) < NOT_EXACT:
        return
    expected = calculate(fields["kernel"], sent, len(result))
    if result.tolist() != expected.tolist():
        at = int(np.flatnonzero(result != expected)[0])
        raise WrongResult(f"out[{at}] is {result[at]}, and NumPy calculates {expected[at]}")


def is_ours(error: Exception) -> bool:
    """Returns whether Warploom raises an error on purpose: by its type, or by a `raise` in the
    package."""
    if isinstance(error, wl.WarploomError):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not isinstance(error, (TypeError, ValueError)):
        return False
    name = trace.tb_frame.f_code.co_filename
    return "warploom" in name and linecache.getline(name, trace.tb_lineno).strip()[:5] == "raise"


def resolve(value: Any) -> Any:
    """Returns what a value of a case stands for."""
    if isinstance(value, str) and value.startswith("odd:"):
        return ODD[value[4:]]
    return tuple(value) if isinstance(value, list) else value


def launch(fields: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Launches as the fields say; returns what the buffer holds, and the arguments with the number
    of threads."""
    options: Any = {"memory_bytes": 1 << 28} | {n: resolve(v) for n, v in fields["device"].items()}
    gpu: Any = wl.Device(**options)
    kernel: Any = gpu.compile(SOURCE)[fields["kernel"]]
    buffer, out = buffers(gpu, fields["out"])
    names = ("n", "c", "d", "step") if fields["kernel"] == "sum" else ("n",)
    sent = {name: resolve(fields[name]) for name in ("n", "c", "d", "step")}
    arguments = [out, *(sent[name] for name in names)]
    if "extra" in fields:
        arguments.append(resolve(fields["extra"]))
    stream = fields.get("stream", 0)
    stream = gpu.stream() if stream == "odd:stream" else resolve(stream)
    grid, block = resolve(fields["grid"]), resolve(fields["block"])
    threads = [size(grid), size(block)]
    shared = resolve(fields.get("shared", 4 * min(threads[1], 1024)))
    given = {"max_instructions": 200_000} | fields["options"]
    ready = kernel[grid, block, stream, shared]
    run = ready(*arguments, **{name: resolve(value) for name, value in given.items()})
    _ = run.counters  # waits for the stream
    if threads[0] * threads[1] == 0:
        raise WrongResult(f"a launch of grid {grid!r} and block {block!r} succeeds")
    result = buffer.copy_to_host() if hasattr(buffer, "copy_to_host") else buffer
    return result, sent | {"grid": threads[0], "block": threads[1]}


def size(shape: Any) -> int:
    """Returns the product of a grid or a block; 0 for what is not one to three integers."""
    parts = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    try:
        return math.prod(map(operator.index, parts)) if 1 <= len(parts) <= 3 else 0
    except TypeError:
        return 0


def buffers(gpu: Any, name: Any) -> tuple[Any, Any]:
    """Returns the memory that is looked at after a launch, and the argument that stands for it."""
    name = name.removeprefix("odd:") if isinstance(name, str) else name
    buffer = gpu.zeros(ELEMENTS, np.uint32, "out")
    if name == "host array":
        array = np.zeros(ELEMENTS, np.uint32)
        return array, array
    if name == "short":
        buffer = gpu.zeros(3, np.uint32, "out")
    elif name == "doubles":
        return buffer, gpu.zeros(ELEMENTS, np.float64)
    elif name == "freed":
        freed = gpu.zeros(ELEMENTS, np.uint32)
        freed.free()
        return buffer, freed
    elif name == "another device":
        return buffer, wl.Device(memory_bytes=1 << 28).zeros(ELEMENTS, np.uint32)
    elif name == "address":
        return buffer, buffer.address
    elif name != "buffer":
        return buffer, ODD.get(name, name) if isinstance(name, str) else name
    return buffer, buffer


def calculate(kernel: str, sent: dict[str, Any], elements: int) -> Any:
    """Returns what a kernel writes, by NumPy."""
    threads, block = sent["grid"] * sent["block"], sent["block"]
    i = np.arange(min(threads, int(sent["n"]) % 2**32, elements), dtype=np.uint64)
    out = np.zeros(elements, np.uint32)
    if kernel == "sum":
        added = (int(sent["c"]) + int(sent["d"])) % 2**64
        values = i * np.uint64(int(sent["step"]) % 2**64) + np.uint64(added)
    else:
        values = 5 * (i // block * block + block - 1 - i % block)
    out[: len(i)] = (values % 2**32).astype(np.uint32)
    return out


TARGETS = (Target("launches", generate, check),)
