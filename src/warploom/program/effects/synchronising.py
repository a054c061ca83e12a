"""Classifies the instructions by which threads synchronize, other than accesses to memory, as
events of the race detector."""

from __future__ import annotations

from warploom.detector import layout as words
from warploom.isa.instruction import Instruction
from warploom.isa.kinds import OpKind

EVENTS = {
    OpKind.WARP_BARRIER: words.WARP_SYNC,
    OpKind.TENSOR_WAIT_LOADS: words.TENSOR_LOADS_WAIT,
    OpKind.TENSOR_WAIT_STORES: words.TENSOR_STORES_WAIT,
    OpKind.COPY_COMMIT: words.ASYNC_COMMIT,
    OpKind.COPY_WAIT: words.ASYNC_WAIT,
}
"""Events of kinds of operations that have one each."""

TENSOR_FENCES = {
    "fence::before_thread_sync": words.TENSOR_FENCE_BEFORE,
    "fence::after_thread_sync": words.TENSOR_FENCE_AFTER,
}
"""Events of fences of tensor memory, by modifier."""

LAUNCH_EVENTS = {"launch_dependents": words.LAUNCH_TRIGGER, "wait": words.LAUNCH_WAIT}
"""Events of `griddepcontrol`, by modifier."""


def triggers_launch(instruction: Instruction) -> bool:
    """Returns whether an instruction allows the next launch of the stream to begin."""
    return event_of(instruction) == words.LAUNCH_TRIGGER


def event_of(instruction: Instruction) -> int | None:
    """Returns the race detector's event (`words`) for an instruction that synchronizes: barriers,
    fences, commits of groups of copies and waits for them, waits and fences of tensor memory,
    `griddepcontrol`. None for instructions that only access memory or compute (also on an
    mbarrier), for a fence of `mbarrier` initialization, and for a proxy fence that orders no
    asynchronous copies."""
    modifiers = instruction.operation.modifiers
    match instruction.operation.kind:
        case OpKind.CLUSTER_BARRIER:
            return words.CLUSTER_ARRIVE if "arrive" in modifiers else words.CLUSTER_WAIT
        case OpKind.BLOCK_BARRIER | OpKind.WARP_GROUP_BARRIER:
            return words.BARRIER_ARRIVE if "arrive" in modifiers else words.BARRIER_SYNC
        case OpKind.FENCE:
            if any(modifier.startswith("proxy") for modifier in modifiers.values):
                return words.PROXY_FENCE if _fences_copies(instruction) else None
            return None if "mbarrier_init" in modifiers else words.FENCE
        case OpKind.TENSOR_FENCE:
            return TENSOR_FENCES[modifiers.text("when", "")]
        case OpKind.DEPENDENT_LAUNCH:
            return LAUNCH_EVENTS[modifiers.text("action", "")]
        case kind:
            return EVENTS.get(kind)


def _fences_copies(instruction: Instruction) -> bool:
    """Returns whether a proxy fence orders the async proxy, in which asynchronous copies access
    memory."""
    modifiers = instruction.operation.modifiers
    return modifiers["kind"] == "async" or any("async" in modifier for modifier in modifiers.values)
