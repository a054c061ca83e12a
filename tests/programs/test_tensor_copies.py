"""Copies of boxes of tensors (TMA) on both engines, against NumPy: ranks, steps, swizzles, fills,
im2col, reductions; what misuse gives; and copies that complete late."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tensor_cases import (
    ROOM,
    SPANS,
    TYPES,
    Case,
    kernel,
    map_of,
    random_case,
    random_columns,
    table,
)

import warploom as wl

ENGINES = ("reference", "compiled")
MANY = {"reference": 1, "compiled": 6}
"""How many random cases of a kind each engine gets."""


def run(cases: list[Case], moves: str, engine: str, schedule: str = "converge") -> None:
    """Copy the boxes, and compare shared memory and tensors with what NumPy has."""
    gpu = wl.Device("h100", engine=engine, schedule=schedule)
    contents = [case.content(seed) for seed, case in enumerate(cases)]
    buffers = [gpu.to_device(content) for content in contents]
    pairs = zip(cases, buffers, strict=True)
    maps = b"".join(bytes(map_of(gpu, case, buffer)) for case, buffer in pairs)
    shared = np.random.default_rng(7).integers(0, 60, ROOM).astype(np.uint8)
    out = np.zeros((len(cases), ROOM), np.uint8)
    told = np.frombuffer(maps, np.uint8).copy()
    gpu.compile(kernel(moves), "ptx")["k"][len(cases), 32](told, table(cases), shared, out)
    for case, content, buffer, found in zip(cases, contents, buffers, out, strict=True):
        if moves == "load":
            np.testing.assert_array_equal(
                case.elements(found).astype(float), case.expected(content).astype(float), str(case)
            )
            kept = np.delete(np.arange(ROOM), case.order())
            assert (found[kept] == shared[kept]).all(), case
            expected = content
        else:
            op = "" if moves == "store" else moves
            expected = case.stored(content, case.elements(shared), op)
        np.testing.assert_array_equal(buffer.copy_to_host(), expected, str(case))


def boxes(engine: str) -> list[Case]:
    """Random boxes of every rank with every swizzle."""
    kinds = [(rank, swizzle) for rank in range(1, 6) for swizzle in SPANS]
    every = len(kinds) if engine == "reference" else 1
    found = [
        random_case(1000 * rank + 10 * number + n, rank, swizzle)
        for number, (rank, swizzle) in enumerate(kinds)
        for n in range(MANY[engine])
    ]
    return found[:: max(1, every // 12)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("moves", ["load", "store"])
def test_boxes_of_every_rank_and_swizzle(engine: str, moves: str) -> None:
    run(boxes(engine), moves, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("moves", ["load", "store"])
def test_columns_of_pixels(engine: str, moves: str) -> None:
    """A convolution's columns. Stores have no offsets."""
    count = 30 if engine == "compiled" else 3
    cases = [
        random_columns(50 * rank + n, rank, list(SPANS)[n % 4])
        for rank in (3, 4, 5)
        for n in range(count)
    ]
    if moves == "store":
        cases = [replace(case, offsets=(0,) * len(case.offsets)) for case in cases]
    run(cases, moves, engine)


NUMBERS = {
    "add": ("s32", "u64", "f16", "bf16", "f32", "f64"),
    "min": ("s32", "u64", "f16", "bf16"),
    "max": ("s32", "u64", "f16", "bf16"),
    "and": ("s32", "u64"),
    "or": ("s32", "u64"),
    "xor": ("s32", "u64"),
    "inc": ("s32",),
    "dec": ("s32",),
}


@pytest.mark.parametrize("op", NUMBERS)
def test_reductions(op: str) -> None:
    """Every operation on every type. What shared memory holds of floats is any bits but NaNs."""
    for engine in ENGINES:
        cases = [
            Case(type, (5, 40), (3, 32 // np.dtype(TYPES[type]).itemsize), (1, 1), (3, 2))
            for type in NUMBERS[op]
        ]
        run(cases, op, engine)
