"""Derives the transaction that `st.async` and `red.async` signal to their mbarrier: the bytes that
they write.

Source: PTX ISA, "Data Movement and Conversion: st.async" and "Parallel Synchronization and
Communication: red.async". Bulk copies, whose sizes are operands, signal their own.
"""

from __future__ import annotations

from dataclasses import replace

from warploom.isa.instruction import Immediate, Instruction
from warploom.isa.kinds import OpKind
from warploom.isa.ops.mbarrier import COMPLETE_TX
from warploom.program.accesses import bytes_of


def completion(instruction: Instruction) -> Instruction | None:
    """Returns the `mbarrier.complete_tx` that a `st.async` or `red.async` implies, to be executed
    after it: it signals the bytes written to the mbarrier that the instruction names. None for
    other instructions."""
    if instruction.operation.kind not in (OpKind.ASYNC_STORE, OpKind.ASYNC_REDUCTION):
        return None
    size = Immediate(bytes_of(instruction), span=instruction.span)
    return replace(instruction, operation=COMPLETE_TX, operands=(instruction.operands[2], size))
