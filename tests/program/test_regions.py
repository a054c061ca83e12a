"""Tests the region tree: natural loops (Aho, Lam, Sethi, Ullman, "Compilers", 9.6.6), and parts
between barriers, against trees drawn by hand."""

from __future__ import annotations

from warploom.program.build import build
from warploom.program.regions import Region, RegionKind, dominated_loops, regions
from warploom.ptx.parser import parse

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u32 n)
{
.reg .u32 %n, %i, %j; .reg .pred %p;
"""


def tree(body: str) -> str:
    """Returns the regions of a kernel as one line: kinds by their first letters, with what they
    consist of."""
    return text(regions(build(parse(HEAD + body + "\n}\n"), "k")))


def text(region: Region) -> str:
    """Returns a region as text."""
    return (
        f"{region.kind.value[0]}({' '.join([*map(str, region.blocks), *map(text, region.inner)])})"
    )


def test_nested_loops() -> None:
    body = """
    mov.u32 %i, 0;
    outer: mov.u32 %j, 0;
    inner: add.u32 %j, %j, 1; setp.lt.u32 %p, %j, 8; @%p bra inner;
    add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 8; @%p bra outer;
    ret;
    """
    # blocks: 0 before, 1 outer, 2 inner, 3 behind the inner loop, 4 the return
    assert tree(body) == "k(0 4 l(1 3 l(2)))"


def test_barriers_cut_the_kernel_into_parts() -> None:
    body = """
    mov.u32 %i, 0; bar.sync 0;
    mov.u32 %j, 0; bar.sync 0;
    ret;
    """
    assert tree(body) == "k(p(0) p(1) p(2))"


def test_a_loop_without_a_barrier_lies_in_a_part() -> None:
    body = """
    mov.u32 %i, 0;
    again: add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 8; @%p bra again;
    bar.sync 0;
    ret;
    """
    # 0 before, 1 the loop, 2 the barrier, 3 the return
    assert tree(body) == "k(p(0 2 l(1)) p(3))"


def test_a_loop_with_a_barrier_consists_of_parts() -> None:
    body = """
    mov.u32 %i, 0;
    again: mov.u32 %j, %i; bar.sync 0;
    add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 8; @%p bra again;
    ret;
    """
    # 0 before, 1 up to the barrier, 2 behind it, 3 the return: no way leads from 1 to 2 but over
    # the barrier, nor from 0 to 3 but through the loop
    assert tree(body) == "k(p(0) l(p(1) p(2)) p(3))"


def test_a_path_around_a_barrier_joins_parts() -> None:
    body = """
    ld.param.u32 %n, [n]; setp.lt.u32 %p, %n, 8; @%p bra past;
    bar.sync 0;
    past: ret;
    """
    assert tree(body) == "k(p(0 1 2))"


def test_of_overlapping_loops_the_longest_is_a_region() -> None:
    body = """
    one: add.u32 %i, %i, 1;
    two: add.u32 %j, %j, 1; setp.lt.u32 %p, %i, 8; @%p bra one;
    setp.lt.u32 %p, %j, 9; @%p bra two;
    ret;
    """
    # From block 2 a branch leads back to 1, from block 1 one to 0: 0, 1 and 1, 2 and, over 0, both.
    found = regions(build(parse(HEAD + body + "\n}\n"), "k"))
    assert found.kind is RegionKind.KERNEL
    assert found.all_blocks == frozenset(range(4))
    assert len(found.inner) == 1


def test_the_header_of_a_loop_is_where_it_is_entered() -> None:
    """Block 0 jumps to 2, which goes to 3 or at once to 4; from there 1 leads back to 2."""
    body = """
    mov.u32 %i, 0; bra middle;
    again: add.u32 %i, %i, 1;
    middle: setp.eq.u32 %p, %i, 5; @%p bra last;
    add.u32 %j, %j, 1;
    last: setp.lt.u32 %p, %i, 8; @%p bra again;
    ret;
    """
    assert dominated_loops(build(parse(HEAD + body + "\n}\n"), "k")) == {2: {1, 2, 3, 4}}


def test_loops_of_two_entries_count_from_where_edges_lead_back_to() -> None:
    """Block 0 goes to 1 or 2, which go to each other."""
    body = """
    setp.eq.u32 %p, %i, 0; @%p bra second;
    first: add.u32 %i, %i, 1;
    second: setp.lt.u32 %p, %i, 8; @%p bra first;
    ret;
    """
    assert dominated_loops(build(parse(HEAD + body + "\n}\n"), "k")) == {1: {0, 1, 2}}
