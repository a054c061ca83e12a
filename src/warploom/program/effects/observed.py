"""Selects the accesses and branches of a program that are events for observers
(`simt.event_layout`)."""

from __future__ import annotations

from warploom.isa.instruction import Instruction, Space
from warploom.isa.kinds import Effect
from warploom.program.program import Program
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
"""The kinds of access events by what an instruction does to memory."""


def is_observed_access(program: Program, instruction: int, space: Space) -> bool:
    """Returns whether observers get an event for the access of instruction number `instruction` to
    a space: global, shared, local and constant memory. Instructions and accesses that implement
    calls, which are not in the source, are left out."""
    bookkeeping = instruction in program.hidden or instruction in program.private
    return space in SPACES and not bookkeeping


def is_observed_branch(program: Program, index: int, instruction: Instruction) -> bool:
    """Returns whether observers get an event for an instruction as a branch: `bra` and `brx`, but
    not those that implement calls."""
    return instruction.operation.has(Effect.BRANCHES) and index not in program.hidden
