"""Lowers `alloca`, `stacksave` and `stackrestore` to other PTX instructions, which move the stack's
top (PTX ISA, "Stack Manipulation Instructions").

    alloca.u64 %rd1, 24;   ->   @top = align(@top, 8); mov %rd1, @top; @top = align(@top + 24, 16)
"""

from __future__ import annotations

from dataclasses import replace

from warploom.isa.instruction import Address, Immediate, Instruction
from warploom.isa.kinds import OpKind
from warploom.isa.spec import decode
from warploom.program.flat import Flat
from warploom.program.program import Site
from warploom.program.stack import ALIGNMENT, SCRATCH, TOP, HiddenCode
from warploom.ptx.module import Function

DEFAULT_ALIGNMENT = 8
"""The alignment of `alloca` without an operand for it (PTX ISA, alloca), in bytes."""


def stack_instruction(flat: Flat, like: Instruction, site: Site) -> None:
    """Appends to `flat` the instructions that replace an `alloca`, `stacksave` or `stackrestore`: a
    visible `mov` from or to the stack's top, and for `alloca` hidden instructions around it. Those
    before it align the top (to DEFAULT_ALIGNMENT, if the instruction has no alignment). Those after
    it add the size, align the top to ALIGNMENT, and load the last byte, to check for a stack
    overflow. `like` is the replaced instruction, `site` its origin."""
    code, operand = HiddenCode(flat, like, site), like.operands[0]
    move = decode("mov.b64")
    if like.operation.kind is OpKind.STACK_RESTORE:
        flat.add(replace(like, operation=move, operands=(TOP, operand)), site)
        return
    if like.operation.kind is OpKind.STACK_SAVE:
        flat.add(replace(like, operation=move, operands=(operand, TOP)), site)
        return
    size, *alignment = like.operands[1:]
    for boundary in alignment or (Immediate(DEFAULT_ALIGNMENT),):
        assert isinstance(boundary, Immediate)
        _align_top(code, boundary.value)
    flat.add(replace(like, operation=move, operands=(operand, TOP)), site)
    code.emit("add.u64", TOP, TOP, size)
    _align_top(code, ALIGNMENT)
    # Reads the last byte, so that a stack overflow is reported here and not where the memory is
    # used.
    code.emit_stack_access("ld.local.b8", SCRATCH[8], Address(TOP, -1))


def _align_top(code: HiddenCode, alignment: int) -> None:
    """Emits the rounding of the stack's top up to a multiple of `alignment`, a power of two."""
    code.emit("add.u64", TOP, TOP, Immediate(alignment - 1))
    code.emit("and.b64", TOP, TOP, Immediate(-alignment))


def uses_stack(function: Function) -> bool:
    """Returns whether a function itself, not a callee of it, allocates stack memory (`alloca`),
    which is freed when the function returns."""
    return any(i.operation.kind is OpKind.STACK_ALLOCATION for i in function.instructions)
