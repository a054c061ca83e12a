"""Tests which work an instruction becomes on a device."""

from __future__ import annotations

import pytest

import warploom.isa.ops  # noqa: F401  (fills the tables)
from warploom.isa.instruction import Instruction
from warploom.isa.spec import decode
from warploom.timing.work.classes import FREE, class_of


@pytest.mark.parametrize(
    ("opcode", "wanted"),
    [
        *((f"cvt.rn.{types}", "convert") for types in ("bf16.s32", "f16x2.e4m3x2", "f32.s32")),
        *((f"cvt.{types}", "convert") for types in ("f32.bf16", "rni.bf16.bf16", "rzi.s32.f32")),
        ("cvt.rn.bf16x2.ue8m0x2", "convert"),
        ("cvt.rn.satfinite.e4m3x2.f16x2", "convert"),
        *((f"cvt.{types}", "convert64") for types in ("rzi.s64.bf16", "rn.bf16.u64", "f64.f32")),
        *((f"cvt.{types}", FREE) for types in ("u32.u64", "u32.s32")),
        *((f"cvt.{types}", "int32") for types in ("s64.s32", "u8.u32", "sat.u32.u64")),
        ("cvt.pack.sat.u8.s32.b32", "int32"),
    ],
)
def test_conversions_from_and_to_floats_have_a_unit_of_their_own(opcode: str, wanted: str) -> None:
    """CUDA C++ Programming Guide, "Arithmetic Instructions": rows "type conversions from and to
    64-bit types" and "all other type conversions". An integer's low register is free to read;
    saturation and extension take integer instructions."""
    assert class_of(Instruction(decode(opcode), (), None)) == wanted
