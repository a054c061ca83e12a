"""Matrix instructions of a warp: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions".

They have no terms: each lane holds a part of each matrix (`isa.fragments`). How sums round is in
docs/decisions/0006-matrix-sums.md.
"""

from __future__ import annotations

from warploom.isa.fragments import (
    Fragment,
    Product,
    accumulator,
    extents,
    operand,
    quad_accumulator,
    quad_operand,
)
from warploom.isa.kinds import OpKind
from warploom.isa.scales import BLOCKS, DEFAULT_BLOCKS, Scales
from warploom.isa.sparsity import Sparsity
from warploom.isa.spec import Modifiers, Operation, Unit, declare

LAYOUTS = ("row", "col")
SPACES = ("global", "shared", "shared::cta")
WMMA_HALF_COUNT = 16
"""Elements of a `wmma` fragment of f16 for A or B, whatever the shape: eight registers."""

MMA_DOC = """D = A * B + C   PTX ISA, Multiply-and-Accumulate Instruction: mma"""
SPARSE_DOC = """D = A * B + C; metadata e in the lanes that f selects gives the columns of the
elements of A   PTX ISA: mma.sp, ordered_metadata"""
SCALED_DOC = """D = (A * scale_a) * (B * scale_b) + C, with a scale for each block of elements
PTX ISA: mma, block_scale"""
WMMA_DOC = """D = A * B + C   PTX ISA, Matrix Multiply-and-Accumulate: wmma.mma"""
LOAD_DOC = """r = the matrix at [p], with the leading dimension `stride`   PTX ISA: wmma.load"""
STORE_DOC = """the matrix at [p] = r   PTX ISA: wmma.store"""


def registers(name: str, fragment: Fragment) -> str:
    """Returns how an operand that holds a fragment is declared."""
    type = fragment.type if fragment.type in ("f32", "f64", "s32") else "b32"
    return f"{name}:{type}*{fragment.registers}"


def fragment_of(m: Modifiers, role: str, type: str) -> Fragment:
    """Returns the fragment of operand a, b, c or d of a form with these modifiers."""
    shape = m.text("shape", "")
    rows, columns, depth = extents(shape)
    if shape == "m8n8k4" and type in ("f16", "f32"):
        if role in "cd":
            return quad_accumulator(type)
        return quad_operand(m[f"{role}layout"] == {"a": "row", "b": "col"}[role])
    if role in "cd":
        return accumulator(type, rows, columns)
    repeated = WMMA_HALF_COUNT if type == "f16" and "wmma" in m else None
    if role == "a" and "sparse" in m:
        depth //= 2
    return operand(type, rows if role == "a" else columns, depth, repeated)


def product_of(operation: Operation) -> Product:
    """Returns what an `mma` or `wmma.mma` multiplies."""
    return product(whole(operation.name, operation.modifiers))


def product(m: Modifiers) -> Product:
    """Returns the product that an `mma` computes, by its modifiers."""
    a, b, c, d = (fragment_of(m, role, element_type(m, role)) for role in "abcd")
    sparsity = Sparsity(a.bits, b.columns) if "sparse" in m else None
    return Product(a, b, c, d, "satfinite" in m, m.text("logic", ""), sparsity, scales_of(m))


def element_type(m: Modifiers, role: str) -> str:
    """Returns the type of the elements of an operand; .e2m1 is one of four bits, or stands in the
    middle of a byte (PTX ISA, mma, "kind")."""
    type = m.text(f"{role}type", "f16")
    in_bytes = m.text("kind", "") in ("kind::f8f6f4", "kind::mxf8f6f4")
    return f"{type} in a byte" if type == "e2m1" and in_bytes else type


def scales_of(m: Modifiers) -> Scales | None:
    """Returns the scales that a form multiplies blocks by; None where it has none."""
    if "stype" not in m:
        return None
    size = m["size"]
    return Scales(m.text("stype", ""), BLOCKS[size] if size else DEFAULT_BLOCKS[m.text("kind", "")])


def whole(name: str, m: Modifiers) -> Modifiers:
    """Returns the modifiers, with the name of the instruction as a flag."""
    return Modifiers({**m.values, name: name})


# ---- mma ----------------------------------------------------------------------------------------


def mma(shapes: str, a: tuple[str, ...], sums: tuple[str, ...], *, same: bool = True) -> None:
    """Declares the forms of `mma.sync` of these shapes, operand types and accumulator types."""
    for shape in shapes.split():
        for c in sums:
            for d in (c,) if same else sums:
                _mma(shape, a, c, d)


