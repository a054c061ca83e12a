"""`tcgen05.mma` on both engines against NumPy: kinds, types, shapes, layouts, pairs, sparsity and
scales of blocks."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
from parts import some_now
from tensor_memory_cases import COLUMNS, LANES, THREADS, Case, Data, kernel, line, operands

import warploom as wl

F16 = Case("f16", 64, 16, "f16", "f16")
DEEP = Case("mxf4nvf4", 128, 16, "e2m1", "e2m1", scales=6, scale_type="ue4m3", deep=True)
SHIFTED = Case("f16", 128, 64, "f16", "f16", stationary=True, zeros=5 << 56)


def dense() -> list[Case]:
    """Every kind and type, with layouts in turn."""
    swizzles = ("none", "32B", "64B", "128B")
    found = [
        F16,
        Case("f16", 128, 16, "bf16", "bf16", negated=(True, False)),
        Case("f16", 64, 24, "f16", "f16", "f16", adds=False),
        Case("tf32", 64, 8, "tf32", "tf32", negated=(False, True)),
        Case("i8", 64, 16, "s8", "u8", "s32"),
        Case("i8", 64, 8, "u8", "s8", "s32", saturates=True),
    ]
    narrow = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
    for number, a in enumerate(narrow):
        found.append(
            Case("f8f6f4", 64, 8, a, narrow[number * 2 % 5], "f16" if number == 1 else "f32")
        )
    for number, swizzle in enumerate(swizzles):
        other = swizzles[(number + 1) % 4]
        for transposed in ((False, True), (True, False), (True, True)):
            wide = replace(F16, n=64, swizzles=(swizzle, other), transposed=transposed)
            found.append(wide)
        found.append(replace(F16, swizzles=(swizzle, swizzle)))
        found.append(Case("tf32", 64, 32, "tf32", "tf32", swizzles=(other, swizzle)))
    found.append(
        Case("tf32", 64, 32, "tf32", "tf32", swizzles=("128B32", "128B32"), transposed=(True, True))
    )
    return found


def others() -> list[Case]:
    """A in tensor memory, lanes left out, scales of D, weights that stay, sparse A, scales."""
    found = [
        replace(F16, m=128, n=32, a_held=True, swizzles=("none", "32B")),
        Case("tf32", 64, 8, "tf32", "tf32", a_held=True),
        Case("f8f6f4", 64, 8, "e2m1", "e4m3", a_held=True),
        Case("i8", 64, 8, "s8", "s8", "s32", a_held=True),
        replace(F16, disabled=(0, 5, 33, 127, 111)),
        replace(F16, scale_d=3),
        Case("f16", 32, 64, "f16", "f16", stationary=True),
        Case("f16", 64, 64, "f16", "f16", stationary=True),
        Case("i8", 32, 64, "u8", "u8", "s32", stationary=True, a_held=True),
        replace(F16, sparse=True),
        Case("f16", 128, 16, "bf16", "bf16", sparse=True, a_held=True),
        Case("tf32", 64, 8, "tf32", "tf32", sparse=True),
        Case("f8f6f4", 64, 8, "e4m3", "e5m2", sparse=True),
        Case("i8", 64, 8, "u8", "s8", "s32", sparse=True),
        Case("f16", 32, 64, "f16", "f16", stationary=True, sparse=True),
    ]
    found += [replace(F16, m=128, n=16, a_held=True, shifts=True)]
    spans = 1 << 39 | 4 << 40 | 2 << 48  # three columns of B, then five of zeros
    found += [
        Case("f16", 128, 64, "f16", "f16", stationary=True, zeros=spans | 2),
        Case("f16", 64, 64, "f16", "f16", stationary=True, zeros=spans | 1 << 33 | 7 << 8),
        Case("i8", 32, 64, "u8", "u8", "s32", stationary=True, zeros=spans | 5 << 32 | 3 << 24),
        Case("f16", 32, 64, "f16", "f16", stationary=True, zeros=spans | 2 << 56),
        Case("f16", 64, 64, "f16", "f16", stationary=True, zeros=32 << 56),
        replace(SHIFTED, swizzles=("none", "32B")),
        replace(SHIFTED, transposed=(False, True)),
    ]
    scaled = {"kind": "mxf8f6f4", "m": 128, "n": 40}
    found += [
        Case(**scaled, a="e4m3", b="e2m1", scales=1, identifiers=(2, 3)),
        Case(**scaled, a="e3m2", b="e5m2", scales=1, a_held=True),
        Case("mxf4", 128, 16, "e2m1", "e2m1", scales=2, identifiers=(2, 0)),
        Case("mxf4nvf4", 128, 16, "e2m1", "e2m1", scales=4, scale_type="ue4m3"),
        Case("mxf4nvf4", 128, 16, "e2m1", "e2m1", scales=2, sparse=True),
        DEEP,
        replace(DEEP, skip=48, identifiers=(2, 2)),
        replace(DEEP, kind="mxf4", scales=3, scale_type="ue8m0", skip=96, identifiers=(1, 3)),
        replace(DEEP, kind="mxf4", scales=3, scale_type="ue8m0", identifiers=(2, 2)),
        replace(DEEP, a_held=True, skip=96),
    ]
    return found


def pairs() -> list[Case]:
    """Products of two blocks."""
    return [
        replace(F16, m=256, n=32, pair=True, swizzles=("32B", "32B")),
        replace(F16, m=128, n=32, pair=True),
        replace(F16, m=128, n=32, pair=True, a_held=True),
        replace(F16, m=256, n=16, pair=True, disabled=(3, 200)),
        Case("i8", 128, 32, "s8", "s8", "s32", pair=True),
        Case("mxf8f6f4", 256, 32, "e4m3", "e4m3", scales=1, pair=True),
        replace(DEEP, m=256, n=32, pair=True, skip=96),
        replace(DEEP, m=256, n=144, pair=True, skip=96, identifiers=(2, 2)),
    ]


def run(cases: list[Case], engine: str, schedule: str = "converge") -> wl.Run:
    """Launch products of one form, and compare what tensor memory holds."""
    datas = [Data(case, seed) for seed, case in enumerate(cases)]
    gpu = wl.Device(cc="10.3" if cases[0].deep else "10.0", engine=engine, schedule=schedule)
    blocks = 2 if cases[0].pair else 1
    target = "sm_103a" if cases[0].deep else "sm_100a"
    table = np.array([operands(data) for data in datas], np.uint64)
    shared = np.stack([image for data in datas for image in data.shared])
    before = np.stack([image for data in datas for image in data.before])
    out = gpu.zeros((len(cases) * blocks, LANES, COLUMNS), np.uint32)
    text = kernel(line(cases[0]), len(cases), blocks, target)
    made = gpu.compile(text, "ptx")["k"][blocks, THREADS](
        *(gpu.to_device(given) for given in (table, shared, before)), out
    )
    found = out.copy_to_host()
    for number, data in enumerate(datas):
        for block in range(blocks):
            data.assert_right(block, found[number * blocks + block])
    return made


def forms(cases: list[Case]) -> list[list[Case]]:
    """The cases of each form."""
    return [list(some) for _, some in groupby(sorted(cases, key=line), line)]


ALL = forms([*dense(), *others(), *pairs()])


@pytest.mark.parametrize("cases", some_now(ALL, 12), ids=lambda cases: line(cases[0]))
def test_products(cases: list[Case]) -> None:
    run(cases, "compiled")


@pytest.mark.parametrize("cases", some_now(ALL, len(ALL)), ids=lambda cases: line(cases[0]))
def test_products_on_the_reference(cases: list[Case]) -> None:
    run(cases[:1], "reference")


@pytest.mark.parametrize("engine", some_now(("compiled", "reference"), 2))
def test_products_that_complete_late(engine: str) -> None:
    run([replace(F16, n=8)], engine, "adversarial")
