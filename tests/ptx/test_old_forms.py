"""PTX of old compilers, which ptxas takes to this day, and what it refuses of a module: pairs of
versions and targets, and what ended."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import PtxSyntaxError
from warploom.isa.versions import newest
from warploom.ptx.parser import parse
from warploom.ptx.printer import print_module
from warploom.ptx.verify import verify

REGISTERS = """.reg .b16 h, i; .reg .b32 r, s, t, u; .reg .b64 p; .reg .f32 f, g; .reg .pred q;
.reg .v4 .f32 v; .reg .v4 .b16 n;"""


def module(body: str, version: str = "8.0", target: str = "sm_75", outside: str = "") -> str:
    size = ".address_size 64" if float(version) >= 2.3 else ""
    return f""".version {version}
.target {target}
{size}
{outside}
.visible .entry k(.param .u64 out)
{{ {REGISTERS}
ld.param.u64 p, [out];
{body}
exit; }}
"""


def run(text: str, threads: int = 1) -> list[int]:
    """Returns the first words that a kernel wrote, as it is read and as it is printed and read."""
    found = list[list[int]]()
    for source in (text, print_module(parse(text))):
        gpu = wl.Device("rtx-2080-ti")
        out = gpu.zeros(8, np.uint32)
        gpu.compile(source, "ptx")["k"][2, threads](out)
        found.append(out.copy_to_host().tolist())
    assert found[0] == found[1]
    return found[0]


def refused(text: str, message: str) -> None:
    with pytest.raises(PtxSyntaxError, match=message):
        verify(parse(text))


@pytest.mark.parametrize("version", ["2.3", "8.0"])
@pytest.mark.parametrize("between", ["", ".global .u32 unused;", ".func other() { ret; }"])
def test_a_prototype_may_lack_its_semicolon(version: str, between: str) -> None:
    """It ends where the next declaration begins."""
    head = ".visible .func (.param .s32 y) twice (.param .s32 x)\n"
    body = """{ .param .s32 a; .param .s32 b; st.param.s32 [a], 21; call (b), twice, (a);
    ld.param.s32 r, [b]; } st.global.u32 [p], r;"""
    text = module(body, version, "sm_20", head + between)
    text += (
        head + "{ .reg .s32 r; ld.param.s32 r, [x]; add.s32 r, r, r; st.param.s32 [y], r; ret; }"
    )
    assert run(text)[0] == 42


def test_a_kernel_needs_its_semicolon_or_its_body() -> None:
    refused(module("", outside=".entry other(.param .u64 x)\n"), "expected `{`")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("mov.u16 h, %ntid.x; cvt.u32.u16 r, %ctaid.x; cvt.u32.u16 s, h;", [1, 300]),
        ("mov.b16 h, %nctaid.x; cvt.u32.u8 r, %ntid.x; cvt.u32.u16 s, h;", [300 % 256, 2]),
        ("mov.v4.u32 {r, s, t, u}, %ctaid;", [1, 0, 0, 0]),
        ("mov.v4.u16 n, %nctaid; cvt.u32.u16 r, n.x; cvt.u32.u16 s, n.y; mov.u32 t, %tid.w;",
         [2, 1, 0]),
        ("mov.u32 r, %gridid; cvt.s32.s8 s, %ntid.x;", [0, 44]),
    ],
)  # fmt: skip
def test_special_registers_are_read_as_they_once_were(body: str, words: list[int]) -> None:
    """As 16 bits (`%gridid`, too, now of 64), by conversions as any smaller integer, and as the
    vectors of four that they are, of which the last is 0."""
    stores = "st.global.v4.u32 [p], {r, s, t, u};"
    text = module(f"mov.u32 r, 0; mov.u32 s, 0; mov.u32 t, 0; mov.u32 u, 0; {body} {stores}")
    assert run(text, 300)[: len(words)] == words


def test_thread_indices_are_cut_by_conversions() -> None:
    """%tid.x as a byte begins anew at 256, in the middle of a block."""
    gpu = wl.Device("rtx-2080-ti")
    out = gpu.zeros(300, np.uint32)
    body = "mov.u32 r, %tid.x; mad.wide.u32 p, r, 4, p; cvt.u32.u8 s, %tid.x; st.global.u32 [p], s;"
    kernel = gpu.compile(module(body), "ptx")["k"]
    for _ in range(3):
        kernel[1, 300](out)
    assert out.copy_to_host().tolist() == [i % 256 for i in range(300)]


@pytest.mark.parametrize(
    "body",
    [
        *("add.u32 r, %tid.x, 1;", "setp.eq.u32 p, %laneid, 0;", "cvt.rn.f32.u32 f, %tid.x;"),
        *(
            "st.global.u32 [q], %tid.x;",
            "bar.sync %warpid;",
            "shfl.sync.idx.b32 r, %tid.x, 0, 31, -1;",
        ),
    ],
)
def test_special_registers_are_read_by_mov_and_by_cvt_of_integers(body: str) -> None:
    """ptxas: "Special register argument not allowed for instruction ..."; of cvt it takes those of
    integers alone, and special registers inside braces anywhere."""
    head = ".reg .u32 r; .reg .u64 q; .reg .f32 f; .reg .pred p;"
    with pytest.raises(PtxSyntaxError, match="only mov and integer cvt read special registers"):
        verify(parse(special(head + body)))
    verify(parse(special(head + "cvt.u64.u32 q, %tid.x; st.global.v2.u32 [q], {%tid.x, %tid.y};")))


def special(body: str) -> str:
    """Returns a module with a kernel of that body."""
    return f".version 7.0\n.target sm_75\n.address_size 64\n.entry k() {{ {body} ret; }}"


@pytest.mark.parametrize(
    "body",
    ["mov.u16 h, %laneid;", "mov.u32 r, %clock64;", "add.u16 h, h, %tid.x;", "mov.u32 r, %tid;"],
)
def test_others_are_read_as_they_are(body: str) -> None:
    with pytest.raises(PtxSyntaxError):
        verify(parse(module(body)))


@pytest.mark.parametrize(
    ("version", "target", "flushed"),
    [
        ("1.4", "sm_10", True),
        ("2.0", "sm_13", True),
        ("8.0", "sm_13", True),
        ("2.0", "sm_20", False),
    ],
)
def test_mad_without_rounding(version: str, target: str, flushed: bool) -> None:
    """ptxas makes an FFMA.FTZ of it for sm_1x, where `add` flushes as well, and an FFMA else. The
    sum of 2^-126 and 2^-149 minus 2^-126 is 2^-149, a subnormal number, or 0."""
    body = """mov.f32 f, 0f40000000; mad.f32 g, f, f, f; st.global.f32 [p], g;
    mov.f32 f, 0f00800001; mov.f32 g, 0fBF800000; mad.f32 g, g, 0f00800000, f;
    st.global.f32 [p+4], g; sub.f32 g, f, 0f00800000; st.global.f32 [p+8], g;"""
    assert run(module(body, version, target))[:3] == [0x40C00000, *[0 if flushed else 1] * 2]


@pytest.mark.parametrize("version", ["4.0", "8.0"])
def test_mad_needs_a_rounding_mode_since_ptx_4(version: str) -> None:
    refused(module("mad.f32 f, f, f, f;", version, "sm_30"), "needs a rounding mode, as in")


@pytest.mark.parametrize("geometry", ["1d", "2d", "3d"])
@pytest.mark.parametrize("coordinates", ["{f, f, f, f}", "v"])
def test_coordinates_may_be_four(geometry: str, coordinates: str) -> None:
    body = f"tex.{geometry}.v4.f32.f32 v, [image, {coordinates}];"
    verify(parse(module(body, outside=".global .texref image;")))


@pytest.mark.parametrize("geometry", ["1d", "2d", "3d"])
def test_coordinates_are_never_three(geometry: str) -> None:
    body = f"tex.{geometry}.v4.f32.f32 v, [image, {{f, f, f}}];"
    refused(module(body, outside=".global .texref image;"), "coordinates, not 3")


def test_textures_had_a_state_space() -> None:
    body = "tex.2d.v4.f32.f32 v, [image, {f, f, f, f}];"
    verify(parse(module(body, "1.4", "sm_10", ".tex .u64 other, image;")))
    refused(module(body, "1.5", "sm_10", ".tex .u64 image;"), r"write `\.global \.texref`")
    refused(module("", "1.4", "sm_10", ".tex .f32 image;"), "must be .u32 or .u64")
    refused(module(".tex .u64 image;", "1.4", "sm_10"), "outside functions")


def test_modules_had_local_variables() -> None:
    """Each thread has its own, which all its functions share."""
    outside = """.local .u32 cell; .func bump() { .reg .u32 r; ld.local.u32 r, [cell];
    add.u32 r, r, 1; st.local.u32 [cell], r; ret; }"""
    body = """mov.u32 r, %tid.x; st.local.u32 [cell], r; call bump; call bump;
    ld.local.u32 s, [cell]; mul.wide.u32 p, r, 4; .reg .b64 o; ld.param.u64 o, [out];
    add.u64 p, p, o; st.global.u32 [p], s;"""
    assert run(module(body, "2.3", "sm_20", outside), 4)[:4] == [2, 3, 4, 5]
    refused(module("", "3.0", "sm_20", ".local .u32 cell;"), "cannot be declared at module scope")


def test_registers_of_a_module_ended_with_ptx_3() -> None:
    """PTX before 3.0 has registers outside functions; a kernel declares over them. ptxas refuses
    them from 3.0 on ("not allowed with ABI")."""
    outside = ".reg .u32 count, %c<4>; .reg .v2 .f32 pair;"
    body = """mov.u32 count, %tid.x; { .reg .u32 count; mov.u32 count, 99; }
    add.u32 %c3, count, 5; mov.f32 pair.y, 0f3f800000;
    mul.wide.u32 p, count, 4; .reg .b64 o; ld.param.u64 o, [out]; add.u64 p, p, o;
    .reg .u32 pair; mov.u32 pair, %c3; st.global.u32 [p], pair;"""
    assert run(module(body, "2.3", "sm_20", outside), 4)[:4] == [5, 6, 7, 8]
    refused(
        module("", "3.0", "sm_20", outside),
        "from PTX 3.0 on, registers must be declared inside functions",
    )


@pytest.mark.parametrize(
    ("version", "target"),
    [
        ("1.4", "sm_20"),
        ("2.3", "sm_30"),
        ("6.2", "sm_75"),
        ("7.7", "sm_90"),
        ("8.5", "sm_100a"),
        ("9.3", "sm_107f"),
    ],
)
def test_targets_are_as_old_as_their_version(version: str, target: str) -> None:
    refused(module("", version, target), f"{target} requires PTX")
    verify(parse(module("", ".".join(map(str, newest())), target)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            ".version 8.0\n.target sm_90\n.address_size 32\n",
            "from sm_90 on, addresses must be 64 bits wide",
        ),
        (".version 8.0\n.target sm_75, debug\n.address_size 64\n", "debug information"),
        (".version 1.4\n.target sm_13, map_f64_to_f32\n", "below sm_13"),
        (".version 8.0\n.target sm_90\n.func f() .abi_preserve 8 { ret; }", "requires PTX 9.0"),
        (".version 9.0\n.target sm_75\n.func f() .abi_preserve 8 { ret; }", "requires PTX 9.0"),
        (".version 9.0\n.target sm_90\n.entry f() .abi_preserve 8 { ret; }", "expected `{`"),
    ],
)
def test_what_ptxas_refuses_of_a_module(text: str, message: str) -> None:
    refused(text, message)


@pytest.mark.parametrize("body", ["vote.any.pred q, q;", "shfl.idx.b32 r, r, 0, 31;"])
def test_lanes_are_named_since_ptx_6_4(body: str) -> None:
    verify(parse(module(body, "6.3", "sm_70")))
    verify(parse(module(body, "8.0", "sm_60")))
    refused(module(body, "6.4", "sm_70"), r"write `(vote|shfl)\.sync`")
