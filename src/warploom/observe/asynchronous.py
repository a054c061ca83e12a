"""Defines counters of work that runs beside a warp's instructions: copies by the Tensor Memory
Accelerator, products of warp groups and of tensor memory, cluster barriers.

All of them count instructions and accesses by the kind of instruction, so both machines count
alike. A warp group's product is counted for each of its four warps.
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.isa.instruction import Space
from warploom.isa.kinds import OpKind
from warploom.isa.spec import Operation

TENSOR_COPIES = frozenset(
    {OpKind.BULK_COPY, OpKind.TMA_BULK_COPY, OpKind.BULK_REDUCTION}
    | {OpKind.TENSOR_COPY, OpKind.TENSOR_PREFETCH}
)
"""The kinds that the Tensor Memory Accelerator executes as copies: boxes of tensors, and contiguous
bytes (`cp.async.bulk`)."""

Test = Callable[[Operation], bool]


def _is(*kinds: OpKind) -> Test:
    """Returns a test for operations of some kinds."""
    return lambda operation: operation.kind in kinds


def _waits_for_cluster(operation: Operation) -> bool:
    return operation.kind is OpKind.CLUSTER_BARRIER and "wait" in operation.modifiers


BY_WARP: dict[str, Test] = {
    "warp_group_products": _is(OpKind.GROUP_PRODUCT),
    "tensor_memory_loads": _is(OpKind.TENSOR_LOAD),
    "tensor_memory_stores": _is(OpKind.TENSOR_STORE),
    "cluster_barriers": _waits_for_cluster,
}
"""Counters of warp instructions, and the test for each."""

BY_THREAD: dict[str, Test] = {
    "tensor_copies": _is(*TENSOR_COPIES),
    "tensor_memory_products": _is(OpKind.TENSOR_PRODUCT),
    "tensor_memory_copies": _is(OpKind.TENSOR_MEMORY_COPY),
    "launch_cancellations": _is(OpKind.LAUNCH_CANCEL),
}
"""Counters of operations that single threads issue, and the test for each."""

LOADED, STORED = "tensor_copy_bytes_loaded", "tensor_copy_bytes_stored"
"""Counters of the bytes that such copies move into shared memory, and out of it."""

_BOX_ENDS = {(Space.SHARED, "store"): LOADED, (Space.SHARED, "load"): STORED}
_BYTE_ENDS = {(Space.GLOBAL, "load"): LOADED, (Space.GLOBAL, "store"): STORED}


def copied_bytes(operation: Operation, space: Space, op: str) -> str | None:
    """Returns the counter for the bytes of a copy's access, None if the other end of the copy is
    the one that is counted. A box is counted in shared memory, because elements out of bounds are
    filled in; contiguous bytes are counted in global memory, because the shared end updates an
    mbarrier as well."""
    if operation.kind not in TENSOR_COPIES:
        return None
    return (_BYTE_ENDS if operation.kind is OpKind.BULK_COPY else _BOX_ENDS).get((space, op))
