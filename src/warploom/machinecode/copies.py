"""Counts the copies of a PTX instruction among the machine instructions that have its line.

The lines of ptxas are exact for what computes a result. What only prepares that is less exact:
constants are loaded again where a loop begins, registers are copied where paths meet, and the
tests and flags of a loop that ptxas unrolled have the line of any instruction that stands before
them. Those count where a PTX instruction has nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warploom.machinecode.listing import MachineInstruction
from warploom.machinecode.opcodes import execution_of

_COPIES = ("MOV", "UMOV", "IMAD.MOV", "IMAD.MOV.U32", "IMAD.U32", "R2UR")
_CONSTANTS = ("LDC", "ULDC", "S2R", "S2UR", "CS2R")
_TESTS = ("ISETP", "FSETP", "DSETP", "HSETP2", "PLOP3", "UISETP", "UPLOP3")

_CONTROL = 2
"""The rank of control, which never computes a result."""

ByNode = Mapping[int, Sequence[MachineInstruction]]
"""Machine instructions of one PTX instruction, by the node that they stand in."""


def computing(made: ByNode, operation: str, functions: Mapping[str, int]) -> ByNode:
    """Returns the machine instructions that compute the result of a PTX instruction with this
    operation: those of the best kind that it has in any node. A node may be left without one.
    `functions` are the offsets of functions that compute a result (as `rem.u64`), by name."""
    starts = frozenset(functions.values())
    ranks = {one.offset: _rank(one, operation, starts) for code in made.values() for one in code}
    best = min((rank for rank in ranks.values() if rank < _CONTROL), default=0)
    return {
        number: [one for one in code if ranks[one.offset] == best] for number, code in made.items()
    }


def _rank(made: MachineInstruction, operation: str, functions: frozenset[int]) -> int:
    """Returns 0 for an instruction that computes what the operation does, 1 for one that may,
    _CONTROL for control."""
    if made.name == "CALL" and not functions.isdisjoint(made.targets):
        return 0
    if execution_of(made.name).pipe == "cbu":
        return _CONTROL
    if made.name in _CONSTANTS or made.opcode in _COPIES or _is_constant(made):
        return 1
    return int((made.name in _TESTS) != (operation == "setp"))


def _is_constant(made: MachineInstruction) -> bool:
    """Returns whether an instruction sets a register or a predicate to a constant (`PLOP3.LUT P0,
    PT, PT, PT, PT, 0x80, 0x0`, `HFMA2.MMA R3, -RZ, RZ, 0, 0`)."""
    named = {register for operand in made.operands[1:] for register in operand.registers}
    return made.name in ("PLOP3", "UPLOP3", "HFMA2") and not named
