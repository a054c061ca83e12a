"""What atomic operations leave in memory."""

from __future__ import annotations

import pytest
from opcode_values import NAN32, f32, f64

from warploom.core.types import TYPES
from warploom.isa.spec import decode
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lanes import collect

TOP = (1 << 32) - 1


@pytest.mark.parametrize(
    ("opcode", "old", "operands", "new"),
    [
        ("atom.global.add.u32", TOP, (3,), 2),
        ("red.global.add.u64", (1 << 64) - 1, (3,), 2),
        ("atom.shared.add.s32", 5, (TOP,), 4),
        ("atom.global.min.s32", 1, (TOP,), TOP),
        ("atom.global.min.u32", 1, (TOP,), 1),
        ("atom.global.max.s64", (1 << 64) - 1, (0,), 0),
        ("red.global.max.u64", (1 << 64) - 1, (0,), (1 << 64) - 1),
        ("atom.global.inc.u32", 4, (5,), 5),
        ("atom.global.inc.u32", 5, (5,), 0),
        ("atom.global.inc.u32", 9, (5,), 0),
        ("atom.global.dec.u32", 4, (5,), 3),
        ("atom.global.dec.u32", 0, (5,), 5),
        ("atom.global.dec.u32", 5, (5,), 4),
        ("atom.global.dec.u32", 9, (5,), 5),
        ("atom.global.and.b32", 0b1100, (0b1010,), 0b1000),
        ("atom.global.or.b64", 0b1100, (0b1010,), 0b1110),
        ("red.shared.xor.b32", 0b1100, (0b1010,), 0b0110),
        ("atom.global.exch.b32", 7, (8,), 8),
        ("atom.global.cas.b32", 7, (7, 9), 9),
        ("atom.global.cas.b64", 7, (8, 9), 7),
        ("atom.global.add.f32", f32(1.5), (f32(2.25),), f32(3.75)),
        ("atom.global.add.f64", f64(1.5), (f64(2.25),), f64(3.75)),
        ("atom.global.add.f32", 0xFFC00000, (0,), NAN32),
        # PTX ISA, atom: .add.f32 flushes subnormals in global memory and keeps them in shared.
        ("atom.global.add.f32", 1, (1,), 0),
        ("atom.add.f32", 1, (f32(-0.0),), 0),
        ("atom.shared.add.f32", 1, (1,), 2),
        ("red.shared::cta.add.f32", 1, (1,), 2),
        ("atom.global.add.f64", 1, (1,), 2),
    ],
)
def test_what_is_left(opcode: str, old: int, operands: tuple[int, ...], new: int) -> None:
    operation = decode(opcode)
    type = operation.modifiers.scalar()
    values = [collect([value], type) for value in (old, *operands)]
    assert int(evaluate(operation.combine(len(operands)), values, 1)[0]) == new


@pytest.mark.parametrize(("space", "new"), [("global", 0), ("shared", 2)])
def test_a_generic_address_keeps_subnormals_where_it_leads_to_shared_memory(
    space: str, new: int
) -> None:
    ones = [collect([1], TYPES["f32"])] * 2
    assert int(evaluate(decode("atom.add.f32").combine(1, space), ones, 1)[0]) == new
