"""Tests live registers of small programs: by hand, and against a search over all paths."""

from hypothesis import given
from hypothesis import strategies as st

from warploom.isa.instruction import Instruction
from warploom.program.build import build
from warploom.program.cfg import ProgramBlock
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.ptx.parser import parse

HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n"
DECLARED = ".reg .pred p, q; .reg .b32 a, b, c, d; .reg .b64 x; .reg .v2 .b32 v;"


def program(body: str) -> Program:
    return build(parse(f"{HEAD}.entry k() {{ {DECLARED} {body} }}"), "k")


def names(made: Program) -> list[set[str]]:
    return [{r.name for r in live} for live in made.live_in]


def test_registers_of_the_next_iteration_are_live() -> None:
    made = program(
        "mov.b32 a, 0; mov.b32 b, 9;"
        "L: add.s32 a, a, b; setp.lt.s32 p, a, 100; @p bra L;"
        "st.global.b32 [x], a;"
    )
    assert names(made) == [{"x"}, {"a", "b", "x"}, {"a", "x"}]


def test_a_guarded_write_kills_nothing() -> None:
    made = program("bra L; L: @p mov.b32 a, 1; mov.b32 b, 2; add.s32 c, a, b; @q bra L;")
    assert names(made)[1] == {"p", "q", "a"}


def test_a_write_on_one_path_kills_nothing_before_the_branch() -> None:
    made = program("bra M; M: @p bra L; mov.b32 a, 1; L: st.global.b32 [x], a;")
    assert names(made)[1] == {"p", "a", "x"}


def test_every_kind_of_operand_counts() -> None:
    made = program(
        "bra L; L: setp.lt.and.s32 p|q, a, b, !p; ld.global.v2.b32 v, [x]; mov.b32 c, v.x;"
        "st.global.v2.b32 [x], {v.y, d};"
    )
    assert names(made)[1] == {"a", "b", "p", "x", "d"}


REGISTERS = ("a", "b", "c")
lines = st.one_of(
    st.tuples(*[st.sampled_from(REGISTERS)] * 3).map(lambda r: f"add.s32 {r[0]}, {r[1]}, {r[2]};"),
    st.sampled_from(REGISTERS).map(lambda r: f"mov.b32 {r}, 1;"),
    st.sampled_from(REGISTERS).map(lambda r: f"@p mov.b32 {r}, 1;"),
    st.sampled_from(REGISTERS).map(lambda r: f"setp.eq.s32 p, {r}, 1;"),
    st.integers(0, 3).map(lambda n: f"@p bra L{n};"),
    st.integers(0, 3).map(lambda n: f"bra L{n};"),
    st.just("@p exit;"),
)


@st.composite
def bodies(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.lists(lines, max_size=3), min_size=4, max_size=4))
    return " ".join(f"L{n}: {' '.join(part)}" for n, part in enumerate(parts)) + " ret;"


def read_before_written(made: Program, block: ProgramBlock, register: str) -> bool:
    """Returns whether some path from the start of a block reads the register before writing it."""
    seen: set[int] = set()
    pending = [block.index]
    while pending:
        index = pending.pop()
        if index == made.exit or index in seen:
            continue
        seen.add(index)
        one = made.blocks[index]
        outcome = None
        for instruction in made.instructions[one.start : one.stop]:
            outcome = outcome or first_use(instruction, register)
        if outcome == "read":
            return True
        if outcome is None:
            pending.extend(one.successors)
    return False


def first_use(instruction: Instruction, register: str) -> str | None:
    if any(r.name == register for r in reads(instruction)):
        return "read"
    if instruction.guard is None and any(r.name == register for r in writes(instruction)):
        return "written"
    return None


@given(bodies())
def test_against_all_paths(body: str) -> None:
    made = program(body)
    for block, live in zip(made.blocks, names(made), strict=True):
        expected = {r for r in (*REGISTERS, "p") if read_before_written(made, block, r)}
        assert live == expected
