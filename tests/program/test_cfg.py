"""Tests where basic blocks begin and end, and which successors they have."""

import pytest

from warploom.program.build import build
from warploom.program.cfg import ProgramBlock
from warploom.program.program import Program
from warploom.ptx.parser import parse

HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n"


def program(body: str) -> Program:
    return build(parse(f"{HEAD}.entry k() {{ .reg .pred p; .reg .b32 r; {body} }}"), "k")


def test_a_branch_ends_a_block_and_a_label_begins_one() -> None:
    made = program("mov.b32 r, 1; @p bra L; mov.b32 r, 2; L: mov.b32 r, 3; bra.uni L;")
    assert made.blocks == (
        ProgramBlock(0, 0, 2, (2, 1)),
        ProgramBlock(1, 2, 3, (2,)),
        ProgramBlock(2, 3, 5, (2,)),
    )
    assert made.targets == {"L": 2}
    assert made.exit == 3


@pytest.mark.parametrize("barrier", ["bar.sync 0", "barrier.sync 0", "trap"])
@pytest.mark.parametrize("guard", ["", "@p "])
def test_barriers_end_a_block(barrier: str, guard: str) -> None:
    made = program(f"mov.b32 r, 1; {guard}{barrier}; mov.b32 r, 2; ret;")
    assert made.blocks == (ProgramBlock(0, 0, 2, (1,)), ProgramBlock(1, 2, 4, (2,)))


@pytest.mark.parametrize("synchronising", ["bar.warp.sync -1", "vote.sync.any.pred p, p, -1"])
def test_warp_synchronising_instructions_have_blocks_of_their_own(synchronising: str) -> None:
    made = program(f"mov.b32 r, 1; {synchronising}; mov.b32 r, 2; ret;")
    assert made.blocks == (
        ProgramBlock(0, 0, 1, (1,)),
        ProgramBlock(1, 1, 2, (2,)),
        ProgramBlock(2, 2, 4, (3,)),
    )


@pytest.mark.parametrize("leave", ["ret", "exit"])
def test_exits_end_a_block(leave: str) -> None:
    made = program(f"@p {leave}; mov.b32 r, 1; {leave}; mov.b32 r, 2;")
    assert made.blocks == (
        ProgramBlock(0, 0, 1, (3, 1)),
        ProgramBlock(1, 1, 3, (3,)),
        ProgramBlock(2, 3, 4, (3,)),
    )


def test_a_label_at_the_end_is_the_exit() -> None:
    made = program("@p bra L; mov.b32 r, 1; L:")
    assert made.blocks == (ProgramBlock(0, 0, 1, (2, 1)), ProgramBlock(1, 1, 2, (2,)))
    assert made.targets == {"L": 2}
    assert made.reconvergence == (2, 2)


def test_an_empty_kernel_has_one_block_of_an_instruction_that_is_not_counted() -> None:
    made = program("")
    assert [one.operation.name for one in made.instructions] == ["ret"]
    assert (made.exit, made.reconvergence, made.hidden) == (1, (1,), frozenset({0}))


def test_two_labels_at_one_place_are_one_block() -> None:
    made = program("A: B: @p bra A; @p bra B; ret;")
    assert made.targets == {"A": 0, "B": 0}
    assert made.blocks == (
        ProgramBlock(0, 0, 1, (0, 1)),
        ProgramBlock(1, 1, 2, (0, 2)),
        ProgramBlock(2, 2, 3, (3,)),
    )


def test_a_branch_to_the_next_block_has_it_twice() -> None:
    assert program("@p bra L; L: ret;").blocks[0] == ProgramBlock(0, 0, 1, (1, 1))
