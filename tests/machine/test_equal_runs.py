"""Checks loads at addresses that are equal in all rows of a block, in which a warp has several."""

from __future__ import annotations

import pytest
from shaped_programs import OUT_BYTES
from shaped_runs import outcome_of

from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Schedule
from warploom.machine.reference.machine import ReferenceEngine

KERNEL = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 buffer)
{{
.reg .u64 %b, %o, %a, %to;
.reg .u32 %x, %y, %w, %i, %v<5>;
.reg .pred %p;
ld.param.u64 %b, [buffer];
mov.u32 %x, %tid.x;
mov.u32 %y, %tid.y;
mov.u32 %w, %ntid.x;
mad.lo.u32 %i, %y, %w, %x;
mad.wide.u32 %to, %i, {out_bytes}, %b;
mul.wide.u32 %o, %x, {size};
add.u64 %a, %b, %o;
mov.u32 %v1, 7;
mov.u32 %v2, 11;
mov.u32 %v3, 13;
mov.u32 %v4, 17;
{guard}
{on} ld.global{vector}.u32 {into}, [%a+{offset}];
mad.lo.u32 %v1, %v2, 3, %v1;
mad.lo.u32 %v1, %v3, 5, %v1;
mad.lo.u32 %v1, %v4, 7, %v1;
st.global.u32 [%to+4096], %v1;
ret;
}}
"""
BLOCKS = [(16, 4), (8, 8), (4, 16), (2, 32), (16, 3), (4, 5)]
GUARDS = {
    "all": "",
    "columns": "setp.lt.u32 %p, %x, 3;",
    "rows": "setp.eq.u32 %p, %y, 1;",
    "scattered": "and.b32 %v0, %i, 5;\nsetp.eq.u32 %p, %v0, 4;",
}
INTO = {"": "%v1", ".v2": "{%v1, %v2}", ".v4": "{%v1, %v2, %v3, %v4}"}
ENGINES = CompiledEngine, ReferenceEngine


def kernel(block: tuple[int, int], vector: str, guard: str, offset: int) -> str:
    """Returns a kernel in which each thread loads by its column, and stores to its own place."""
    size = 4 * int(vector[2:] or 1)
    on = "@%p" if GUARDS[guard] else ""
    return KERNEL.format(
        out_bytes=OUT_BYTES, size=size, guard=GUARDS[guard], on=on, vector=vector,
        into=INTO[vector], offset=offset,
    )  # fmt: skip


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("vector", INTO)
@pytest.mark.parametrize("guard", GUARDS)
def test_loads_by_column_agree(block: tuple[int, int], vector: str, guard: str) -> None:
    """Memory and counts are those of the reference machine."""
    text = kernel(block, vector, guard, offset=64)
    compiled, reference = (outcome_of(text, block, Schedule(), engine()) for engine in ENGINES)
    assert compiled == reference
    assert isinstance(compiled, tuple)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("columns", [0, 1])
def test_the_last_column_may_end_the_allocation(block: tuple[int, int], columns: int) -> None:
    """The buffer ends after 4096 + 2 * threads * OUT_BYTES bytes, where the last column of the
    block loads; one column further, its load is a fault on both machines."""
    end = 4096 + 2 * block[0] * block[1] * OUT_BYTES
    text = kernel(block, "", "all", end - 4 * block[0] + 4 * columns)
    compiled, reference = (outcome_of(text, block, Schedule(), engine()) for engine in ENGINES)
    assert compiled == reference
    assert isinstance(compiled, tuple) == (columns == 0)


@pytest.mark.parametrize("block", BLOCKS)
def test_columns_that_no_lane_loads_may_be_outside(block: tuple[int, int]) -> None:
    """Three columns load; the fourth one would be beyond the allocation."""
    end = 4096 + 2 * block[0] * block[1] * OUT_BYTES
    text = kernel(block, "", "columns", end - 4 * min(3, block[0]))
    compiled, reference = (outcome_of(text, block, Schedule(), engine()) for engine in ENGINES)
    assert compiled == reference
    assert isinstance(compiled, tuple)
