"""Memory on a thread's stack: `alloca`, `stacksave`, `stackrestore` (PTX ISA, "Stack Manipulation
Instructions").
"""

from __future__ import annotations

from dataclasses import replace

from warploom.isa.spec import decode
from warploom.program.flat import Flat
from warploom.program.program import Site
from warploom.program.stack import ALIGNMENT, SCRATCH, TOP, HiddenCode
from warploom.ptx.ir import Address, Function, Immediate, Instruction

NAMES = frozenset({"alloca", "stacksave", "stackrestore"})

DEFAULT_ALIGNMENT = 8
"""Of `alloca` where it asks for none (PTX ISA, alloca)."""


def stack_instruction(flat: Flat, like: Instruction, site: Site) -> None:
    """`alloca`, `stacksave` or `stackrestore`: the stack ends elsewhere, or says where it ends."""
    code, first = HiddenCode(flat, like, site), like.operands[0]
    move = decode("mov.b64")
    if like.operation.name == "stackrestore":
        flat.add(replace(like, operation=move, operands=(TOP, first)), site)
        return
    if like.operation.name == "stacksave":
        flat.add(replace(like, operation=move, operands=(first, TOP)), site)
        return
    size, *alignment = like.operands[1:]
    for boundary in alignment or (Immediate(DEFAULT_ALIGNMENT),):
        assert isinstance(boundary, Immediate)
        _align_top(code, boundary.value)
    flat.add(replace(like, operation=move, operands=(first, TOP)), site)
    code.emit("add.u64", TOP, TOP, size)
    _align_top(code, ALIGNMENT)
    code.emit_stack_access("ld.local.b8", SCRATCH[8], Address(TOP, -1))


def _align_top(code: HiddenCode, alignment: int) -> None:
    code.emit("add.u64", TOP, TOP, Immediate(alignment - 1))
    code.emit("and.b64", TOP, TOP, Immediate(-alignment))


def uses_stack(function: Function) -> bool:
    """Returns whether a function takes memory that its end gives back."""
    return any(i.operation.name == "alloca" for i in function.instructions)
