"""Checks every form of texture and surface instructions on both machines: results and counts are
equal.

Coordinates are drawn: inside, around, between texels, huge, infinite, NaN. The correct results of
fetches are checked in tests/programs/test_textures.py and tests/texture/test_fetch.py.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warploom as wl
from warploom.ptx.parser import parse
from warploom.ptx.printer import print_module

FETCHES = {
    "1d": "tex.1d tex.level.1d tex.grad.1d",
    "2d": "tex.2d tex.base.2d tex.level.2d tex.grad.2d tld4.g.2d tld4.a.2d",
    "3d": "tex.3d tex.level.3d tex.grad.3d",
    "a1d": "tex.a1d tex.level.a1d tex.grad.a1d",
    "a2d": "tex.a2d tex.level.a2d tex.grad.a2d tld4.r.a2d",
    "cube": "tex.cube tex.level.cube tex.grad.cube tld4.b.cube",
    "acube": "tex.acube tex.level.acube tex.grad.acube",
}
COORDINATES = {
    "1d": "{X0}", "2d": "{X0, X1}", "3d": "{X0, X1, X2, X2}", "a1d": "{%r0, X0}",
    "a2d": "{%r0, X0, X1, X1}", "cube": "{X0, X1, X2, X2}", "acube": "{%r0, X0, X1, X2}",
}  # fmt: skip
AXES = {"1d": 1, "a1d": 1, "2d": 2, "a2d": 2, "3d": 4, "cube": 4, "acube": 4}


def fetches(geometry: str) -> list[tuple[str, str]]:
    """Returns the destination and the text of all instructions that read a texture of that
    geometry."""
    made: list[tuple[str, str]] = []
    axes = AXES[geometry]
    steps = [("{" + ", ".join(f"%f{4 + (i + j) % 3}" for i in range(axes)) + "}") for j in (0, 1)]
    offset = "{" + ", ".join(["%r4", "%r5", "%r4", "%r4"][:axes]) + "}"
    for name in FETCHES[geometry].split():
        whole = "f32" if name.startswith("tld4") else ""
        for types in (whole,) if whole else ("v4.f32.f32", "v4.f16.f32", "v2.f16x2.f32", "s32"):
            integer = types == "s32"
            if integer and ("grad" in name or "cube" in geometry):
                continue
            given = COORDINATES[geometry].replace("X", "%r" if integer else "%f")
            more = ", %r3" if integer else ", %f3"
            extra = more if "level" in name else f", {steps[0]}, {steps[1]}" * ("grad" in name)
            opcode = f"{name}.v4.u32.{types}" if types in ("s32", "f32") else f"{name}.{types}"
            ends = ["", f", {offset}"] if "cube" not in geometry else [""]
            for end in ends:
                target = "{%o0, %o1, %o2, %o3}"
                if "f16x2" in types:
                    target = "{%o0, %o1}"
                elif "f16" in types:
                    target = "{%h0, %h1, %h2, %h3}"
                made.append((target, f"{opcode} {target}|%q, [%t, {given}]{extra}{end};"))
    return made


QUERIES = [
    *(f"txq.{query}.b32 %o0, [%t];" for query in (
        "width", "height", "depth", "channel_data_type", "channel_order", "normalized_coords",
        "array_size", "num_mipmap_levels", "num_samples", "force_unnormalized_coords",
        "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2")),
    "txq.level.width.b32 %o0, [%t], 1;",
    "istypep.texref %q, %t;", "istypep.surfref %q, %t;", "istypep.samplerref %q, %t;",
]  # fmt: skip


def kernel(lines: list[tuple[str, str]], variables: str = "") -> str:
    """Returns a kernel in which every thread reads 8 words and stores 4 for each instruction; the
    first of them is wrong if the texels are not resident."""
    body: list[str] = []
    for number, (target, line) in enumerate(lines):
        names = target.strip("{}").split(", ") if target else []
        body += [f"mov.b32 %o{i}, 0;" for i in range(4)] + [line]
        if "%h0" in names:
            body += ["mov.b32 %o0, {%h0, %h1};", "mov.b32 %o1, {%h2, %h3};"]
        if "istypep" in line:
            body.append("selp.u32 %o0, 1, 0, %q;")
        elif "|%q" in line:
            body.append("@!%q mov.b32 %o0, 12345;")
        body.append(f"st.global.v4.b32 [%out+{16 * number}], {{%o0, %o1, %o2, %o3}};")
    loads = [f"ld.global.b32 %r{i}, [%in+{4 * i}]; mov.b32 %f{i}, %r{i};" for i in range(8)]
    whole = "\n".join((*loads, *body))
    return f"""
