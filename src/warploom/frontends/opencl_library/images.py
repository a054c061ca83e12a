"""Functions of images, by the machine's texture unit (OpenCL C 3.0, 6.15.15).

An image that a kernel reads is the handle of a texture, one that it writes that of a surface, and a
sampler is the word that the texture unit takes (`warploom.texture.descriptors`). Order and type of
channels, and colors outside the image, are properties of the texture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from warploom.texture.descriptors import (
    BORDERED,
    CLAMP,
    LINEAR,
    MIRROR,
    MODES_AT,
    NORMALIZED,
    SAMPLER_TAG,
    WRAP,
)

Lines = Iterator[str]


@dataclass(frozen=True)
class ImageKind:
    """A kind of images: the geometry of its texture, the number of its coordinates, whether the
    last of them is the layer of an array, and whether its pixels are depths."""

    type: str
    geometry: str
    axes: int
    layered: bool = False
    depth: bool = False

    @property
    def coordinates(self) -> int:
        """Returns the components of a coordinate: a vector has no three of them."""
        count = self.axes + self.layered
        return 4 if count == 3 else count

    def point(self, type: str) -> str:
        return f"{type}{self.coordinates if self.coordinates > 1 else ''}"


KINDS = (
    ImageKind("image1d_t", "1d", 1),
    ImageKind("image1d_buffer_t", "1d", 1),
    ImageKind("image2d_t", "2d", 2),
    ImageKind("image3d_t", "3d", 3),
    ImageKind("image1d_array_t", "a1d", 1, layered=True),
    ImageKind("image2d_array_t", "a2d", 2, layered=True),
    ImageKind("image2d_depth_t", "2d", 2, depth=True),
    ImageKind("image2d_array_depth_t", "a2d", 2, layered=True, depth=True),
)
RESULTS = {"f": ("float", "f32", "f"), "i": ("int", "s32", "r"), "ui": ("uint", "u32", "r")}
UNSAMPLED = "0x%xul" % (SAMPLER_TAG | sum(BORDERED << (MODES_AT + 4 * n) for n in range(3)))
"""The sampler of a read without one: the pixel itself, and the border's color outside."""

_MODES = sum(mode << 4 * n for n, mode in enumerate((CLAMP, CLAMP, BORDERED, WRAP, MIRROR)))
"""The texture unit's mode for each of CLK_ADDRESS_NONE, CLAMP_TO_EDGE, CLAMP, REPEAT, and
MIRRORED_REPEAT, in four bits each."""

PRELUDE = f"""
#define __cl_image(type, access) \\
    ulong __attribute__((overloadable)) __cl_handle(access type i) __asm__("__cl_handle_of");
ulong __attribute__((overloadable)) __cl_word(sampler_t s) __asm__("__cl_word_of");
__attribute__((always_inline)) ulong __cl_handle_of(global char *i) {{ return (ulong)i; }}
__attribute__((always_inline)) ulong __cl_word_of(constant char *s) {{ return (ulong)s; }}
__attribute__((always_inline)) constant char *__translate_sampler_initializer(int bits) {{
    ulong modes = {_MODES:#x} >> 4 * (bits >> 1 & 7) & 15;
    ulong word = {SAMPLER_TAG:#x}ul | modes * 0x111 << {MODES_AT};
    word |= (bits & CLK_FILTER_LINEAR ? {LINEAR} : 0) | (bits & 1 ? {NORMALIZED} : 0);
    return (constant char *)word;
}}
static __attribute__((always_inline)) int __cl_layer(float z)
    {{ int n; __asm__("cvt.rni.s32.f32 %0, %1;" : "=r"(n) : "f"(z)); return n < 0 ? 0 : n; }}
"""


def declarations() -> Lines:
    """Yields how each kind of image becomes a handle."""
    for kind in KINDS:
        for access in ("read_only", "write_only"):
            yield f"__cl_image({kind.type}, {access})"


def _layer(kind: ImageKind, point: str) -> str:
    """Returns the layer of a coordinate: rounded, and not negative."""
    last = f"c.s{kind.axes}"
    return f"__cl_layer({last})" if point == "float" else f"({last} < 0 ? 0 : {last})"


def _axes(kind: ImageKind) -> list[str]:
    return ["c"] if kind.coordinates == 1 else [f"c.{'xyz'[n]}" for n in range(kind.axes)]


def _operands(kind: ImageKind, first: int) -> str:
    """Returns the coordinates of an instruction, whose operands are numbered from `first`, as PTX
    has them for the geometry: the layer first, and vectors of 1, 2 or 4."""
    count = kind.axes + kind.layered
    operands = [f"%{first + n}" for n in range(count)]
    operands += [operands[-1]] * (1 if count == 3 else 0)
    return f"{{{', '.join(operands)}}}"


def _read(name: str) -> Lines:
    """Yields the reads of one type of result, with a sampler and without. With one, whole numbers
    are coordinates like any others: the sampler has the mode for what is outside."""
    element, ptx, register = RESULTS[name.removeprefix("read_image")]
    if name == "read_imageh":
        return
    for kind in KINDS:
        if kind.depth and element != "float":
            continue
        for point, sampled in (("float", True), ("int", True), ("int", False)):
            if sampled and kind.type == "image1d_buffer_t":
                continue
            yield _read_one(name, kind, point, element, ptx, register, sampled=sampled)


