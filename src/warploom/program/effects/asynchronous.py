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
from warploom.asynchronous.tensors.requests import BARRIER_ROW
from warploom.isa.ops.launch_control import is_cancellation
from warploom.isa.ops.memory import COMPLETES
from warploom.isa.ops.tcgen05 import is_tensor_memory_operation, waits_for_loads, waits_for_stores
from warploom.isa.ops.tensors import is_tensor_operation, is_tensor_prefetch
from warploom.isa.ops.wgmma import is_group_product, is_wait
from warploom.isa.spec import Unit
from warploom.program.effects.tensor_waits import group_request, late_copy, wait_request
from warploom.program.requests.tensors import tensor_accesses, tensor_request
from warploom.ptx.ir import Immediate, Instruction, Operand

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
    group or an mbarrier, WAIT waits for groups, INIT initialises an mbarrier, and LOOK tests
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
    """Returns the role of an instruction in asynchronous work (issue, commit, wait, initialisation
    or test of an mbarrier), with the kind of work; None if it has none, as an arrival at an
    mbarrier."""
    operation = instruction.operation
    wait = wait_request(instruction)
    if wait is not None:
        return AsynchronousPart(AsynchronousRole.LOOK, BULK, wait.barrier)
    if operation.name == "mbarrier":
        begins = operation.modifiers["op"] == "init"
        return (
            AsynchronousPart(AsynchronousRole.INIT, BULK, instruction.operands[0])
            if begins
            else None
        )
    if operation.name == "wgmma":
        return _of_products(instruction)
    if is_tensor_memory_operation(operation):
        return _of_tensor_memory(instruction)
    return _of_copies(instruction)


def _of_copies(instruction: Instruction) -> AsynchronousPart | None:
    """Returns the role of an asynchronous copy, or of an instruction that commits or awaits copies;
    None for others, and for prefetches. Copies that signal an mbarrier have it as their barrier."""
    operation = instruction.operation
    if is_tensor_operation(operation):
        if is_tensor_prefetch(operation) or is_cancellation(operation):
            return None
        if not tensor_accesses(operation):
            return None
        rows = tensor_request(instruction).inputs
        barrier = next((operand for row, operand, _ in rows if row == BARRIER_ROW), None)
        return AsynchronousPart(AsynchronousRole.BEGIN, BULK, barrier)
    late = late_copy(instruction)
    if late is not None:
        if operation.name in ("st", "red"):
            return AsynchronousPart(AsynchronousRole.BEGIN, SEND, instruction.operands[2])
        if late.groups == ASYNC_GROUP:
            return AsynchronousPart(AsynchronousRole.BEGIN, COPY)
        barrier = instruction.operands[3] if COMPLETES in operation.modifiers else None
        assert (barrier is not None) == (late.groups == NO_GROUP)
        return AsynchronousPart(AsynchronousRole.BEGIN, BULK, barrier)
    if operation.name == "cp" and operation.spec.unit is Unit.ATOMIC:
        return AsynchronousPart(AsynchronousRole.GROUP, COPY, instruction.operands[0])
    groups = group_request(instruction)
    if groups is None:
        return None
    kind = COPY if groups.groups == ASYNC_GROUP else BULK
    role = AsynchronousRole.GROUP if groups.action == END_GROUP else AsynchronousRole.WAIT
    return AsynchronousPart(role, kind, None, groups.left)


def _of_products(instruction: Instruction) -> AsynchronousPart | None:
    """Returns the role of a `wgmma` instruction: a product issues work, a commit closes the group,
    a wait leaves the newest groups pending; None for others, such as the fence."""
    if is_group_product(instruction.operation):
        return AsynchronousPart(AsynchronousRole.BEGIN, PRODUCT)
    if is_wait(instruction.operation):
        count = instruction.operands[-1]
        left = count.value if isinstance(count, Immediate) else 0
        return AsynchronousPart(AsynchronousRole.WAIT, PRODUCT, None, left)
    groups = "commit_group" in instruction.operation.modifiers
    return AsynchronousPart(AsynchronousRole.GROUP, PRODUCT) if groups else None


def _of_tensor_memory(instruction: Instruction) -> AsynchronousPart | None:
    """Returns the role of a `tcgen05` instruction: products, copies and shifts, loads, and stores
    issue work of their kinds, waits end loads or stores, a commit signals an mbarrier; None for
    others, such as allocations."""
    operation = instruction.operation
    if waits_for_loads(operation):
        return AsynchronousPart(AsynchronousRole.WAIT, TENSOR_LOAD)
    if waits_for_stores(operation):
        return AsynchronousPart(AsynchronousRole.WAIT, TENSOR_STORE)
    if "commit" in operation.modifiers:
        return AsynchronousPart(AsynchronousRole.GROUP, TENSOR, instruction.operands[0])
    for name, kind in (("ld", TENSOR_LOAD), ("st", TENSOR_STORE)):
        if name in operation.modifiers:
            return AsynchronousPart(AsynchronousRole.BEGIN, kind)
    begins = any(name in operation.modifiers for name in ("mma", "cp", "shift"))
    return AsynchronousPart(AsynchronousRole.BEGIN, TENSOR) if begins else None
