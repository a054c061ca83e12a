"""Instructions that wait for asynchronous copies, with the operands that say for which."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.analysis.program import Program
from warploom.core.types import U32, U64, ScalarType
from warploom.isa.ops.mbarrier import WAITS
from warploom.isa.ops.tensors import is_tensor_operation
from warploom.ptx.ir import Immediate, Instruction, Operand
from warploom.rules.tensors.waits import END_GROUP, WAIT_GROUPS


@dataclass(frozen=True)
class WaitRequest:
    """A look at an mbarrier: its address, and the token or the parity of the phase."""

    barrier: Operand
    value: Operand
    type: ScalarType
    by_parity: bool


@dataclass(frozen=True)
class GroupRequest:
    """The end of a group of bulk copies, or a wait for all groups but the newest `left`: what
    `rules.tensors.waits.group_copies` takes."""

    action: int
    left: int


def wait_request(made: Instruction) -> WaitRequest | None:
    """Return what an instruction waits for at an mbarrier; None where it does not."""
    operation = made.operation
    if operation.name != "mbarrier" or operation.modifiers["op"] not in WAITS:
        return None
    by_parity = "parity" in operation.modifiers
    _, barrier, value, *_ = made.operands
    return WaitRequest(barrier, value, U32 if by_parity else U64, by_parity)


def group_request(made: Instruction) -> GroupRequest | None:
    """Return what an instruction does to groups of bulk copies; None where it does nothing."""
    m = made.operation.modifiers
    if made.operation.name != "cp" or "bulk" not in m:
        return None
    if "commit_group" in m:
        return GroupRequest(END_GROUP, 0)
    if "wait_group" not in m:
        return None
    left = made.operands[0]
    # A wait for a number that a register holds waits for all.
    return GroupRequest(WAIT_GROUPS, left.value if isinstance(left, Immediate) else 0)


def has_tensor_operations(program: Program) -> bool:
    """Return whether a program has copies that may complete late."""
    return any(is_tensor_operation(made.operation) for made in program.instructions)
