"""Instructions as old modules have them, which mean others today: `mad.f32` without a rounding
mode, and arithmetic for compute capability 1.x, which flushes subnormal numbers without `.ftz`.

For sm_1x, `mad.f32` is an operation of its own (`isa.ops.floating`); for others, until PTX 3.2, it
is `fma.rn.f32` (PTX ISA, "Floating Point Instructions: mad"; ptxas emits FFMA).
"""

from __future__ import annotations

from functools import cache

from warploom.isa.spec import Operation, UnknownOpcode, decode
from warploom.ptx.cursor import Cursor
from warploom.ptx.names import Names

UNROUNDED = frozenset({"mad.f32", "mad.ftz.f32", "mad.sat.f32", "mad.ftz.sat.f32"})
LAST_UNROUNDED = (3, 2)
FLUSHING_END = (2, 0)
"""The first compute capability that has subnormal numbers in single precision."""


def rounded(cursor: Cursor, names: Names, text: str) -> str:
    """Returns the opcode of a `mad.f32` with the rounding mode that it means, for sm_1x without
    one. The opcode is the next token, where an error points."""
    if names.target < FLUSHING_END:
        return text
    if names.version > LAST_UNROUNDED:
        major, minor = names.version
        message = (
            f"`{text}` needs a rounding mode, as in `mad.rn.f32`: from PTX 4.0 on, it may be "
            f"omitted only for .target sm_1x, and this module has .version {major}.{minor}"
        )
        raise cursor.error(message, cursor.at)
    return text.replace("mad", "mad.rn")


@cache
def flushing(operation: Operation) -> Operation:
    """Returns what an operation on `.f32` does for compute capability 1.x: the same with `.ftz`, if
    it can have that and no result of 64 bits."""
    wide = any(type is not None and type.bits == 64 for type in operation.destination_types)
    parts = operation.text.split(".")
    if "f32" not in parts or "ftz" in parts or wide:
        return operation
    try:
        return decode(".".join((parts[0], "ftz", *parts[1:])))
    except UnknownOpcode:
        return operation
