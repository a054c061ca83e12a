"""Textures and surfaces: PTX ISA, "Texture Instructions" and "Surface Instructions".

They have no terms: `texture.requests` says what each does, for both machines. An operand of
type `texels` is `[texture, coordinates]` or `[texture, sampler, coordinates]`. Textures of several
samples and comparisons with a depth have no form: CUDA makes no textures that they could read.
"""

from __future__ import annotations

from warploom.isa.kinds import OpKind
from warploom.isa.spec import Unit, declare
from warploom.texture.descriptors import KINDS, QUERIES

FLAT = ("1d", "2d", "3d", "a1d", "a2d")
CUBES = ("cube", "acube")
BY_FACES = ("2d", "a2d", *CUBES)
WORDS = ("u32", "s32", "f32", "f16")

FETCH_DOC = "d = the texture at c, filtered   PTX ISA, Texture Instructions: tex"
LEVEL_DOC = "d = the texture at c, at level of detail lod   PTX ISA, Texture Instructions: tex"
GRADIENT_DOC = """d = the texture at c; gradients dx and dy give the level of detail
PTX ISA, Texture Instructions: tex"""
GATHER_DOC = "d = one component of the four texels around c   PTX ISA, Texture Instructions: tld4"


def fetches(geometries: tuple[str, ...], coordinates: tuple[str, ...]) -> None:
    """Declares the forms of `tex` for some geometries and types of coordinates."""
    for results, destination in ((".v4.dtype", "d:dtype*4"), (".v2.f16x2", "d:f16x2*2")):
        for level, operands, doc in (
            ("{.base}", "", FETCH_DOC),
            (".level", "lod:ctype, ", LEVEL_DOC),
            (".grad", "dx:axes, dy:axes, ", GRADIENT_DOC),
        ):
            if level == ".grad" and coordinates == ("s32",):
                continue
            declare(
                f"tex{level}.geom{results}.ctype",
                OpKind.TEXTURE_LOAD,
                dst=destination,
                src=f"c:texels, {operands}offset:axes?",
                unit=Unit.TEXTURE,
                doc=doc,
                geom=geometries,
                dtype=WORDS,
                ctype=coordinates,
            )


fetches((*FLAT, *CUBES), ("f32",))
fetches(FLAT, ("s32",))
declare(
    "tld4.comp.geom.v4.dtype.f32",
    OpKind.TEXTURE_GATHER,
    dst="d:dtype*4",
    src="c:texels, offset:axes?",
    unit=Unit.TEXTURE,
    doc=GATHER_DOC,
    comp=("r", "g", "b", "a"),
    geom=BY_FACES,
    dtype=("u32", "s32", "f32"),
)

OF_TEXTURES = tuple(query for query in QUERIES if query != "memory_layout")
OF_SURFACES = (
    *("width", "height", "depth", "channel_data_type", "channel_order"),
    *("array_size", "memory_layout"),
)
declare(
    "txq.query.b32",
    OpKind.TEXTURE_QUERY,
    dst="d:b32",
    src="a:handle",
    unit=Unit.TEXTURE,
    doc="d = the queried attribute of a texture or sampler   PTX ISA, Texture Instructions: txq",
    query=OF_TEXTURES,
)
declare(
    "txq.level.query.b32",
    OpKind.TEXTURE_QUERY,
    dst="d:b32",
    src="a:handle, lod:s32",
    unit=Unit.TEXTURE,
    doc="d = the queried size of a texture level   PTX ISA, Texture Instructions: txq",
    query=("width", "height", "depth"),
)
declare(
    "istypep.kind",
    OpKind.TEXTURE_QUERY,
    dst="p:pred",
    src="a:u64",
    unit=Unit.TEXTURE,
    doc="p = whether a is a handle of this kind   PTX ISA, Texture Instructions: istypep",
    kind=KINDS,
)

VECTORS = ("v2", "v4")
ELEMENTS = ("b8", "b16", "b32", "b64")
OUTSIDE = ("trap", "clamp", "zero")
declare(
    "suld.b.geom{.cop}{.vec}.type{.mode}",
    OpKind.SURFACE_LOAD,
    dst="d:type",
    src="c:texels",
    unit=Unit.TEXTURE,
    doc="d = the bytes of a surface at c   PTX ISA, Surface Instructions: suld",
    geom=FLAT,
    cop=("ca", "cg", "cs", "cv"),
    mode=OUTSIDE,
    vec=VECTORS,
    type=ELEMENTS,
)
declare(
    "sust.b.geom{.cop}{.vec}.type{.mode}",
    OpKind.SURFACE_STORE,
    src="c:texels, v:type",
    unit=Unit.TEXTURE,
    doc="the bytes of a surface at c = v   PTX ISA, Surface Instructions: sust",
    geom=FLAT,
    cop=("wb", "cg", "cs", "wt"),
    mode=OUTSIDE,
    vec=VECTORS,
    type=ELEMENTS,
)
declare(
    "sust.p.geom{.vec}.type{.mode}",
    OpKind.SURFACE_STORE,
    src="c:texels, v:type",
    unit=Unit.TEXTURE,
    doc="the texel at c = v, in the surface's format   PTX ISA, Surface Instructions: sust",
    geom=FLAT,
    vec=VECTORS,
    type=("b32",),
    mode=OUTSIDE,
)


def reductions(op: tuple[str, ...], types: tuple[str, ...], formatted: tuple[str, ...]) -> None:
    """Declares reductions at bytes of a surface, and those of texels."""
    for way, chosen in (("b", types), ("p", formatted)):
        declare(
            f"sured.{way}.op.geom.type{{.mode}}",
            OpKind.SURFACE_REDUCTION,
            src="c:texels, v:type",
            unit=Unit.TEXTURE,
            doc="the surface at c = the surface at c op v, one lane at a time"
            "   PTX ISA, Surface Instructions: sured",
            op=op,
            geom=("1d", "2d", "3d"),
            type=chosen,
            mode=OUTSIDE,
        )


reductions(("add",), ("u32", "s32", "u64"), ("b32", "b64"))
reductions(("min", "max"), ("u32", "s32", "u64", "s64"), ("b32", "b64"))
reductions(("and", "or"), ("b32",), ("b32",))
declare(
    "suq.query.b32",
    OpKind.SURFACE_QUERY,
    dst="d:b32",
    src="a:handle",
    unit=Unit.TEXTURE,
    doc="d = the queried attribute of a surface   PTX ISA, Surface Instructions: suq",
    query=OF_SURFACES,
)
