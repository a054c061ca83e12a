"""Cuts the parameters of inlined calls into pieces, and names a register for each, to which emitted
code promotes them (scalar replacement of aggregates).

`st.param` and `ld.param` access constant offsets of a thread's frame. The frame is cut at every
offset where an accessed element begins or ends; each piece becomes a register, and each access
covers whole pieces:

    st.param.b64 [p], %rd1;    pieces frame+0 (b32) and frame+4 (b32): the store writes both,
    ld.param.b32 %r1, [p+4];   the load reads the second
"""

from __future__ import annotations

from itertools import pairwise

from warploom.core.types import Kind, ScalarType
from warploom.isa.instruction import Address, Instruction, Register, Symbol, Vector
from warploom.isa.kinds import OpKind
from warploom.program.program import Program


def frame_access(program: Program, instruction: Instruction) -> range | None:
    """Returns the byte offsets in the thread's frame at which the elements of a `ld.param` or
    `st.param` begin, then their end. None for an instruction that accesses no frame, as a load of a
    kernel parameter."""
    if instruction.operation.kind not in (OpKind.LOAD, OpKind.STORE):
        return None
    address = next(o for o in instruction.operands if isinstance(o, Address))
    if not isinstance(address.base, Symbol) or address.base.name not in program.slots:
        return None
    slot = program.slots[address.base.name]
    if not slot.frame:
        return None
    data = next(o for o in instruction.operands if not isinstance(o, Address))
    count = len(data.elements) if isinstance(data, Vector) else 1
    size = instruction.operation.modifiers.scalar().bytes
    start = slot.offset + address.base.offset + address.offset
    return range(start, start + size * count + 1, size)


def frame_pieces(program: Program) -> dict[int, Register]:
    """Returns the registers that replace the thread's frame, by the byte offset of their pieces:
    the frame is cut wherever an element of a `ld.param` or `st.param` begins or ends. A register's
    `type.bits` is the length of its piece. Parts of the frame that no instruction accesses have
    none."""
    ranges = (frame_access(program, i) for i in program.instructions)
    accesses = {a for a in ranges if a is not None}
    cuts = sorted({edge for access in accesses for edge in access})
    pieces: dict[int, Register] = {}
    for start, end in pairwise(cuts):
        if any(access[0] <= start < access[-1] for access in accesses):
            bits = 8 * (end - start)
            type = ScalarType(f"b{bits}", Kind.BITS, bits)
            pieces[start] = Register(f"frame+{start}", type)
    return pieces
