"""Operands and control information of machine instructions, as nvdisasm prints them."""

from __future__ import annotations

import pytest

from warploom.machinecode.control import Control, control_of
from warploom.machinecode.operands import Kind, ListingError, read_operands


@pytest.mark.parametrize(
    ("text", "kinds", "registers"),
    [
        ("R7, R17.reuse, 0x3, RZ", ["REGISTER", "REGISTER", "NUMBER", "REGISTER"], ["R7", "R17"]),
        ("P0, PT, R17, c[0x0][0x178], PT", "PPRCP", ["P0", "R17"]),
        ("R18, desc[UR6][R2.64+0x8]", "RM", ["R18", "UR6", "R2"]),
        ("[R6.X4+0x4c8], R23", "MR", ["R6", "R23"]),
        ("R4, c[0x2][R0+0xc]", "RC", ["R4", "R0"]),
        ("UR4, UP0, UR4, 0xc, URZ", ["UNIFORM", "PREDICATE", "UNIFORM", "NUMBER", "UNIFORM"], None),
        ("R3, -|R8|, ~R2, 1.5e-05", "RRRN", ["R3", "R8", "R2"]),
        ("R0, +INF , -QNAN", "RNN", ["R0"]),
        ("B0, `(.L_x_4)", ["BARRIER", "LABEL"], []),
        ("!P1, `(.L_x_9)", "PL", ["P1"]),
        ("R4 -0x540", "RN", ["R4"]),
        ("R10, SR_CTAID.X", "RS", ["R10"]),
        ("R0, R4, R4, UR4, UR6, 2D, 0x3", "RRRUUSN", ["R0", "R4", "UR4", "UR6"]),
        ("SB0, 0x0, {3,2}", "SNB", []),
        ("R24, R28, gdesc[UR4].tnspB, R24", ["REGISTER", "REGISTER", "MATRIX", "REGISTER"], None),
        ("gdesc[UR8], R4", ["MATRIX", "REGISTER"], ["UR8", "R4"]),
        ("", "", []),
    ],
)
def test_operands_by_kind(text: str, kinds: str | list[str], registers: list[str] | None) -> None:
    short = {"R": "REGISTER", "P": "PREDICATE", "C": "CONSTANT", "M": "MEMORY", "N": "NUMBER"}
    short |= {"L": "LABEL", "S": "SPECIAL", "U": "UNIFORM", "B": "BARRIER"}
    found = read_operands(text)
    wanted = [short.get(kind, kind) for kind in kinds]
    assert [operand.kind for operand in found] == [Kind[kind] for kind in wanted]
    if registers is not None:
        assert [*dict.fromkeys(r for operand in found for r in operand.registers)] == registers


def test_an_operand_of_no_known_form_is_an_error() -> None:
    with pytest.raises(ListingError, match=r"an unknown form: '<R4>'"):
        read_operands("R0, <R4>")


def test_control_information_is_in_the_bits_of_the_paper() -> None:
    """Jia et al., 2018, 2.1: from the top, 4 bits of reuse, 6 of barriers that are waited for, 3
    each of the read and the write barrier, 7 for none, 1 of yield, 4 of stall."""
    bits = int("010110000101011101101", 2)
    assert control_of(bits << 105 | (1 << 105) - 1) == Control(
        stall=13, yields=True, write_barrier=None, read_barrier=2, waits=(0, 5), reuse=(0, 2)
    )
