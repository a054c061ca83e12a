"""Classifies the instructions by which threads synchronise, other than accesses to memory, as
events of the race detector."""

from __future__ import annotations

from warploom.detector import layout as words
from warploom.isa.ops.cluster import is_cluster_barrier
from warploom.isa.ops.tcgen05 import is_tensor_memory_operation
from warploom.isa.spec import Unit
from warploom.ptx.ir import Instruction

TENSOR_EVENTS = {
    "wait::ld": words.TENSOR_LOADS_WAIT,
    "wait::st": words.TENSOR_STORES_WAIT,
    "fence::before_thread_sync": words.TENSOR_FENCE_BEFORE,
    "fence::after_thread_sync": words.TENSOR_FENCE_AFTER,
}
"""Events of tensor memory that are no accesses, by modifier."""


LAUNCH_EVENTS = {"launch_dependents": words.LAUNCH_TRIGGER, "wait": words.LAUNCH_WAIT}
"""Events of `griddepcontrol`, by modifier."""


def triggers_launch(instruction: Instruction) -> bool:
    """Returns whether an instruction allows the next launch of the stream to begin."""
    return event_of(instruction) == words.LAUNCH_TRIGGER


def is_warp_barrier(instruction: Instruction) -> bool:
    """Returns whether an instruction is a `bar.warp.sync`."""
    return instruction.operation.name == "bar" and "warp" in instruction.operation.modifiers


def event_of(instruction: Instruction) -> int | None:
    """Returns the race detector's event (`words`) for an instruction that synchronises: barriers,
    fences, commits and waits of `cp.async`, waits and fences of tensor memory, `griddepcontrol`.
    None for instructions that only access memory or compute, for a fence of `mbarrier`
    initialisation, and for a proxy fence that orders no asynchronous copies."""
    modifiers, name = instruction.operation.modifiers, instruction.operation.name
    if is_warp_barrier(instruction):
        return words.WARP_SYNC
    if is_cluster_barrier(instruction.operation):
        return words.CLUSTER_ARRIVE if "arrive" in modifiers else words.CLUSTER_WAIT
    if instruction.operation.spec.unit is Unit.BARRIER:
        return words.BARRIER_ARRIVE if "arrive" in modifiers else words.BARRIER_SYNC
    if name in ("fence", "membar"):
        if any(each.startswith("proxy") for each in modifiers.values):
            return words.PROXY_FENCE if _fences_copies(instruction) else None
        return None if "mbarrier_init" in modifiers else words.FENCE
    if is_tensor_memory_operation(instruction.operation):
        return TENSOR_EVENTS.get(modifiers["op"] or modifiers["when"] or "")
    if name == "griddepcontrol":
        return LAUNCH_EVENTS[modifiers["action"] or ""]
    if name == "cp" and "commit_group" in modifiers:
        return words.ASYNC_COMMIT
    if name == "cp" and ("wait_group" in modifiers or "wait_all" in modifiers):
        return words.ASYNC_WAIT
    return None


def _fences_copies(instruction: Instruction) -> bool:
    """Returns whether a proxy fence orders the async proxy, in which asynchronous copies access
    memory."""
    modifiers = instruction.operation.modifiers
    return modifiers["kind"] == "async" or any("async" in each for each in modifiers.values)
