"""Emits PTX instructions for the stack that every thread has for calls that are not inlined
(`program.calls`).

It lies in local memory and grows upwards. A frame holds, in this order: arguments, results, the
function's own variables, saved registers, and the link (LINK_BYTES).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from warploom.core.types import TYPES
from warploom.isa.instruction import Address, Immediate, Instruction, Operand, Register
from warploom.isa.spec import decode
from warploom.program.flat import Flat
from warploom.program.program import Site
from warploom.ptx.module import Function, Prototype, Variable

STACK = "@stack"
TOP = Register("@top", TYPES["b64"])
FRAME = Register("@frame", TYPES["b64"])
RETURN = Register("@return", TYPES["b32"])
DEPTH = Register("@depth", TYPES["b32"])
WIDE = Register("@wide", TYPES["b64"])
INDEX = Register("@index", TYPES["b32"])
SCRATCH = {bits: Register(f"@copy{bits}", TYPES[f"b{bits}"]) for bits in (8, 16, 32, 64)}
"""Registers that PTX sources cannot name: the top of the stack, the start of the current frame, the
number of the call to return from, the depth of calls; and temporaries for copies."""

REGISTERS = (TOP, FRAME, RETURN, DEPTH, WIDE, INDEX, *SCRATCH.values())

LINK_BYTES = 16
"""Bytes at the end of a frame: the caller's frame pointer, and the number of the call."""

ALIGNMENT = 16


def instruction_like(opcode: str, *operands: Operand, like: Instruction) -> Instruction:
    """Returns an unguarded instruction with the source location of another."""
    return replace(like, operation=decode(opcode), operands=operands, guard=None)


class HiddenCode:
    """Appends hidden instructions (`Program.hidden`) to a list, all attributed to instruction
    `like` and its origin `site`."""

    def __init__(self, flat: Flat, like: Instruction, site: Site) -> None:
        """Stores the list, and the instruction and site that appended instructions are attributed
        to; appends nothing."""
        self.flat, self.like, self.site = flat, like, site

    def emit(self, opcode: str, *operands: Operand) -> None:
        """Appends a hidden instruction without a guard."""
        self.flat.add(instruction_like(opcode, *operands, like=self.like), self.site, hidden=True)

    def emit_stack_access(self, opcode: str, *operands: Operand) -> None:
        """Appends an instruction that accesses the stack, hidden and private (neither it nor its
        access is counted)."""
        instruction = instruction_like(opcode, *operands, like=self.like)
        self.flat.add(instruction, self.site, hidden=True, private=True)

    def load(self, register: Register, base: Register, offset: int) -> None:
        """Appends the load of a register from the stack, at `offset` bytes from register `base`. A
        predicate is loaded as 32 bits into a scratch register and set by a comparison with 0."""
        if register.type.bits == 1:
            self.load(SCRATCH[32], base, offset)
            self.emit("setp.ne.u32", register, SCRATCH[32], Immediate(0))
        else:
            self.emit_stack_access(
                f"ld.local.b{register.type.bits}", register, Address(base, offset)
            )

    def store(self, base: Register, offset: int, value: Operand, bits: int) -> None:
        """Appends the store of a value of `bits` bits on the stack, at `offset` bytes from register
        `base`; a predicate (`bits` of 1) is stored as 32 bits, 0 or 1, through a scratch
        register."""
        if bits == 1:
            self.emit("selp.b32", SCRATCH[32], Immediate(1), Immediate(0), value)
            value, bits = SCRATCH[32], 32
        self.emit_stack_access(f"st.local.b{bits}", Address(base, offset), value)


def slots(shape: Function | Prototype) -> tuple[list[int], list[int], int]:
    """Returns the offsets in a frame of parameters, the offsets of results after them, and the end
    of both, in bytes. They follow from the sizes alone (at least 4; aligned to 4, 8 or ALIGNMENT),
    so that caller and callee agree on them."""
    offsets: list[int] = []
    end = 0
    for formal in (*shape.parameters, *shape.returns):
        # By size: the alignment in a prototype may differ from that of the function.
        start = aligned(end, 4 if formal.size <= 4 else 8 if formal.size <= 8 else ALIGNMENT)
        offsets.append(start)
        end = start + max(4, formal.size)
    count = len(shape.parameters)
    return offsets[:count], offsets[count:], end


def own_register(formal: Variable, function: Function) -> Register:
    """Returns the register that holds a register parameter inside of its function."""
    return Register(f"{formal.name}@{function.name}", formal.type)


def chunks(variable: Variable) -> Iterator[tuple[int, int]]:
    """Yields the pieces in which a variable is copied, as (offset, size) in bytes: sizes are powers
    of two up to 8, and offsets multiples of them, as its alignment allows."""
    offset = 0
    while offset < variable.size:
        size = min(8, variable.alignment)
        while offset % size or offset + size > variable.size:
            size //= 2  # ends at 1, which fits anywhere
        yield offset, size
        offset += size


def aligned(offset: int, alignment: int) -> int:
    """Returns an offset rounded up to a multiple of an alignment."""
    return -(-offset // alignment) * alignment