def _read_one(
    name: str, kind: ImageKind, point: str, element: str, ptx: str, register: str, *, sampled: bool
) -> str:
    result = element if kind.depth else f"{element}4"
    sampler = "__cl_word(s)" if sampled else UNSAMPLED
    given = [
        f'"{"f" if sampled else "r"}"(({"float" if sampled else "int"}){c})' for c in _axes(kind)
    ]
    if kind.layered:
        given.insert(0, f'"r"({_layer(kind, point)})')
    outputs = ", ".join(f'"={register}"(r{n})' for n in range(4))
    inputs = ", ".join(['"l"(__cl_handle(i))', f'"l"({sampler})', *given])
    value = "r0" if kind.depth else f"({result})(r0, r1, r2, r3)"
    return (
        f"__cl_inline {result} {name}(read_only {kind.type} i,{' sampler_t s,' * sampled}"
        f" {kind.point(point)} c) {{ {element} r0, r1, r2, r3;"
        f' __asm__("tex.{kind.geometry}.v4.{ptx}.{"f32" if sampled else "s32"}'
        f' {{%0, %1, %2, %3}}, [%4, %5, {_operands(kind, 6)}];" : {outputs} : {inputs});'
        f" return {value}; }}"
    )


def _write(name: str) -> Lines:
    """Yields the writes. The texture unit converts; a pixel outside the image is a fault."""
    element, _, register = RESULTS[name.removeprefix("write_image")]
    for kind in KINDS:
        if kind.depth and element != "float":
            continue
        given = [f'"r"({c})' for c in _axes(kind)]
        if kind.layered:
            given.insert(0, f'"r"(c.s{kind.axes})')
        first = 1 + len(given)
        value = "float" if kind.depth else f"{element}4"
        parts = [f'"{register}"(v{"" if kind.depth else f".s{n}"})' for n in range(4)]
        words = ", ".join(f"%{first + n}" for n in range(4))
        yield (
            f"__cl_inline void {name}(write_only {kind.type} i, {kind.point('int')} c, {value} v)"
            f' {{ __asm__ volatile("sust.p.{kind.geometry}.v4.b32.trap [%0, {_operands(kind, 1)}],'
            f' {{{words}}};" :: "l"(__cl_handle(i)), {", ".join([*given, *parts])} : "memory"); }}'
        )


_ASKED = {
    "get_image_width": ("int", "width", 1),
    "get_image_height": ("int", "height", 2),
    "get_image_depth": ("int", "depth", 3),
    "get_image_array_size": ("size_t", "array_size", 0),
    "get_image_channel_data_type": ("int", "channel_data_type", 0),
    "get_image_channel_order": ("int", "channel_order", 0),
}


def _query(name: str) -> Lines:
    result, asked, axes = _ASKED[name]
    for kind in KINDS:
        there = kind.layered if asked == "array_size" else kind.axes >= axes
        for access, instruction in (("read_only", "txq"), ("write_only", "suq")):
            if there:
                yield (
                    f"__cl_inline {result} {name}({access} {kind.type} i) {{ int r;"
                    f' __asm__("{instruction}.{asked}.b32 %0, [%1];" : "=r"(r)'
                    ' : "l"(__cl_handle(i))); return r; }'
                )


def _dim(name: str) -> Lines:
    for kind in KINDS:
        for access in ("read_only", "write_only"):
            if kind.axes == 2:
                yield (
                    f"__cl_inline int2 get_image_dim({access} {kind.type} i)"
                    " { return (int2)(get_image_width(i), get_image_height(i)); }"
                )
            elif kind.axes == 3:
                yield (
                    f"__cl_inline int4 get_image_dim({access} {kind.type} i)"
                    " { return (int4)(get_image_width(i), get_image_height(i),"
                    " get_image_depth(i), 0); }"
                )


def _halves(name: str) -> Lines:
    """Yields the reads and writes of halves, which are those of floats and rounded."""
    for kind in KINDS:
        if kind.depth:
            continue
        if name == "write_imageh":
            yield (
                f"__cl_inline void {name}(write_only {kind.type} i, {kind.point('int')} c, half4 v)"
                " { write_imagef(i, c, (float4)(v.x, v.y, v.z, v.w)); }"
            )
            continue
        for point, sampled in (("float", True), ("int", True), ("int", False)):
            if sampled and kind.type == "image1d_buffer_t":
                continue
            yield (
                f"__cl_inline half4 {name}(read_only {kind.type} i,{' sampler_t s,' * sampled}"
                f" {kind.point(point)} c) {{ float4 r = read_imagef(i,{' s,' * sampled} c);"
                " return (half4)(r.x, r.y, r.z, r.w); }"
            )


IMAGE_FUNCTIONS: Mapping[str, Callable[[str], Lines]] = {
    **{f"read_image{end}": _read for end in RESULTS},
    **{f"write_image{end}": _write for end in RESULTS},
    **dict.fromkeys(("read_imageh", "write_imageh"), _halves),
    **dict.fromkeys(_ASKED, _query),
    "get_image_dim": _dim,
}
NEEDS = {
    "get_image_dim": tuple(_ASKED)[:3],
    "read_imageh": ("read_imagef",),
    "write_imageh": ("write_imagef",),
}
