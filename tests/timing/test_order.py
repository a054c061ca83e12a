"""Tests the order of issue in a basic block."""

from __future__ import annotations

from chains import module

from warploom.program.build import build
from warploom.ptx.parser import parse
from warploom.timing.record.order import issue_order


def issued(*lines: str) -> list[str]:
    """Returns the opcodes of these lines in the order of issue."""
    program = build(parse(module("\n".join(lines), "7.0")), "k")
    texts = [made.operation.text for made in program.instructions]
    order = [texts[index] for block in issue_order(program) for index in block]
    return [text for text in order if text.split(".")[0] not in ("cvta", "mov", "ret")][1:]


def test_load_moves_above_dependent_store() -> None:
    """Both loads come before both stores to another space."""
    found = issued(
        "ld.global.u32 %r1, [%d2];",
        "st.shared.u32 [%r9], %r1;",
        "ld.global.u32 %r2, [%d2+4];",
        "st.shared.u32 [%r9+4], %r2;",
    )
    assert found == ["ld.global.u32", "ld.global.u32", "st.shared.u32", "st.shared.u32"]


def test_load_stays_below_aliasing_store_and_barrier() -> None:
    stores = ("st.global.u32 [%d2], %r1;", "ld.global.u32 %r2, [%d2+4];")
    assert issued(*stores) == ["st.global.u32", "ld.global.u32"]
    walls = ("add.s32 %r3, %r1, %r1;", "bar.sync 0;", "ld.global.u32 %r2, [%d2+4];")
    assert issued(*walls) == ["add.s32", "bar.sync", "ld.global.u32"]


def test_read_only_load_moves_above_stores() -> None:
    lines = ("st.global.u32 [%d2], %r1;", "ld.global.nc.u32 %r2, [%d2+4];")
    assert issued(*lines) == ["ld.global.nc.u32", "st.global.u32"]


def test_register_dependences_are_preserved() -> None:
    """%r1 is read before it is written again."""
    lines = ("add.s32 %r3, %r1, %r1;", "ld.global.u32 %r1, [%d2];", "mul.lo.s32 %r3, %r3, %r1;")
    assert issued(*lines) == ["add.s32", "ld.global.u32", "mul.lo.s32"]


def test_asynchronous_copies_move_above_arithmetic() -> None:
    """No register of a copy is read, but a wait for its group follows, for as long as a load."""
    lines = (
        "mul.lo.s32 %r3, %r1, %r1;",
        "mul.lo.s32 %r3, %r3, %r1;",
        "cp.async.ca.shared.global [%r9], [%d2], 4;",
        "cp.async.commit_group;",
        "cp.async.wait_group 0;",
    )
    assert issued(*lines)[0] == "cp.async.ca.shared.global"
