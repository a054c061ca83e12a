"""Accesses by multicast addresses: PTX ISA, "multimem.ld_reduce, multimem.st, multimem.red".

A multicast object here has one device, so that an address stands for one place: each is a plain
load, store or reduction there (`lowered`).
"""

from __future__ import annotations

from warploom.isa.kinds import OpKind
from warploom.isa.spec import Operation, Unit, declare, decode

LOAD_DOC = "d = the reduction of [a] over all devices   PTX ISA: multimem.ld_reduce"
STORE_DOC = "[a] on all devices = b   PTX ISA: multimem.st"
REDUCE_DOC = "[a] on all devices = [a] op b   PTX ISA: multimem.red"

SCOPES = ("cta", "cluster", "gpu", "sys")
HALVES = ("f16", "bf16", "f16x2", "bf16x2")
EIGHTHS = {
    "b8": ("e4m3", "e5m2"),
    "b16": ("e4m3x2", "e5m2x2"),
    "b32": ("e4m3x4", "e5m2x4"),
}
"""Types of 8-bit elements by the registers that hold them."""

BITS = {
    **{type: bits for bits, types in EIGHTHS.items() for type in types},
    **dict.fromkeys(("f16", "bf16"), "b16"),
    **dict.fromkeys(("f16x2", "bf16x2"), "b32"),
}
"""The types by which plain loads and stores move these."""

REDUCTIONS = {
    ("and", "or", "xor"): ("b32", "b64"),
    ("add",): ("u32", "s32", "u64", "f32", "f64"),
    ("min", "max"): ("u32", "s32", "u64", "s64"),
}
VECTORS = {
    "": HALVES[2:],
    "v2": HALVES,
    "v4": HALVES,
    "v8": HALVES[:2],
}
EIGHTH_VECTORS = {
    "": ("b32",),
    "v2": ("b16", "b32"),
    "v4": ("b8", "b16", "b32"),
    "v8": ("b8", "b16"),
}
"""Elements by vectors, such that an access has 32, 64 or 128 bits."""


def _declare(
    part: str, syntax: str, doc: str, value: str = "type", /, **choices: tuple[str, ...]
) -> None:
    loads = part == "ld_reduce"
    for order in ("{.weak}", ".sem.scope"):
        sem = {"ld_reduce": "acquire", "st": "release", "red": "release"}[part]
        found = {"sem": ("relaxed", sem), "scope": SCOPES} if order == ".sem.scope" else {}
        declare(
            f"multimem.{part}{order}{{.space}}{syntax}",
            OpKind.MULTICAST_ACCESS,
            dst=f"d:{value}" if loads else "",
            src="a:address" if loads else f"a:address, b:{value}",
            unit=Unit.MEMORY,
            semantics=None,
            doc=doc,
            needs=(),
            space=("global",),
            **found,
            **choices,
        )


for redop, types in REDUCTIONS.items():
    _declare("ld_reduce", ".redop.type", LOAD_DOC, redop=redop, type=types)
    _declare("red", ".redop.type", REDUCE_DOC, redop=redop, type=types)
ANY = ("add", "min", "max")
WORDS = ("b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64")
_declare("st", ".type", STORE_DOC, type=WORDS)
for vec, halves in VECTORS.items():
    slot = ".vec" if vec else ""
    of: dict[str, tuple[str, ...]] = {"vec": (vec,)} if vec else {}
    ops = ANY if vec else ("add",)
    _declare("ld_reduce", f".redop{slot}.type", LOAD_DOC, redop=ANY, type=halves, **of)
    _declare(
        "ld_reduce", f".redop.acc::f32{slot}.type", LOAD_DOC, redop=("add",), type=halves, **of
    )
    _declare("red", f".redop{slot}.type", REDUCE_DOC, redop=ops, type=halves, **of)
    _declare("st", f"{slot}.type", STORE_DOC, type=halves, **of)
    for bits in EIGHTH_VECTORS[vec]:
        of["type"] = EIGHTHS[bits]
        value = f"{bits}*{vec[1:]}" if vec else bits
        _declare("ld_reduce", f".redop{slot}.type", LOAD_DOC, value, redop=ANY, **of)
        _declare("ld_reduce", f".redop.acc::f16{slot}.type", LOAD_DOC, value, redop=("add",), **of)
        _declare("st", f"{slot}.type", STORE_DOC, value, **of)
SINGLES: dict[str, tuple[str, ...]] = {"vec": ("v2", "v4"), "type": ("f32",)}
_declare("ld_reduce", ".redop.vec.type", LOAD_DOC, redop=("add",), **SINGLES)
_declare("red", ".redop.vec.type", REDUCE_DOC, redop=("add",), **SINGLES)
_declare("st", ".vec.type", STORE_DOC, **SINGLES)


def lowered(operation: Operation) -> Operation:
    """Returns the plain load, store or reduction that an operation is with one device; another
    operation as it is."""
    if operation.name != "multimem":
        return operation
    m = operation.modifiers
    name = next(part for part in ("ld_reduce", "st", "red") if part in m)
    type = m.text("type", "")
    parts = ["ld" if name == "ld_reduce" else name, m["sem"], m["scope"], m["space"]]
    if name == "red":
        noftz = "noftz" if type in HALVES else None
        parts += [m["redop"], noftz, m["vec"], type]
    else:
        parts += [m["vec"], BITS.get(type, type)]
    return decode(".".join(part for part in parts if part))
