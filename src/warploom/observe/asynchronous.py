"""Defines counters of work that runs beside a warp's instructions: copies by the Tensor Memory
Accelerator, products of warp groups and of tensor memory, cluster barriers.

All of them count instructions and accesses by the kind of instruction, so both machines count
alike. A warp group's product is counted for each of its four warps.
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.isa.ops.cluster import is_cluster_barrier
from warploom.isa.ops.launch_control import is_cancellation
from warploom.isa.ops.tcgen05 import is_tensor_memory_operation
from warploom.isa.ops.tensors import is_tensor_operation
from warploom.isa.ops.wgmma import is_group_product
from warploom.isa.spec import Operation
from warploom.program.accesses import is_bulk_copy
from warploom.ptx.ir import Space

Test = Callable[[Operation], bool]


def is_tensor_copy(operation: Operation) -> bool:
    """Returns true if the Tensor Memory Accelerator executes the copy: boxes of tensors, and
    contiguous bytes (`cp.async.bulk`)."""
    if operation.name != "cp":
        return False
    return is_bulk_copy(operation) or is_tensor_operation(operation)


def _is_tensor_memory(part: str) -> Test:
    """Returns a test for `tcgen05` instructions with a modifier, such as `ld` or `mma`."""

    def test(operation: Operation) -> bool:
        return is_tensor_memory_operation(operation) and part in operation.modifiers

    return test


def _waits_for_cluster(operation: Operation) -> bool:
    return is_cluster_barrier(operation) and "wait" in operation.modifiers


BY_WARP: dict[str, Test] = {
    "warp_group_products": is_group_product,
    "tensor_memory_loads": _is_tensor_memory("ld"),
    "tensor_memory_stores": _is_tensor_memory("st"),
    "cluster_barriers": _waits_for_cluster,
}
"""Counters of warp instructions, and the test for each: `wgmma.mma_async`, `tcgen05.ld` and `.st`,
`barrier.cluster.wait`."""

BY_THREAD: dict[str, Test] = {
    "tensor_copies": is_tensor_copy,
    "tensor_memory_products": _is_tensor_memory("mma"),
    "tensor_memory_copies": _is_tensor_memory("cp"),
    "launch_cancellations": is_cancellation,
}
"""Counters of operations that single threads issue: `cp.async.bulk` and its variants,
`tcgen05.mma`, `tcgen05.cp` and `clusterlaunchcontrol.try_cancel`."""

LOADED, STORED = "tensor_copy_bytes_loaded", "tensor_copy_bytes_stored"
"""Counters of the bytes that such copies move into shared memory, and out of it."""

_BOX_ENDS = {(Space.SHARED, "store"): LOADED, (Space.SHARED, "load"): STORED}
_BYTE_ENDS = {(Space.GLOBAL, "load"): LOADED, (Space.GLOBAL, "store"): STORED}


def copied_bytes(operation: Operation, space: Space, op: str) -> str | None:
    """Returns the counter for the bytes of a copy's access, None if the other end of the copy is
    the one that is counted. A box is counted in shared memory, because elements out of bounds are
    filled in; contiguous bytes are counted in global memory, because the shared end updates an
    mbarrier as well."""
    if not is_tensor_copy(operation):
        return None
    return (_BYTE_ENDS if is_bulk_copy(operation) else _BOX_ENDS).get((space, op))
