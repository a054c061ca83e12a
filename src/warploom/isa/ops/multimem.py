"""Accesses by multicast addresses: PTX ISA, "multimem.ld_reduce, multimem.st, multimem.red".

A multicast object here has one device, so that an address stands for one place: each is a plain
load, store or reduction there (`lowered`).
"""

from __future__ import annotations

from warploom.isa.spec import Operation, Unit, declare, decode

LOAD_DOC = "d = the values at [a] on all devices, reduced   PTX ISA: multimem.ld_reduce"
STORE_DOC = "[a] on all devices = b   PTX ISA: multimem.st"
REDUCE_DOC = "[a] on all devices = [a] op b   PTX ISA: multimem.red"

SCOPES = ("cta", "cluster", "gpu", "sys")
HALVES = ("f16", "bf16", "f16x2", "bf16x2")
NARROW = ("e4m3", "e5m2", "e4m3x2", "e5m2x2", "e4m3x4", "e5m2x4")
BITS = {
    **dict.fromkeys(("f16", "bf16", "e4m3x2", "e5m2x2"), "b16"),
    **dict.fromkeys(("f16x2", "bf16x2", "e4m3x4", "e5m2x4"), "b32"),
    **dict.fromkeys(("e4m3", "e5m2"), "b8"),
}
"""The types by which plain loads and stores move these."""

REDUCTIONS = {
    ("and", "or", "xor"): ("b32", "b64"),
    ("add",): ("u32", "s32", "u64", "f32", "f64"),
    ("min", "max"): ("u32", "s32", "u64", "s64"),
}
VECTORS = {"v2": (*HALVES, "f32"), "v4": (*HALVES, "f32"), "v8": HALVES[:2]}


def _declare(part: str, syntax: str, doc: str, **choices: tuple[str, ...]) -> None:
    loads = part == "ld_reduce"
    for order in ("{.weak}", ".sem.scope"):
        sem = {"ld_reduce": "acquire", "st": "release", "red": "release"}[part]
        found = {"sem": ("relaxed", sem), "scope": SCOPES} if order == ".sem.scope" else {}
        declare(
            f"multimem.{part}{order}{{.space}}{syntax}",
            dst="d:type" if loads else "",
            src="a:address" if loads else "a:address, b:type",
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
_declare("ld_reduce", ".redop{.acc::f32}.type", LOAD_DOC, redop=ANY, type=HALVES)
_declare("ld_reduce", ".redop{.acc::f16}.type", LOAD_DOC, redop=ANY, type=NARROW)
_declare("red", ".redop.type", REDUCE_DOC, redop=ANY, type=HALVES)
_declare(
    "st",
    ".type",
    STORE_DOC,
    type=("b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64", *HALVES[2:]),
)
for vec, types in VECTORS.items():
    _declare("ld_reduce", ".redop{.acc::f32}.vec.type", LOAD_DOC, redop=ANY, vec=(vec,), type=types)
    _declare("red", ".redop.vec.type", REDUCE_DOC, redop=ANY, vec=(vec,), type=types)
    _declare("st", ".vec.type", STORE_DOC, vec=(vec,), type=types)


def lowered(operation: Operation) -> Operation:
    """Return the plain load, store or reduction that an operation is with one device; another
    operation as it is."""
    if operation.name != "multimem":
        return operation
    m = operation.modifiers
    name = next(part for part in ("ld_reduce", "st", "red") if part in m)
    type = m.text("type", "")
    parts = ["ld" if name == "ld_reduce" else name, m["sem"], m["scope"], m["space"]]
    if name == "red":
        noftz = "noftz" if type in HALVES and m["redop"] == "add" else None
        parts += [m["redop"], noftz, m["vec"], type]
    else:
        parts += [m["vec"], BITS.get(type, type)]
    return decode(".".join(part for part in parts if part))
