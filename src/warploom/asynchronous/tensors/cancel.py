"""Executes `clusterlaunchcontrol.try_cancel`: cancels a cluster that has not begun, so that the
executing block can do its work, and writes the response to shared memory (PTX ISA,
"clusterlaunchcontrol").

The response is the x, y and z index of the cluster's first block and whether one was cancelled, in
the words `coordinates` of an entry; `isa.ops.launch_control` decodes it.
"""

from __future__ import annotations

from warploom.asynchronous.records import RequestEntry, WarpIssue
from warploom.asynchronous.tensors.addresses import (
    TENSOR_ALIGNMENT,
    check_shared,
    fail,
    host_address,
    prepare_mbarrier,
    shared_base,
)
from warploom.asynchronous.tensors.entries import ORIGIN, RESPONSE
from warploom.simt.block_order import cancel_cluster
from warploom.simt.lane_counts import jitable
from warploom.simt.schedule_layout import Plan
from warploom.texture.texels import Memory, write_bytes

WORDS, WORD_BYTES = 4, 4
RESPONSE_BYTES = WORDS * WORD_BYTES


@jitable
def prepare_response(memory: Memory, issue: WarpIssue, lane: int) -> int:
    """Fills the entry in `issue` for the response of a `try_cancel` from a lane's operands: kind,
    size (16 bytes), target in shared memory and mbarrier; not `coordinates`, which `fill_response`
    sets. Checks that the target is aligned and in bounds, and the mbarrier. Returns the kind of
    fault, its details recorded in `issue`, or 0."""
    entry = issue.entry
    address = int(issue.operands.shared[lane])
    if address % RESPONSE_BYTES:
        return fail(issue, TENSOR_ALIGNMENT, address, RESPONSE_BYTES, 1)
    kind = check_shared(issue, address, RESPONSE_BYTES)
    if kind != 0:
        return kind
    entry.kind, entry.size = RESPONSE, RESPONSE_BYTES
    entry.target, entry.shared = host_address(issue, address), shared_base(issue, address)
    return prepare_mbarrier(memory, issue, lane, RESPONSE_BYTES)


@jitable
def fill_response(issue: WarpIssue, plan: Plan) -> None:
    """Cancels the last cluster of the launch that has not begun, and stores the response in
    `coordinates` of the entry: x, y and z index of its first block, and 1. If there is none, stores
    zeros. In either case the current block then yields its turn (`cancel_cluster`)."""
    entry = issue.entry
    block = cancel_cluster(plan)
    grid_x, grid_y = plan.grid_x, plan.grid_y
    entry.coordinates[WORDS - 1] = block >= 0
    block = max(block, 0)
    entry.coordinates[0] = block % grid_x
    entry.coordinates[1] = block // grid_x % grid_y
    entry.coordinates[2] = block // (grid_x * grid_y)


@jitable
def write_response(memory: Memory, entry: RequestEntry) -> None:
    """Writes the four response words of an entry, 4 bytes each, to shared memory at its target."""
    for word in range(WORDS):
        offset = entry.target - ORIGIN + WORD_BYTES * word
        write_bytes(memory, offset, WORD_BYTES, int(entry.coordinates[word]))
