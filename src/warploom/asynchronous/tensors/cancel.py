"""Executes `clusterlaunchcontrol.try_cancel`: cancels a cluster that has not begun, so that the
executing block can take over its work, and writes the response to shared memory (PTX ISA,
"clusterlaunchcontrol").

The response is the x, y and z index of the cluster's first block and whether one was cancelled, in
the words COORDINATES of an entry; `isa.ops.launch_control` decodes it.
"""

from __future__ import annotations

from warploom.asynchronous.tensors.addresses import (
    BULK_ALIGNMENT,
    LANES,
    check_shared,
    fail,
    host_address,
    prepare_mbarrier,
    shared_base,
)
from warploom.asynchronous.tensors.entries import (
    COORDINATES,
    KIND,
    ORIGIN,
    RESPONSE,
    SHARED,
    SIZE,
    TARGET,
)
from warploom.asynchronous.tensors.requests import SHARED_ROW
from warploom.simt.block_order import cancel_cluster
from warploom.simt.lane_counts import Ints, jitable
from warploom.simt.schedule_layout import GRID_X, GRID_Y
from warploom.texture.texels import Memory, write_bytes

WORDS, WORD_BYTES = 4, 4
RESPONSE_BYTES = WORDS * WORD_BYTES


@jitable
def prepare_response(memory: Memory, data: Ints, scratch: Ints, lane: int) -> int:
    """Fills the entry of a response in `scratch` from a lane's operands, except COORDINATES
    (`fill_response`); checks the alignment and address of its 16 bytes, and the mbarrier. Returns
    the kind of fault, its details recorded in `scratch`, or 0."""
    address = int(data[LANES * SHARED_ROW + lane])
    if address % RESPONSE_BYTES:
        return fail(scratch, BULK_ALIGNMENT, address, RESPONSE_BYTES, 1)
    kind = check_shared(scratch, address, RESPONSE_BYTES)
    if kind != 0:
        return kind
    scratch[KIND], scratch[SIZE] = RESPONSE, RESPONSE_BYTES
    scratch[TARGET], scratch[SHARED] = host_address(scratch, address), shared_base(scratch, address)
    return prepare_mbarrier(memory, data, scratch, lane, RESPONSE_BYTES)


@jitable
def fill_response(scratch: Ints, plan: Ints) -> None:
    """Cancels the last cluster of the launch that has not begun, and stores the response in
    COORDINATES of the entry: x, y and z index of its first block, and 1. If there is none, stores
    zeros."""
    block = cancel_cluster(plan)
    grid_x, grid_y = int(plan[GRID_X]), int(plan[GRID_Y])
    scratch[COORDINATES + WORDS - 1] = block >= 0
    block = max(block, 0)
    scratch[COORDINATES] = block % grid_x
    scratch[COORDINATES + 1] = block // grid_x % grid_y
    scratch[COORDINATES + 2] = block // (grid_x * grid_y)


@jitable
def write_response(memory: Memory, entry: Ints) -> None:
    """Writes the four response words of an entry, 4 bytes each, to shared memory at its TARGET."""
    for word in range(WORDS):
        offset = int(entry[TARGET]) - ORIGIN + WORD_BYTES * word
        write_bytes(memory, offset, WORD_BYTES, int(entry[COORDINATES + word]))