.version 8.0
.target sm_90
.address_size 64
{variables}
.visible .entry k(.param .u64 texture, .param .u64 inputs, .param .u64 results)
{{
.reg .pred %q;
.reg .b16 %h<4>;
.reg .b32 %r<8>, %o<4>, %i;
.reg .f32 %f<8>;
.reg .b64 %t, %in, %out;
ld.param.u64 %t, [texture]; ld.param.u64 %in, [inputs]; ld.param.u64 %out, [results];
mov.u32 %i, %tid.x;
mad.wide.u32 %in, %i, 32, %in;
mad.wide.u32 %out, %i, {16 * len(lines)}, %out;
{whole}
ret;
}}
"""


SHAPES = {
    "1d": (8,), "2d": (4, 8), "3d": (4, 2, 8), "a1d": (3, 8), "a2d": (3, 4, 8),
    "cube": (6, 4, 4), "acube": (12, 4, 4),
}  # fmt: skip


def levels(geometry: str, dtype: str, channels: int) -> list[npt.NDArray[np.generic]]:
    """Returns two mipmap levels of random texels, with infinities and NaNs among floats."""
    rng = np.random.default_rng(5)
    lead = int(geometry.startswith("a") or geometry == "cube")
    shape = SHAPES[geometry]
    found: list[npt.NDArray[np.generic]] = []
    for level in range(2):
        sizes = (*shape[:lead], *(max(1, n >> level) for n in shape[lead:]))
        whole = (*sizes, channels) if channels > 1 else sizes
        bits = rng.integers(0, 256, (*whole, np.dtype(dtype).itemsize), np.uint8)
        found.append(bits.view(dtype)[..., 0])
    return found


EDGES = [0, 0x80000000, 1, 0x3F000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00001,
         0x7F7FFFFF, 0xFF7FFFFF, 0x40A00000, 2, 3, 7, 8, 0xFFFFFFFF, 0x7FFFFFFF]  # fmt: skip


THREADS = 8


def inputs(seed: int) -> npt.NDArray[np.uint32]:
    """Returns eight words a thread: coordinates, edge values and small integers."""
    rng = np.random.default_rng(seed)
    some = rng.uniform(-2, 3, (40, 8)) * rng.choice([1, 4, 8, 1e6], (40, 8))
    words = some.astype(np.float32).view(np.uint32)
    small = rng.integers(-3, 10, (40, 8)).astype(np.int32).view(np.uint32)
    edges = rng.choice(np.array(EDGES, np.uint32), (40, 8))
    return np.choose(rng.choice(3, (40, 8), p=[0.6, 0.2, 0.2]), [words, small, edges])


DEVICES = [wl.Device("h100", engine=engine, caches=True) for engine in ("reference", "compiled")]
LINES = {geometry: fetches(geometry) for geometry in SHAPES}
LINES["2d"] += [("%o0", line) for line in QUERIES]


@cache
def modules(geometry: str) -> list[wl.Module]:
    return [gpu.compile(kernel(LINES[geometry]), "ptx") for gpu in DEVICES]


@settings(max_examples=6)
@given(data=st.data())
@pytest.mark.parametrize("geometry", list(SHAPES))
def test_fetches(geometry: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4"]))
    channels = data.draw(st.sampled_from([1, 2, 4]))
    small = dtype[0] != "f" and dtype[1] != "4"
    read = data.draw(st.sampled_from(["element", "normalized"])) if small else "element"
    ways = ["point", "linear"] if dtype[0] == "f" or read == "normalized" else ["point"]
    normalized = data.draw(st.booleans())
    modes = ["clamp", "border", *(["wrap", "mirror"] if normalized else [])]
    options = {
        "filter": data.draw(st.sampled_from(ways)),
        "mipmap_filter": data.draw(st.sampled_from(ways)),
        "address": data.draw(st.tuples(*[st.sampled_from(modes)] * 3)),
        "border": (1, 2, 3, 4),
        "layers": geometry.startswith("a"),
        "cube": "cube" in geometry,
    }
    first, second = levels(geometry, dtype, channels)
    mipmaps = [second] if normalized else []
    words = inputs(data.draw(st.integers(0, 1 << 16)))
    found: list[tuple[bytes, dict[str, int]]] = []
    for gpu, module in zip(DEVICES, modules(geometry), strict=True):
        texture = gpu.texture(
            first, channels=channels, normalized=normalized, read=read, mipmaps=mipmaps, **options
        )
        out = gpu.zeros((THREADS, 4 * len(LINES[geometry])), np.uint32)
        counters = module["k"][1, THREADS](texture, gpu.to_device(words), out).counters
        found.append((out.copy_to_host().tobytes(), dict(counters)))
    assert found[0] == found[1]


def surfaces(geometry: str) -> list[tuple[str, str]]:
    """Returns loads, stores and reductions of a surface, in every boundary mode but the one that
    traps."""
    at = COORDINATES[geometry].replace("X", "%r")
    made: list[tuple[str, str]] = []
    for mode in ("clamp", "zero"):
        for shape, count in (("b32", 1), ("v2.b32", 2), ("v4.b32", 4)):
            values = "{" + ", ".join(f"%o{i}" for i in range(count)) + "}"
            given = "{" + ", ".join(f"%r{4 + i}" for i in range(count)) + "}"
            aligned = f"and.b32 %r0, %r0, -{4 * count}; " if at.startswith("{%r0") else ""
            made.append(
                (values, f"{aligned}suld.b.{geometry}.{shape}.{mode} {values}, [%t, {at}];")
            )
            made.append(("", f"sust.b.{geometry}.{shape}.{mode} [%t, {at}], {given};"))
            made.append(("", f"sust.p.{geometry}.{shape}.{mode} [%t, {at}], {given};"))
        if not geometry.startswith("a"):
            for op, type in (("add", "u32"), ("min", "s32"), ("max", "u32"), ("and", "b32")):
                made.append(("", f"sured.b.{op}.{geometry}.{type}.{mode} [%t, {at}], %r7;"))
            made.append(("", f"sured.p.or.{geometry}.b32.{mode} [%t, {at}], %r6;"))
    made += [("%o0", f"suq.{query}.b32 %o0, [%t];") for query in (
        "width", "height", "depth", "channel_data_type", "channel_order", "array_size",
        "memory_layout")]  # fmt: skip
    return made


@pytest.mark.parametrize("schedule", ["converge", "random", "adversarial"])
@pytest.mark.parametrize("geometry", ["1d", "2d", "3d", "a1d", "a2d"])
def test_surfaces(geometry: str, schedule: str) -> None:
    lines = surfaces(geometry)
    found: list[tuple[bytes, ...]] = []
    counts: list[dict[str, int]] = []
    for engine in ("reference", "compiled"):
        gpu = wl.Device("h100", engine=engine, caches=True, schedule=schedule, seed=5)
        (texels, _) = levels(geometry, "u4", 1)
        surface = gpu.surface(texels, layers=geometry.startswith("a"))
        out = gpu.zeros((40, 4 * len(lines)), np.uint32)
        words = inputs(9)
        words[:, 0] &= 0xFFFFFFF0  # x counts bytes
        if geometry.startswith("a"):
            words[:, 0] >>= 4
            words[:, 1] = 0  # a1d and a2d: the layer comes first
        words[:, 1] &= 0xFFFFFFF0 if geometry.startswith("a") else 0xFFFFFFFF
        kernel_ = gpu.compile(kernel(lines), "ptx")["k"]
        counters = kernel_[1, 40](surface, gpu.to_device(words), out).counters
        found.append((out.copy_to_host().tobytes(), surface.copy_to_host().tobytes()))
        counts.append(dict(counters))
    assert found[0] == found[1]
    assert counts[0] == counts[1]


REFERENCES = """
.global .texref first;
.global .texref several[2];
.global .samplerref smooth = { filter_mode = linear, addr_mode_0 = wrap, addr_mode_1 = mirror };
.global .samplerref plain = { normalized_coords = 0, addr_mode_0 = clamp_to_border };
.global .surfref written;
"""


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_variables_of_the_module(engine: str) -> None:
    """Uses textures by name, by the address of a variable, with samplers, and as a parameter."""
    gpu = wl.Device("h100", engine=engine)
    lines = [
        ("{%o0, %o1, %o2, %o3}", f"{opcode} {{%o0, %o1, %o2, %o3}}|%q, {place};")
        for opcode, place in (
            ("tex.2d.v4.f32.f32", "[first, {%f0, %f1}]"),
            ("mov.u64 %t, several; tex.2d.v4.f32.f32", "[%t+8, {%f0, %f1}]"),
            ("tex.2d.v4.f32.f32", "[first, smooth, {%f2, %f3}]"),
            ("tex.2d.v4.f32.f32", "[first, plain, {%f4, %f5}]"),
            ("tex.2d.v4.f32.f32", "[texture, {%f0, %f1}]"),
        )
    ]
    lines.append(("", "sust.b.1d.b32.trap [written, {0}], {%r6};"))
    lines.append(("%o0", "txq.filter_mode.b32 %o0, [smooth];"))
    lines.append(("%o0", "mov.u64 %t, smooth; istypep.samplerref %q, %t;"))
    text = kernel(lines, REFERENCES).replace("k(.param .u64 texture", "k(.param .texref texture")
    module = gpu.compile(text, "ptx")
    texels = np.array([[1, 2], [3, 4]], np.float32)
    module.bind("first", gpu.texture(texels))
    second = gpu.texture(texels * 100)
    surface = gpu.surface(np.zeros(1, np.float32))
    module.bind("written", surface)
    address = module.image.addresses(("several",))[0]
    gpu.memory.write(address + 8, second.handle.to_bytes(8, "little"))
    words = np.array([[1.5, 0.5, 1.0, 0.5, -0.5, 0.5, 9, 0]], np.float32)
    out = gpu.zeros((1, 4 * len(lines)), np.float32)
    module["k"][1, 1](gpu.texture(texels * 10), gpu.to_device(words), out)
    got = out.copy_to_host().reshape(-1, 4)
    assert got[0, 0] == 2
    assert got[1, 0] == 200
    # Normalized 1.0 along x, wrapped, is between columns 1 and 0; 0.5 along y between the rows.
    assert got[2, 0] == 2.5
    assert got[3, 0] == 0
    assert got[4, 0] == 20
    assert surface.copy_to_host()[0] == 9
    assert got[6, :1].view(np.uint32)[0] == 1
    assert got[7, :1].view(np.uint32)[0] == 1
    with pytest.raises(wl.WarploomError, match=r"no texture variable 'third'.*first, plain"):
        module.bind("third", second)


@pytest.mark.parametrize("geometry", [*SHAPES, "references"])
def test_what_is_printed_parses_to_the_same(geometry: str) -> None:
    text = kernel(LINES.get(geometry) or surfaces("2d"), REFERENCES)
    module = parse(text)
    assert parse(print_module(module)) == module
