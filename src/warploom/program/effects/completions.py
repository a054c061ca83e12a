"""Accesses that tell an mbarrier of their bytes: `st.async` and `red.async`.

Source: PTX ISA, "Data Movement and Conversion: st.async" and "Parallel Synchronization and
Communication: red.async". Bulk copies, whose sizes a lane chooses, see to it themselves.
"""

from __future__ import annotations

from dataclasses import replace

from warploom.isa.ops.mbarrier import COMPLETE_TX
from warploom.isa.ops.memory import COMPLETES
from warploom.program.accesses import bytes_of
from warploom.ptx.ir import Immediate, Instruction


def completion(instruction: Instruction) -> Instruction | None:
    """Returns what comes behind an access, as if it were written there; None where nothing does."""
    operation = instruction.operation
    if COMPLETES not in operation.modifiers or operation.name not in ("st", "red"):
        return None
    size = Immediate(bytes_of(instruction), span=instruction.span)
    return replace(instruction, operation=COMPLETE_TX, operands=(instruction.operands[2], size))
