"""Helpers of the tests here: what an opcode computes on lanes of bits, given as Python integers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache

from hypothesis import strategies as st

import warploom.isa.ops  # noqa: F401  (fills the tables)
from warploom.core.types import ScalarType
from warploom.isa.spec import decode
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lanes import collect

LANES = 32


def apply(opcode: str, *operands: Sequence[int]) -> list[int]:
    """The bits of the first destination, for each lane of the operands' bits."""
    return apply_all(opcode, *operands)[0]


def apply_all(opcode: str, *operands: Sequence[int]) -> list[list[int]]:
    """The bits of every result."""
    operation = decode(opcode)
    types = [t for t in operation.source_types[: len(operands)] if t is not None]
    lanes = [collect(bits, type) for bits, type in zip(operands, types, strict=True)]
    width = len(operands[0])
    results = operation.terms_for(len(operands))
    return [[int(v) for v in evaluate(term, lanes, width)] for term in results]


def one(opcode: str, *operands: int) -> int:
    """The same for a single lane."""
    return apply(opcode, *([bits] for bits in operands))[0]


def signed(bits: int, width: int) -> int:
    """The number that the bits stand for in two's complement."""
    return bits - (1 << width) if bits >> (width - 1) else bits


def number(bits: int, type: ScalarType) -> int:
    """The integer that the bits stand for in that type."""
    return signed(bits, type.bits) if type.is_signed else bits


@cache  # each new strategy is checked by Hypothesis when it is first drawn from
def integers(width: int) -> st.SearchStrategy[int]:
    """Bits of that width: any, with those around powers of two and the ends drawn often."""
    edges = {0, 1, 2, 3, (1 << width) - 1, (1 << width) - 2}
    for place in range(width):
        edges |= {1 << place, (1 << place) - 1, (1 << width) - (1 << place)}
    return st.one_of(st.sampled_from(sorted(edges)), st.integers(0, (1 << width) - 1))


@cache
def lanes_of(strategy: st.SearchStrategy[int]) -> st.SearchStrategy[list[int]]:
    return st.lists(strategy, min_size=LANES, max_size=LANES)


def f32(value: float) -> int:
    """Bits of a float in single precision."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def f64(value: float) -> int:
    """Bits of a float in double precision."""
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def from_f32(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def from_f64(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


NAN32, NAN64 = 0x7FFFFFFF, 0xFFF8_0000_0000_0000
INF32, INF64 = 0x7F800000, 0x7FF0_0000_0000_0000
MINUS32, MINUS64 = 1 << 31, 1 << 63
