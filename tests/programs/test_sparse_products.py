"""`mma.sp` on both engines against NumPy: every form, with the metadata of the manual's figures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as combinations

import numpy as np
import numpy.typing as npt
import pytest
from matrix_products import ROUNDED, draw, moves, program, registers, values

import warploom as wl
from warploom.core.errors import PtxSyntaxError
from warploom.isa.fragments import Product
from warploom.isa.ops.matrix import product_of
from warploom.isa.spec import FORMS, decode

ENGINES = ("reference", "compiled")
KINDS = ("f16", "bf16 tf32", "e4m3 e5m2", "s8 u8", "s4 u4")
PAGE = 4096

ORDERED = (0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110)
"""What four bits of metadata can be (PTX ISA, "Sparse matrix storage")."""

UNORDERED = (*ORDERED, 0b0001, 0b0010, 0b0011, 0b0110, 0b0111, 0b1011)
HALVES = (0b0100, 0b1110)
"""The same for .tf32: the first element of two, or the second."""

SELECTORS = (0, 3, 1, 2)


def sparse_forms() -> Iterator[tuple[str, int]]:
    """Two opcodes of each form, in which every choice occurs, and a selector for each, which is
    taken modulo those that it can have."""
    specs = [spec for spec in FORMS["mma"] if "sparse" in spec.syntax and "kind" not in spec.syntax]
    for number, spec in enumerate(specs):
        for turn in (0, 1):
            parts = [
                slot.choices[(turn + (slot.name == "btype")) % len(slot.choices)]
                for slot in spec.slots
                if not slot.optional
            ]
            yield ".".join(("mma", *parts)), SELECTORS[(2 * number + turn) % 4]


def contributors(p: Product) -> Iterator[tuple[int, int, int, int]]:
    """Thread of its four, nibble of its word, row below that of its group, chunk of the row.

    The figures of the metadata in PTX ISA, "Matrix fragments ... with sparse matrix A".
    """
    chunk = {"tf32": 2, "f16": 4, "bf16": 4, "s4": 8, "u4": 8, "e2m1": 8}.get(p.a.type, 4)
    threads = p.b.columns // chunk // 4
    for thread, nibble in combinations(range(threads), range(8)):
        if p.a.bits >= 16:  # [0..3] of row r, [4..7] of row r + 8
            yield thread, nibble, 8 * (nibble // 4), 4 * thread + nibble % 4
        else:
            yield thread, nibble, 8 * (thread % 2), 8 * (thread // 2) + nibble


def dense(p: Product, stored: npt.NDArray, nibbles: npt.NDArray) -> npt.NDArray:
    """A with its zeros, from what is stored of it and four bits for each chunk."""
    a = np.zeros((16, p.b.columns), stored.dtype)
    chunk = p.b.columns // nibbles.shape[1]
    for row, number in np.ndindex(nibbles.shape):
        nibble, at = int(nibbles[row, number]), chunk * number
        held = stored[row, at // 2 : (at + chunk) // 2]
        if chunk == 2:
            a[row, at + (nibble == 0b1110)] = held[0]
            continue
        for half, index in enumerate((nibble & 3, nibble >> 2)):
            run = chunk // 4
            a[row, at + run * index :][:run] = held[run * half : run * half + run]
    return a


def kernel(cases: list[tuple[str, int]]) -> str:
    """A kernel that reads A, B, C and metadata of each case in a page of its own, and writes D."""
    body: list[str] = []
    for number, (opcode, selector) in enumerate(cases):
        p = product_of(decode(opcode))
        counts = [p.a.registers, p.b.registers, p.c.registers, 1, p.d.registers]
        names = [[f"%{role}{i}" for i in range(n)] for role, n in zip("abced", counts, strict=True)]
        for place, (count, held) in enumerate(zip(counts, names, strict=True)):
            body.append(f"mul.lo.u32 %n, %lane, {4 * count}; cvt.u64.u32 %at, %n;")
            body.append("add.u64 %at, %at, %base;")
            if held[0] == "%d0":
                a, b, c, _, d = ("{" + ", ".join(each) + "}" for each in names)
                body.append(f"{opcode} {d}, {a}, {b}, {c}, %e0, {selector};")
            at = PAGE * (5 * number + place)
            body += moves(held, 32, at, stores=held[0] == "%d0")
    declared = "\n".join(f".reg .b32 %{role}<8>;" for role in "abced")
    return program(declared, body)


def metadata(
    p: Product, selector: int, nibbles: npt.NDArray, rng: np.random.Generator
) -> npt.NDArray:
    """A word for each lane; those of lanes that contribute nothing are anything."""
    words = rng.integers(0, 1 << 32, 32, np.uint32)
    places = list(contributors(p))
    first = selector * (1 + max(thread for thread, *_ in places))
    for group in range(8):
        for thread, *_ in places:
            words[4 * group + first + thread] = 0
        for thread, nibble, below, chunk in places:
            bits = np.uint32(int(nibbles[group + below, chunk]) << (4 * nibble))
            words[4 * group + first + thread] |= bits
    return words


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_sparse_product(kind: str, engine: str) -> None:
    rng = np.random.default_rng(5)
    cases: list[tuple[str, int]] = []
    wanted: list[tuple[npt.NDArray, ...]] = []
    pages: list[list[npt.NDArray]] = []
    for opcode, selector in sparse_forms():
        p = product_of(decode(opcode))
        if p.a.type not in kind.split():
            continue
        chunks = p.b.columns // {"tf32": 2, "s4": 8, "u4": 8}.get(p.a.type, 4)
        selector %= 16 // chunks  # a group of four has 16 chunks of two rows, four times over
        drawn = [draw(f, rng) for f in (p.a, p.b, p.c)]
        known = HALVES if p.a.type == "tf32" else ORDERED if "ordered" in opcode else UNORDERED
        nibbles = rng.choice(np.array(known), (16, chunks))
        words = [registers(f, d[0]) for f, d in zip((p.a, p.b, p.c), drawn, strict=True)]
        pages.append([*words, metadata(p, selector, nibbles, rng)])
        (_, a), (_, b), (_, c) = drawn
        wanted.append((dense(p, a, nibbles), b, c))
        cases.append((opcode, selector))
    assert cases
    data = np.zeros((len(cases), 5, PAGE), np.uint8)
    for place, held in zip(data, pages, strict=True):
        for page, words in zip(place, held, strict=False):
            page[: words.nbytes] = np.frombuffer(words.tobytes(), np.uint8)
    gpu = wl.Device("h100", engine=engine)
    gpu.compile(kernel(cases), "ptx")["k"][1, 32](data)
    for (opcode, _), place, (a, b, c) in zip(cases, data, wanted, strict=True):
        p = product_of(decode(opcode))
        got = values(p.d, place[4][: 128 * p.d.registers].view(np.uint32).reshape(32, -1))
        want = a @ b.T + c
        if p.d.type == "s32":
            assert np.array_equal(got, want), opcode
        else:
            size = np.abs(a) @ np.abs(b).T + np.abs(c)
            assert np.all(np.abs(got - want) <= ROUNDED[p.d.type] * size), opcode


@pytest.mark.parametrize(("shape", "last"), [("m16n8k16", 3), ("m16n8k32", 1)])
def test_the_selector_names_lanes_that_are_there(shape: str, last: int) -> None:
    opcode = f"mma.sp.sync.aligned.{shape}.row.col.f32.bf16.bf16.f32"
    wl.Device("h100").compile(kernel([(opcode, last)]), "ptx")
    with pytest.raises(PtxSyntaxError, match=f"a number from 0 to {last}"):
        wl.Device("h100").compile(kernel([(opcode, last + 1)]), "ptx")