def _mma(shape: str, a: tuple[str, ...], c: str, d: str) -> None:
    """Declares `mma` of one shape, for each type of A in `a`."""
    volta = shape == "m8n8k4" and a == ("f16",)
    choices = {
        "shape": (shape,),
        "alayout": LAYOUTS if volta else ("row",),
        "blayout": LAYOUTS if volta else ("col",),
        "dtype": (d,),
        "atype": a,
        "btype": a,
        "ctype": (c,),
        "logic": ("xor", "and"),
    }
    saturation = "{.satfinite}" if c == "s32" and a != ("b1",) else ""
    logic = ".logic.popc" if a == ("b1",) else ""
    _declare(
        f"mma.sync.aligned.shape.alayout.blayout{saturation}.dtype.atype.btype.ctype{logic}",
        "mma",
        MMA_DOC,
        choices,
    )


def _declare(syntax: str, name: str, doc: str, choices: dict[str, tuple[str, ...]]) -> None:
    """Declares a form of a product; its operands follow from the first of each choice."""
    values = {slot: names[0] for slot, names in choices.items() if names}
    p = product(whole(name, Modifiers(values)))
    sources = [registers(n, f) for n, f in (("a", p.a), ("b", p.b), ("c", p.c))]
    sources += ["e:b32", "f:selector"] if p.sparsity else []
    sources += SCALE_OPERANDS if p.scales else []
    declare(
        syntax,
        OpKind.MATRIX_PRODUCT if name == "mma" else OpKind.WARP_MATRIX_PRODUCT,
        dst=registers("d", p.d),
        src=", ".join(sources),
        unit=Unit.MATRIX,
        semantics=None,
        doc=doc,
        **{slot: names for slot, names in choices.items() if names},
    )


mma("m8n8k4", ("f16",), ("f16", "f32"), same=False)
mma("m16n8k8 m16n8k16", ("f16",), ("f16", "f32"))
mma("m16n8k8 m16n8k16", ("bf16",), ("f32",))
mma("m16n8k4 m16n8k8", ("tf32",), ("f32",))
mma("m16n8k16 m16n8k32", ("e4m3", "e5m2"), ("f16", "f32"))
mma("m8n8k4 m16n8k4 m16n8k8 m16n8k16", ("f64",), ("f64",))
mma("m8n8k16 m16n8k16 m16n8k32", ("s8", "u8"), ("s32",))
mma("m8n8k32 m16n8k32 m16n8k64", ("s4", "u4"), ("s32",))
mma("m8n8k128 m16n8k128 m16n8k256", ("b1",), ("s32",))


def sparse(shapes: str, a: tuple[str, ...], sums: tuple[str, ...]) -> None:
    """Declares the forms of `mma.sp` of these shapes, operand types and accumulator types."""
    for shape in shapes.split():
        for c in sums:
            choices = {
                "sparse": ("sp", "sp::ordered_metadata"),
                "shape": (shape,),
                "alayout": ("row",),
                "blayout": ("col",),
                "dtype": (c,),
                "atype": a,
                "btype": a,
                "ctype": (c,),
            }
            saturation = "{.satfinite}" if c == "s32" else ""
            layouts = f"alayout.blayout{saturation}"
            _declare(
                f"mma.sparse.sync.aligned.shape.{layouts}.dtype.atype.btype.ctype",
                "mma",
                SPARSE_DOC,
                choices,
            )


sparse("m16n8k16 m16n8k32", ("f16",), ("f16", "f32"))
sparse("m16n8k16 m16n8k32", ("bf16",), ("f32",))
sparse("m16n8k8 m16n8k16", ("tf32",), ("f32",))
sparse("m16n8k64", ("e4m3", "e5m2"), ("f32",))
sparse("m16n8k32 m16n8k64", ("s8", "u8"), ("s32",))
sparse("m16n8k64 m16n8k128", ("s4", "u4"), ("s32",))

# ---- mma with a kind, of architectures of compute capability 12 ---------------------------------

SMALL = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
SCALE_OPERANDS = ["scale_a:b32", "at_a:scale_a*2", "scale_b:b32", "at_b:scale_b*2"]
"""Registers with scales, and which byte of which lane they are in."""


def kinds(
    kind: str, types: tuple[str, ...], shapes: tuple[str, str], size: str, scale: str
) -> None:
    """Declares the dense and sparse form of a kind of `mma`: its shapes, the number of blocks
    (optional in braces) and the type of their scales, "" for none."""
    for shape, sparse in zip(shapes, ("", ".sparse"), strict=True):
        for sums in ("f32",) if scale else ("f32", "f16"):
            choices = {
                "sparse": ("sp::ordered_metadata",) if sparse else (),
                "shape": (shape,),
                "alayout": ("row",),
                "blayout": ("col",),
                "kind": (kind,),
                "size": (size.strip("{}"),) if size else (),
                "dtype": (sums,),
                "atype": types,
                "btype": types,
                "ctype": (sums,),
                "stype": (scale,) if scale else (),
            }
            blocks = ("block_scale{.size}" if "{" in size else "block_scale.size") if size else ""
            parts = f"alayout.blayout.kind{blocks and '.' + blocks}.dtype.atype.btype.ctype"
            _declare(
                f"mma{sparse}.sync.aligned.shape.{parts}{scale and '.stype'}",
                "mma",
                SCALED_DOC if scale else SPARSE_DOC if sparse else MMA_DOC,
                choices,
            )


