"""Products of matrices that Triton compiles for sm_90, by `wgmma`, and for sm_100, by `tcgen05`,
with copies of tensors and pipelines of three stages: right against NumPy, also where nothing
completes before it is waited for.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import warploom as wl
from tests.clients.conftest import PROGRAMS

pytest.importorskip("triton")
TILE = {"bm": 128, "bn": 64, "bk": 64}
M, N, K = 256, 128, 256


def compiled(
    name: str, arguments: dict[str, str], constants: dict[str, int], architecture: int
) -> Any:
    """Return what Triton makes of a kernel without a GPU."""
    targets, compiler = (
        import_module(f"triton.{part}") for part in ("backends.compiler", "compiler")
    )
    sys.path.insert(0, str(PROGRAMS))
    function = getattr(import_module("triton_hopper"), name)
    signature = arguments | dict.fromkeys(constants, "constexpr")
    aligned = {(place,): [["tt.divisibility", 16]] for place in range(6)}
    if name == "attention":
        aligned = {(5,): [["tt.divisibility", 16]]}
    source = compiler.ASTSource(function, signature, constants, aligned)
    options = {"num_warps": 4, "num_stages": 3}
    return compiler.compile(
        source, target=targets.GPUTarget("cuda", architecture, 32), options=options
    )


def described(gpu: wl.Device, buffer: wl.Buffer, box: tuple[int, int]) -> list[Any]:
    """Return the arguments that stand for a tensor descriptor of Triton."""
    map = gpu.tensor_map(buffer, box, swizzle="128B")
    return [map, *buffer.shape, buffer.shape[1], 1]


LOAD = re.compile(r"(?m)^\s*(?:@%p\d+ )?tcgen05\.ld\.sync\b[^;]*;")


def awaited_in_time(ptx: str, schedule: str) -> str:
    """Return a kernel that waits for each load of tensor memory right behind it, where loads
    complete late: Triton 3.9 uses their registers before its `tcgen05.wait::ld`, which PTX leaves
    undefined ("tcgen05.wait")."""
    if schedule != "adversarial":
        return ptx
    return LOAD.sub(lambda found: f"{found[0]}\ntcgen05.wait::ld.sync.aligned;", ptx)


ISSUED = {90: "wgmma.mma_async", 100: "tcgen05.mma"}
DEVICES = {90: "h100", 100: "b200"}


@pytest.mark.parametrize("architecture", [90, 100])
@pytest.mark.parametrize("schedule", ["converge", "adversarial"])
@pytest.mark.parametrize("name", ["by_pointers", "by_descriptors", "persistent"])
def test_a_product_of_matrices(name: str, schedule: str, architecture: int) -> None:
    shapes = {"a": (128, 64), "b": (64, 64), "c": (128, 64)}
    pointers = name == "by_pointers"
    kinds = {
        each: "*fp16" if pointers else f"tensordesc<fp16[{rows}, {columns}]>"
        for each, (rows, columns) in shapes.items()
    }
    made = compiled(name, kinds | dict.fromkeys("mnk", "i32"), TILE, architecture)
    assert ISSUED[architecture] in made.asm["ptx"]
    assert pointers or re.search(r"cp\.async\.bulk\.tensor\.2d\.shared", made.asm["ptx"])
    random = np.random.default_rng(0)
    a, b = ((random.integers(-8, 8, n) / 4).astype(np.float16) for n in ((M, K), (K, N)))
    gpu = wl.Device(DEVICES[architecture], schedule=schedule)
    of_a, of_b, of_c = gpu.to_device(a), gpu.to_device(b), gpu.zeros((M, N), np.float16)
    given: list[Any] = [of_a, of_b, of_c]
    if not pointers:
        pairs = zip((of_a, of_b, of_c), shapes.values(), strict=True)
        given = [each for pair in pairs for each in described(gpu, *pair)]
    unused = gpu.zeros(8, np.uint8)
    kernel = gpu.compile(awaited_in_time(made.asm["ptx"], schedule), "ptx")[name]
    blocks = 3 if name == "persistent" else (M // 128) * (N // 64)
    kernel[blocks, 128, None, made.metadata.shared](*given, M, N, K, unused, unused, strict=False)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    assert (of_c.copy_to_host() == expected.astype(np.float16)).all()


@pytest.mark.parametrize("architecture", [90, 100])
@pytest.mark.parametrize("schedule", ["converge", "adversarial"])
def test_fused_attention(schedule: str, architecture: int) -> None:
    rows, depth, keys = 128, 64, 256
    constants = {"rows": rows, "step": 64, "d": depth}
    boxes = {"q": (rows, depth), "k": (64, depth), "v": (64, depth), "out": (rows, depth)}
    kinds = {each: f"tensordesc<fp16[{m}, {n}]>" for each, (m, n) in boxes.items()}
    made = compiled("attention", kinds | {"scale": "fp32", "keys": "i32"}, constants, architecture)
    assert ISSUED[architecture] in made.asm["ptx"]
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((keys, depth)).astype(np.float16) for _ in range(3))
    gpu = wl.Device(DEVICES[architecture], schedule=schedule)
    out = gpu.zeros((keys, depth), np.float16)
    buffers = [*map(gpu.to_device, (q, k, v)), out]
    pairs = zip(buffers, boxes.values(), strict=True)
    given = [each for pair in pairs for each in described(gpu, *pair)]
    unused = gpu.zeros(8, np.uint8)
    scale = np.float32(np.log2(np.e) / np.sqrt(depth))
    kernel = gpu.compile(awaited_in_time(made.asm["ptx"], schedule), "ptx")["attention"]
    launch = kernel[keys // rows, 128, None, made.metadata.shared]
    launch(*given, scale, keys, unused, unused, strict=False)
    scores = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(depth)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    right = weights @ v.astype(np.float64) / weights.sum(axis=1, keepdims=True)
    assert np.abs(out.copy_to_host() - right).max() < 2e-3  # weights are rounded to 11 bits
