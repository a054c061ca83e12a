"""What nvdisasm prints, read."""

from __future__ import annotations

import pytest

from warploom.machinecode.cubin import KernelCode
from warploom.machinecode.listing import read_listing
from warploom.machinecode.operands import ListingError

LISTING = """
\t.target\tsm_75
//--------------------- .text.other                 --------------------------
        /*0000*/                   EXIT ;
//--------------------- .text.k                     --------------------------
\t.section\t.text.k,"ax",@progbits
                                           // +-------------------+--------+
                                           // |        GPR        | PRED   |
                                           // |                   |        |
                                           // |                 1 |        |
                                           // |  #  0   2345    0 | # 0    |
                                           // +-------------------+--------+
k: // |                   |        |
.text.k: // |                   |        |
        /*0000*/                   LDG.E.64.SYS R2, [R10+0x8] ; // |  4      ^^:     v |        |
        /*0010*/              @!P0 CALL.REL.NOINC `($helper) ; // |  3      :::       | 1 v    |
.L_x_1: // |                   |        |
        /*0020*/     BRX R4 -0x30 (*"BRANCH_TARGETS .L_x_1,.L_x_2"*) ; // |  3      ::x   |        |
.L_x_2: // |                   |        |
        /*0030*/                   EXIT ; // |                   |        |
        .type           $helper,@function // |                   |        |
$helper: // |                   |        |
        /*0040*/                   RET.REL.NODEC R2 `(k) ; // |                   |        |
//--------------------- SYMBOLS ---------------------
"""

CODE = KernelCode([0x000EA200001EEB00 << 64 | 0x0000080A0A027381, *[0] * 4], [9, 9, 9, 9, None])


def lined_up(text: str) -> str:
    """The tables of a listing one below the other, as nvdisasm prints them."""
    rows = (row.partition("// ") for row in text.splitlines())
    return "\n".join(f"{a:<90}{mark}{b}" if b[:1] in "+|" else a + mark + b for a, mark, b in rows)


def test_instructions_lines_targets_and_registers() -> None:
    found = read_listing("k", lined_up(LISTING), CODE)
    load, call, branch, end, back = found.instructions
    assert (load.name, load.modifiers, load.line) == ("LDG", ("E", "64", "SYS"), 9)
    assert (load.reads, load.writes) == (("R10",), ("R2", "R3"))
    assert (load.control.write_barrier, load.control.stall) == (2, 1)  # 0x751 from bit 105 on
    assert (call.guard, call.targets, call.reads) == ("!P0", (0x40,), ("P0",))
    assert branch.targets == (0x20, 0x30)
    assert (branch.reads, branch.writes) == (("R4",), ("R4",))
    assert (end.line, back.line) == (9, None), "what is added for no line has none"
    assert found.functions == {"$helper": 0x40}
    assert str(call) == "@!P0 CALL.REL.NOINC `($helper)"


ZEROS = """
//--------------------- .text.k                     --------------------------
.text.k:
                                           // +-------+------+------+
                                           // |  GPR  | PRED | UGPR |
                                           // |       |      |      |
                                           // | # 234 | # 0  | # 45 |
                                           // +-------+------+------+
        /*0000*/                   LDGSTS.E [R4], desc[UR4][R2.64], P0 ; // | 3 vvv | 1 x  | 2 vv |
        /*0010*/              @!PT LDS RZ, [RZ] ; // |       |      |      |
"""


def test_a_copy_reads_the_predicate_by_which_it_copies_zeros() -> None:
    """nvdisasm marks it as written, too; no later instruction can read it from the copy, which
    would have to wait for memory."""
    copy, padding = read_listing(
        "k", lined_up(ZEROS), KernelCode([0, 0], [None, None])
    ).instructions
    assert copy.reads == ("R2", "R3", "R4", "P0", "UR4", "UR5")
    assert copy.writes == ()
    assert padding.is_off
    assert not copy.is_off


def test_a_kernel_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ListingError, match="no machine code for missing"):
        read_listing("missing", LISTING, CODE)


def test_a_listing_of_other_code_is_an_error() -> None:
    with pytest.raises(ListingError, match="more than the cubin has"):
        read_listing("k", lined_up(LISTING), KernelCode([0] * 4, [None] * 4))
