"""Parameters of inlined calls as registers.

They are stored and loaded at fixed places of a thread's frame. Cutting the frame wherever some
element begins or ends leaves pieces that each access covers whole; each piece is a register.
"""

from __future__ import annotations

from itertools import pairwise

from warploom.core.types import Kind, ScalarType
from warploom.program.program import Program
from warploom.ptx.ir import Address, Instruction, Register, Symbol, Vector


def frame_access(program: Program, instruction: Instruction) -> range | None:
    """Returns where in the thread's frame the elements that a `ld.param` or `st.param` reaches
    begin, and at the last step end, in bytes; None where it reaches none."""
    if instruction.operation.name not in ("ld", "st"):
        return None
    address = next(o for o in instruction.operands if isinstance(o, Address))
    if not isinstance(address.base, Symbol) or address.base.name not in program.slots:
        return None
    place = program.slots[address.base.name]
    if not place.frame:
        return None
    data = next(o for o in instruction.operands if not isinstance(o, Address))
    count = len(data.elements) if isinstance(data, Vector) else 1
    size = instruction.operation.modifiers.scalar().bytes
    start = place.offset + address.base.offset + address.offset
    return range(start, start + size * count + 1, size)


def frame_pieces(program: Program) -> dict[int, Register]:
    """Return the pieces of the frame, by offset; `type.bits` of the register tells a piece's
    length."""
    found = (frame_access(program, i) for i in program.instructions)
    accesses = {a for a in found if a is not None}
    cuts = sorted({edge for access in accesses for edge in access})
    pieces: dict[int, Register] = {}
    for start, end in pairwise(cuts):
        if any(access[0] <= start < access[-1] for access in accesses):
            bits = 8 * (end - start)
            type = ScalarType(f"b{bits}", Kind.BITS, bits)
            pieces[start] = Register(f"frame+{start}", type)
    return pieces
