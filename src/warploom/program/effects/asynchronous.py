"""Classifies instructions of asynchronous operations: those that issue work, commit it to a group
or an mbarrier, and wait for it.

    cp.async.ca.shared.global [%r1], [%rd1], 16;   // BEGIN, kind COPY
    cp.async.commit_group;                         // GROUP, kind COPY
    cp.async.wait_group 1;                         // WAIT, kind COPY, but for the newest group
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from warploom.asynchronous.issue.waits import END_GROUP
from warploom.asynchronous.late_copies.entries import ASYNC_GROUP, NO_GROUP
from warploom.asynchronous.records import CopyOperands
from warploom.isa.instruction import Immediate, Instruction, Operand
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.ops.memory import COMPLETES
from warploom.program.effects.tensor_waits import group_request, late_copy, wait_request
from warploom.program.requests.tensors import tensor_accesses, tensor_request

KINDS = (
    "copy by threads",
    "bulk copy",
    "store with mbarrier",
    "warp group product",
    "tensor memory work",
    "tensor memory load",
    "tensor memory store",
)
"""Names of the kinds of asynchronous work: `cp.async`; `cp.async.bulk` and its kin; `st.async` and
`red.async`; `wgmma.mma_async`; `tcgen05.mma`, `.cp` and `.shift`; `tcgen05.ld`; `tcgen05.st`."""

COPY, BULK, SEND, PRODUCT, TENSOR, TENSOR_LOAD, TENSOR_STORE = range(len(KINDS))

ALL = -1
"""As `left` of a wait: it waits for all groups, and for work in no group."""


class AsynchronousRole(Enum):
    """Names what an instruction does to asynchronous work: BEGIN issues work, GROUP commits it to a
    group or an mbarrier, WAIT waits for groups, INIT initializes an mbarrier, and LOOK tests
    whether a phase of an mbarrier is complete."""

    BEGIN = auto()
    GROUP = auto()
    WAIT = auto()
    INIT = auto()
    LOOK = auto()


@dataclass(frozen=True, slots=True)
class AsynchronousPart:
    """The role of an instruction, the kind of work (an index of KINDS), the mbarrier if there is
    one, and for a wait how many of the newest groups it leaves pending (`left`; ALL: none)."""

    role: AsynchronousRole
    kind: int
    barrier: Operand | None = None
    left: int = ALL


def asynchronous_part(instruction: Instruction) -> AsynchronousPart | None:
    """Returns the role of an instruction in asynchronous work (issue, commit, wait, initialization
    or test of an mbarrier), with the kind of work, the mbarrier, and the number of newest groups
    that a wait leaves pending; None if it has none, as an arrival at an mbarrier."""
    kind = instruction.operation.kind
    wait = wait_request(instruction)
    if wait is not None:
        return AsynchronousPart(AsynchronousRole.LOOK, BULK, wait.barrier)
    if kind in ROLES:
        return AsynchronousPart(*ROLES[kind])
    if kind in AT_BARRIERS:
        return AsynchronousPart(*AT_BARRIERS[kind], instruction.operands[0])
    if kind is OpKind.GROUP_WAIT:
        count = instruction.operands[-1]
        left = count.value if isinstance(count, Immediate) else 0
        return AsynchronousPart(AsynchronousRole.WAIT, PRODUCT, None, left)
    return _of_copies(instruction)


ROLES = {
    OpKind.GROUP_PRODUCT: (AsynchronousRole.BEGIN, PRODUCT),
    OpKind.GROUP_COMMIT: (AsynchronousRole.GROUP, PRODUCT),
    OpKind.TENSOR_PRODUCT: (AsynchronousRole.BEGIN, TENSOR),
    OpKind.TENSOR_MEMORY_COPY: (AsynchronousRole.BEGIN, TENSOR),
    OpKind.TENSOR_SHIFT: (AsynchronousRole.BEGIN, TENSOR),
    OpKind.TENSOR_LOAD: (AsynchronousRole.BEGIN, TENSOR_LOAD),
    OpKind.TENSOR_STORE: (AsynchronousRole.BEGIN, TENSOR_STORE),
    OpKind.TENSOR_WAIT_LOADS: (AsynchronousRole.WAIT, TENSOR_LOAD),
    OpKind.TENSOR_WAIT_STORES: (AsynchronousRole.WAIT, TENSOR_STORE),
}
"""The roles of the matrix instructions of warp groups and of tensor memory."""

AT_BARRIERS = {
    OpKind.MBARRIER_INIT: (AsynchronousRole.INIT, BULK),
    OpKind.COPY_ARRIVE: (AsynchronousRole.GROUP, COPY),
    OpKind.TENSOR_COMMIT: (AsynchronousRole.GROUP, TENSOR),
}
"""The roles of instructions whose first operand is an mbarrier."""


def _of_copies(instruction: Instruction) -> AsynchronousPart | None:
    """Returns role and kind of an asynchronous copy or reduction (`cp.async` COPY; bulk and tensor
    ones BULK; `st.async` and `red.async` SEND), with the mbarrier that it signals, if any; or of an
    instruction that commits or awaits groups of COPY or BULK, with the number of groups that a wait
    leaves pending. None for others, for prefetches and `clusterlaunchcontrol.try_cancel`."""
    operation = instruction.operation
    if operation.has(Effect.USES_TMA):
        if operation.kind in (OpKind.TENSOR_PREFETCH, OpKind.LAUNCH_CANCEL):
            return None
        if not tensor_accesses(operation):
            return None
        rows = tensor_request(instruction).inputs
        barrier = next((operand for row, operand, _ in rows if row == CopyOperands.barrier), None)
        return AsynchronousPart(AsynchronousRole.BEGIN, BULK, barrier)
    late = late_copy(instruction)
    if late is not None:
        if operation.kind in (OpKind.ASYNC_STORE, OpKind.ASYNC_REDUCTION):
            return AsynchronousPart(AsynchronousRole.BEGIN, SEND, instruction.operands[2])
        if late.groups == ASYNC_GROUP:
            return AsynchronousPart(AsynchronousRole.BEGIN, COPY)
        barrier = instruction.operands[3] if COMPLETES in operation.modifiers else None
        assert (barrier is not None) == (late.groups == NO_GROUP)
        return AsynchronousPart(AsynchronousRole.BEGIN, BULK, barrier)
    groups = group_request(instruction)
    if groups is None:
        return None
    kind = COPY if groups.groups == ASYNC_GROUP else BULK
    role = AsynchronousRole.GROUP if groups.action == END_GROUP else AsynchronousRole.WAIT
    return AsynchronousPart(role, kind, None, groups.left)
