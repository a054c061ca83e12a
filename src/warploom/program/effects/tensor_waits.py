"""Reads the operands of instructions that issue asynchronous copies, commit them to groups, or wait
for them."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.asynchronous.issue.waits import END_GROUP, WAIT_GROUPS
from warploom.asynchronous.late_copies.entries import (
    ASYNC_GROUP,
    BULK_GROUP,
    LOAD,
    NO_GROUP,
    OPERATION_AT,
    SEND,
    STORE,
    TYPE_AT,
    UPDATE,
)
from warploom.asynchronous.tensors.maps import S32 as S32_NUMBERS
from warploom.asynchronous.tensors.maps import U32 as U32_NUMBERS
from warploom.asynchronous.tensors.maps import U64 as U64_NUMBERS
from warploom.asynchronous.tensors.numbers import OPERATIONS
from warploom.core.types import U32, U64, ScalarType
from warploom.isa.instruction import Immediate, Instruction, Operand, Space
from warploom.isa.kinds import OpKind
from warploom.isa.ops.memory import COMPLETES
from warploom.isa.spec import Operation
from warploom.program.accesses import accesses

INTEGERS = {"u32": U32_NUMBERS, "b32": U32_NUMBERS, "s32": S32_NUMBERS, "u64": U64_NUMBERS}
"""Maps the types of `red.async` to their numbers in `asynchronous.tensors.numbers`."""


@dataclass(frozen=True)
class WaitRequest:
    """A test of an mbarrier's phase: its address, and the token or the parity of the phase."""

    barrier: Operand
    value: Operand
    type: ScalarType
    by_parity: bool


@dataclass(frozen=True)
class LateCopy:
    """An asynchronous copy that each lane makes by its own operands, and that may complete only
    when it is waited for. `action` is the operation of `asynchronous.late_copies` (LOAD, STORE,
    SEND, or a packed UPDATE), `groups` the kind of group that it belongs to (NO_GROUP if it signals
    an mbarrier)."""

    action: int
    groups: int


@dataclass(frozen=True)
class GroupRequest:
    """The end of a group of copies, or a wait for all groups but the newest `left` (-1: also for
    copies in no group). `action` is END_GROUP or WAIT_GROUPS, `groups` BULK_GROUP or ASYNC_GROUP:
    the arguments of `asynchronous.issue.waits.group_copies`."""

    action: int
    left: int
    groups: int


def wait_request(instruction: Instruction) -> WaitRequest | None:
    """Returns the phase of an mbarrier that a `test_wait` or `try_wait` instruction tests; None for
    others. The phase is given by its parity (32 bits) or by the token of an arrival (64 bits)."""
    operation = instruction.operation
    if operation.kind is not OpKind.MBARRIER_WAIT:
        return None
    by_parity = "parity" in operation.modifiers
    _, barrier, value, *_ = instruction.operands
    return WaitRequest(barrier, value, U32 if by_parity else U64, by_parity)


def group_request(instruction: Instruction) -> GroupRequest | None:
    """Returns the action of an instruction on groups of `cp.async` or of bulk copies: commits end a
    group; waits complete all groups but the newest `left`, their operand (0 if that is a register);
    `wait_all`, and the arrival of `cp.async` at an mbarrier, which follows earlier copies, complete
    all copies (-1). None for others."""
    m = instruction.operation.modifiers
    groups = BULK_GROUP if "bulk" in m else ASYNC_GROUP
    match instruction.operation.kind:
        case OpKind.COPY_COMMIT:
            return GroupRequest(END_GROUP, 0, groups)
        case OpKind.COPY_ARRIVE:
            return GroupRequest(WAIT_GROUPS, -1, groups)
        case OpKind.COPY_WAIT:
            if "wait_all" in m:
                return GroupRequest(WAIT_GROUPS, -1, groups)
            left = instruction.operands[0]
            # A count in a register is not known here: waiting for all groups is always correct.
            number = left.value if isinstance(left, Immediate) else 0
            return GroupRequest(WAIT_GROUPS, number, groups)
        case _:
            return None


def late_copy(instruction: Instruction) -> LateCopy | None:
    """Returns the asynchronous copy that each lane issues by an instruction (`cp.async`, a bulk
    copy between global and shared memory, `st.async`, `red.async`), with the kind of groups that it
    is committed to (none if it signals an mbarrier); None for others, and for copies of tensors."""
    operation = instruction.operation
    match operation.kind:
        case OpKind.COPY:
            return LateCopy(LOAD, ASYNC_GROUP)
        case OpKind.BULK_COPY:
            action = STORE if accesses(instruction)[0][0] is Space.SHARED else LOAD
            return LateCopy(action, NO_GROUP if COMPLETES in operation.modifiers else BULK_GROUP)
        case OpKind.ASYNC_STORE:
            return LateCopy(SEND, NO_GROUP)
        case OpKind.ASYNC_REDUCTION:
            return LateCopy(_reduction_action(operation), NO_GROUP)
        case _:
            return None


def _reduction_action(operation: Operation) -> int:
    """Returns the `action` of a `red.async` in `asynchronous.late_copies`: UPDATE with the numbers
    of its operation and type in the bits from OPERATION_AT and TYPE_AT on."""
    name, type = (operation.modifiers.text(slot, "") for slot in ("op", "type"))
    return UPDATE | OPERATIONS.index(name) << OPERATION_AT | INTEGERS[type] << TYPE_AT