BYTES, NIBBLES = ("m16n8k32", "m16n8k64"), ("m16n8k64", "m16n8k128")
kinds("kind::f8f6f4", SMALL, BYTES, "", "")
kinds("kind::mxf8f6f4", SMALL, BYTES, "{scale_vec::1X}", "ue8m0")
kinds("kind::mxf4", ("e2m1",), NIBBLES, "{scale_vec::2X}", "ue8m0")
kinds("kind::mxf4nvf4", ("e2m1",), NIBBLES, "scale_vec::2X", "ue8m0")
kinds("kind::mxf4nvf4", ("e2m1",), NIBBLES, "scale_vec::4X", "ue8m0")
kinds("kind::mxf4nvf4", ("e2m1",), NIBBLES, "scale_vec::4X", "ue4m3")

# ---- wmma ---------------------------------------------------------------------------------------

CUBES = ("m16n16k16", "m8n32k16", "m32n8k16")


def wmma(
    shape: str, a: tuple[str, ...], sums: tuple[str, ...], layouts: tuple[str, ...] = LAYOUTS
) -> None:
    """Declares `wmma.load`, `.mma` and `.store` of a shape, operand types and accumulator types."""
    for role, types in (("a", a), ("b", a)):
        only = layouts if len(layouts) == 2 else (("row",) if role == "a" else ("col",))
        _move("load", role, shape, types, only)
    for type in sums:
        _move("load", "c", shape, (type,), LAYOUTS)
        _move("store", "d", shape, (type,), LAYOUTS)
    for c in sums:
        for d in sums:
            _wmma_mma(shape, a, c, d, layouts)


_moves: set[tuple[str, ...]] = set()


def _move(
    access: str, role: str, shape: str, types: tuple[str, ...], layouts: tuple[str, ...]
) -> None:
    """Declares one `wmma.load` or `wmma.store`, unless another family of types has."""
    if (key := (access, role, shape, *types)) in _moves:
        return
    _moves.add(key)
    values = {"wmma": "wmma", "shape": shape, "alayout": "row", "blayout": "col"}
    held = registers("r", fragment_of(Modifiers(values), role, types[0]))
    declare(
        "wmma.access.role.sync.aligned.layout.shape{.space}.type",
        OpKind.WARP_MATRIX_LOAD if access == "load" else OpKind.WARP_MATRIX_STORE,
        dst=held if access == "load" else "",
        src=f"p:address, {'' if access == 'load' else held + ', '}stride:u32?",
        unit=Unit.MATRIX,
        doc=LOAD_DOC if access == "load" else STORE_DOC,
        access=(access,),
        role=(role,),
        layout=layouts,
        shape=(shape,),
        space=SPACES,
        type=types,
    )


def _wmma_mma(shape: str, a: tuple[str, ...], c: str, d: str, layouts: tuple[str, ...]) -> None:
    """Declares `wmma.mma` of one shape, for each type of A in `a`."""
    bits, half = a == ("b1",), a == ("f16",)
    choices = {
        "logic": ("xor", "and") if bits else (),
        "alayout": layouts if len(layouts) == 2 else ("row",),
        "blayout": layouts if len(layouts) == 2 else ("col",),
        "shape": (shape,),
        "dtype": (d,),
        "atype": () if half else a,
        "btype": () if half else a,
        "ctype": (c,),
    }
    operands = ".dtype.ctype" if half else ".dtype.atype.btype.ctype"
    saturation = "{.satfinite}" if c == "s32" and not bits else ""
    rounding = "{.rn}" if c == "f64" else ""
    start = ".logic.popc" if bits else ""
    _declare(
        f"wmma.mma{start}.sync.aligned.alayout.blayout.shape{operands}{saturation}{rounding}",
        "wmma",
        WMMA_DOC,
        choices,
    )


for cube in CUBES:
    wmma(cube, ("f16",), ("f16", "f32"))
    wmma(cube, ("bf16",), ("f32",))
    wmma(cube, ("s8", "u8"), ("s32",))
wmma("m16n16k8", ("tf32",), ("f32",))
wmma("m8n8k4", ("f64",), ("f64",))
wmma("m8n8k32", ("s4", "u4"), ("s32",), ("row",))
wmma("m8n8k128", ("b1",), ("s32",), ("row",))
