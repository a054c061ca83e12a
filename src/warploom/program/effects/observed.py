"""Says which accesses and branches of a program are events for observers (`simt.event_layout`)."""

from __future__ import annotations

from warploom.program.program import Program
from warploom.ptx.ir import Instruction, Space
from warploom.simt.event_layout import AccessKind, MemorySpace

SPACES = {
    Space.GLOBAL: MemorySpace.GLOBAL,
    Space.SHARED: MemorySpace.SHARED,
    Space.LOCAL: MemorySpace.LOCAL,
    Space.CONST: MemorySpace.CONSTANT,
}
"""The state spaces whose accesses are events."""

KINDS = {
    "load": AccessKind.LOAD,
    "store": AccessKind.STORE,
    "atomic": AccessKind.ATOMIC,
}


def is_observed_access(program: Program, instruction: int, space: Space) -> bool:
    """Return whether observers see what an instruction accesses in a space: calls are made of
    instructions and accesses that the program does not have."""
    bookkeeping = instruction in program.hidden or instruction in program.private
    return space in SPACES and not bookkeeping


def is_observed_branch(program: Program, index: int, instruction: Instruction) -> bool:
    """Return whether observers see an instruction as a branch."""
    return instruction.operation.name in ("bra", "brx") and index not in program.hidden
