"""What is newer than a module's `.version` or `.target` is an error, as it is to ptxas."""

from __future__ import annotations

import pytest

from warploom.core.errors import PtxSyntaxError
from warploom.isa.spec import decode
from warploom.isa.special import brought
from warploom.isa.targets import needed
from warploom.isa.versions import needed_version
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify


def check(line: str, version: str, target: str) -> None:
    verify(
        parse(f"""
.version {version}
.target {target}
.entry k()
{{
.reg .pred %p<2>; .reg .b16 %h<3>; .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %d<3>;
{line}
ret;
}}
""")
    )


# PTX ISA, "PTX ISA Notes" and "Target ISA Notes" of each instruction.
@pytest.mark.parametrize(
    ("opcode", "version", "target"),
    [
        ("add.u32", (1, 0), (1, 0)),
        ("ld.global.f32", (1, 0), (1, 0)),
        ("ld.f32", (2, 0), (2, 0)),  # generic addressing
        ("prmt.b32", (2, 0), (2, 0)),
        ("shfl.up.b32", (3, 0), (3, 0)),
        ("shfl.sync.up.b32", (6, 0), (3, 0)),
        ("shf.l.wrap.b32", (3, 1), (3, 2)),
        ("fma.rn.f16", (4, 2), (5, 3)),
        ("lop3.b32", (4, 3), (5, 0)),
        ("lop3.or.b32", (8, 2), (7, 0)),
        ("dp4a.u32.u32", (5, 0), (6, 1)),
        ("atom.add.f64", (5, 0), (6, 0)),
        ("match.any.sync.b32", (6, 0), (7, 0)),
        ("activemask.b32", (6, 2), (3, 0)),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16", (6, 5), (7, 5)),
        ("set.eq.u32.f16", (6, 5), (5, 3)),
        ("set.eq.f16.f16", (4, 2), (5, 3)),
        ("tanh.approx.f32", (7, 0), (7, 5)),
        ("redux.sync.add.u32", (7, 0), (8, 0)),
        ("fma.rn.bf16", (7, 0), (8, 0)),
        ("add.bf16", (7, 8), (9, 0)),
        ("min.xorsign.abs.f32", (7, 2), (8, 6)),
        ("elect.sync", (8, 0), (9, 0)),
        ("add.u16x2", (8, 0), (9, 0)),
        ("atom.global.v2.f32.add", (8, 1), (9, 0)),
        ("mov.b128", (8, 3), (7, 0)),
        ("add.f32x2", (8, 6), (10, 0)),
    ],
)
def test_what_brought_an_instruction(
    opcode: str, version: tuple[int, int], target: tuple[int, int]
) -> None:
    assert needed_version(decode(opcode)) == version
    assert needed(decode(opcode)) == target


def test_what_brought_a_special_register() -> None:
    """PTX ISA, "Special Registers"."""
    assert brought("%tid.x") == ((1, 0), (1, 0))
    assert brought("%lanemask_lt") == ((2, 0), (2, 0))
    assert brought("%globaltimer") == ((3, 1), (3, 0))
    assert brought("%cluster_ctarank") == ((7, 8), (9, 0))


@pytest.mark.parametrize(
    ("line", "version", "target", "message"),
    [
        ("shfl.sync.up.b32 %r0, %r1, 1, 0, -1;", "5.0", "sm_60", "requires PTX 6.0"),
        ("match.any.sync.b32 %r0, %r1, -1;", "6.0", "sm_60", "requires sm_70"),
        ("redux.sync.add.u32 %r0, %r1, -1;", "7.0", "sm_75", "requires sm_80"),
        ("mov.u32 %r0, %cluster_ctarank;", "7.7", "sm_75", "requires PTX 7.8"),
        ("mov.u32 %r0, %lanemask_lt;", "2.3", "sm_13", "requires sm_20"),
    ],
)
def test_what_is_newer_than_the_module_says_names_its_line_and_what_it_needs(
    line: str, version: str, target: str, message: str
) -> None:
    with pytest.raises(PtxSyntaxError, match=message) as caught:
        check(line, version, target)
    assert caught.value.span.line == 7
    assert line.split()[0] in str(caught.value)


@pytest.mark.parametrize(
    ("line", "version", "target"),
    [
        ("shfl.sync.up.b32 %r0, %r1, 1, 0, -1;", "6.0", "sm_30"),
        ("redux.sync.add.u32 %r0, %r1, -1;", "7.0", "sm_80"),
        ("redux.sync.add.u32 %r0, %r1, -1;", "8.0", "sm_90a"),
        ("mov.u32 %r0, %cluster_ctarank;", "7.8", "sm_90"),
        ("add.f32x2 %d0, %d1, %d2;", "8.8", "sm_100f"),
    ],
)
def test_what_is_as_old_as_the_module_is_fine(line: str, version: str, target: str) -> None:
    check(line, version, target)
