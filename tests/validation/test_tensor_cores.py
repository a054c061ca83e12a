"""Tensor products against what real GPUs computed (validation/README.md)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from _pytest.mark import ParameterSet
from matrix_products import moves, program, registers, values
from tensor_cores import NUMPY_TYPES, Arithmetic, Floats, Record, fused_sums, read_records

import warploom as wl
from warploom.isa.fragments import Fragment, Product
from warploom.isa.ops.matrix import product_of
from warploom.isa.spec import decode

RECORDS = read_records()

NO_DEVICE = ("10.0",)
"""Compute capabilities of records that no device of the catalog has."""

RUN = [
    record
    for record in RECORDS
    if record.compute_capability not in NO_DEVICE and not record.instruction.startswith("wgmma")
]
"""What runs here: products of one warp, whose operands are all in registers."""

REASON = (
    "products are added one by one, each sum rounded to the nearest .f32, where hardware aligns \
and truncates those of a block (validation/README.md)"
)

KNOWN = {record.title for record in RUN if record.sum_type == "f32"} | {
    "A2-wmma-f16-f16",
    "Ada-mma-e4m3-f16",
    "Ada-mma-e5m2-f16",
    "H200-wmma-f16-f16",
}
"""Records whose bits are not those of our machine, for that reason."""

REGION = 4096
"""Bytes that a tile has for the registers of each matrix."""


def titled(records: list[Record], failing: set[str]) -> list[ParameterSet]:
    """Returns the records as parameters; those that are named as failing must fail."""
    must_fail = pytest.mark.xfail(strict=True, raises=AssertionError, reason=REASON)
    return [
        pytest.param(r, id=r.title, marks=must_fail if r.title in failing else ()) for r in records
    ]


def bits(numbers: Floats) -> npt.NDArray[np.unsignedinteger]:
    return numbers.view(f"u{numbers.dtype.itemsize}")


@pytest.mark.parametrize("record", titled(RECORDS, set()))
def test_the_arithmetic_gives_the_recorded_bits(record: Record) -> None:
    found = fused_sums(record, record.arithmetic)
    np.testing.assert_array_equal(bits(found), bits(record.d))


@pytest.mark.parametrize("more", [-1, 1])
@pytest.mark.parametrize("record", titled([r for r in RECORDS if r.sum_type == "f32"], set()))
def test_no_other_number_of_fraction_bits_does(record: Record, more: int) -> None:
    other = replace(record.arithmetic, fraction_bits=record.arithmetic.fraction_bits + more)
    assert np.any(bits(fused_sums(record, other)) != bits(record.d))


@pytest.mark.parametrize(("fraction_bits", "expected"), [(23, 1.0), (24, 1 + 2.0**-22)])
def test_what_alignment_cuts_off_never_adds_up(fraction_bits: int, expected: float) -> None:
    """1 + 4 * 2^-24: 24 fraction bits hold a product, 23 do not, and then all four are lost."""
    record = replace(
        RECORDS[0],
        a=np.full((1, 4), 2.0**-12, np.float16),
        b=np.full((1, 4), 2.0**-12, np.float16),
        c=np.ones(1, np.float32),
    )
    assert fused_sums(record, Arithmetic(fraction_bits, 4)).tolist() == [expected]


@pytest.mark.parametrize("record", titled(RUN, KNOWN))
def test_our_bits_are_the_recorded_ones(record: Record) -> None:
    np.testing.assert_array_equal(bits(computed(record)), bits(record.d))


@pytest.mark.parametrize("record", titled(RUN, set()))
def test_we_differ_no_more_than_the_roundings_allow(record: Record) -> None:
    """Both ways start from exact products; the bound sums what either can lose.

    Hardware: a unit of the alignment for each term, a unit of the result for each block. Here: half
    a unit of .f32 for each product, and half a unit of .f16 where that is the result.
    """
    products = record.a.astype(np.float64) * record.b.astype(np.float64)
    size = np.abs(products).sum(axis=1) + np.abs(record.c.astype(np.float64))
    terms, way = record.a.shape[1], record.arithmetic
    blocks = -(-terms // way.block)
    kept = 10 if record.sum_type == "f16" else way.kept_bits
    lost = (terms + blocks) * 2.0**-way.fraction_bits + blocks * 2.0**-kept
    rounded = terms * 2.0**-24 + (2.0**-11 if record.sum_type == "f16" else 0)
    differences = np.abs(computed(record).astype(np.float64) - record.d.astype(np.float64))
    assert np.all(differences <= (lost + rounded) * size)


def computed(record: Record) -> Floats:
    """Returns D as our machine computes it: dot products along the diagonals of tiles."""
    product = product_of(decode(record.instruction))
    side = min(product.d.rows, product.d.columns)
    tiles = -(-len(record.d) // side)
    memory = np.zeros((tiles, 4, REGION), np.uint8)
    for tile in range(tiles):
        rows = slice(tile * side, (tile + 1) * side)
        _fill(memory[tile], product, record.a[rows], record.b[rows], record.c[rows])
    target = f"sm_{record.compute_capability.replace('.', '')}"
    gpu = wl.Device(cc=record.compute_capability)
    gpu.compile(kernel(record.instruction, product, target), "ptx")["k"][tiles, 32](memory)
    size = 32 * product.d.registers * 4
    found = [
        np.diagonal(values(product.d, part[3, :size].view(np.uint32).reshape(32, -1)))
        for part in memory
    ]
    sums = np.concatenate(found)[: len(record.d)]
    return sums.astype(NUMPY_TYPES[record.sum_type])


def _fill(tile: npt.NDArray[np.uint8], product: Product, a: Floats, b: Floats, c: Floats) -> None:
    """Writes the registers of A, B and C; row i of A and of B meet in D[i, i]."""
    diagonal = np.zeros((product.c.rows, product.c.columns), c.dtype)
    np.fill_diagonal(diagonal[: len(c), : len(c)], c)
    matrices = (_padded(product.a, a), _padded(product.b, b), diagonal)
    for region, fragment, matrix in zip(
        tile, (product.a, product.b, product.c), matrices, strict=False
    ):
        raw = registers(fragment, bits(matrix)).tobytes()
        region[: len(raw)] = np.frombuffer(raw, np.uint8)


def _padded(fragment: Fragment, given: Floats) -> Floats:
    """Returns a matrix of a fragment's shape with zeros behind and beside the given one."""
    matrix = np.zeros((fragment.rows, fragment.columns), given.dtype)
    matrix[: given.shape[0], : given.shape[1]] = given
    return matrix


def kernel(instruction: str, product: Product, target: str) -> str:
    """Returns PTX in which each block, of one warp, computes a tile."""
    body = [f"mov.u32 %n, %ctaid.x; mul.wide.u32 %at, %n, {4 * REGION}; add.u64 %base, %base, %at;"]
    lists: dict[str, str] = {}
    for place, fragment in enumerate((product.a, product.b, product.c, product.d)):
        role = "abcd"[place]
        names = [f"%{role}{i}" for i in range(fragment.registers)]
        lists[role] = "{" + ", ".join(names) + "}"
        if role == "d":
            body.append(f"{instruction} {lists['d']}, {lists['a']}, {lists['b']}, {lists['c']};")
        body.append(f"mov.u32 %n, {4 * fragment.registers};")
        body.append("mul.wide.u32 %at, %lane, %n; add.u64 %at, %at, %base;")
        body += moves(names, 32, REGION * place, stores=role == "d")
    declared = "\n".join(f".reg .b32 {', '.join(f'%{r}{i}' for i in range(8))};" for r in "abcd")
    return program(declared, body, target)
