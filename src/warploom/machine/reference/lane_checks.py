"""Checks the accesses of a warp's lanes on the reference machine before any is done: finds the
memory of each lane, raises faults, counts costs, and reports to sanitizer, listener, observer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from warploom.core.errors import Allocation
from warploom.isa.instruction import Space
from warploom.isa.kinds import Needs
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.launch import shared_stride
from warploom.machine.reference.lane_access import (
    AccessRequest,
    ByteArea,
    ByteStore,
    LaneAccess,
    count_accesses,
)
from warploom.machine.reference.lanes import lanes_of
from warploom.machine.reference.operands import WINDOWS
from warploom.machine.reference.state import AttemptedAccess, Warp, WarpAccess
from warploom.program.accesses import spaces_of as accessible_spaces
from warploom.program.effects.clusters import accesses_cluster
from warploom.simt.address_windows import BLOCK_BITS, WINDOW_SIZE
from warploom.simt.clusters import NO_SUCH_BLOCK, cluster_offset, live_blocks


def lane_accesses(
    warp: Warp,
    request: AccessRequest,
    addresses_by_lane: Sequence[int],
    mask: int,
    data: bytes = b"",
) -> list[LaneAccess]:
    """Returns the accesses of the lanes of `mask`, lane l at `addresses_by_lane[l]`, after they
    were checked, counted and reported to listener and observer: in the order of lanes, or, with a
    sanitizer, space by space without those that it suppresses. Accesses to parameters
    (`of_call_parameters`, or of the kernel) are not passed to the sanitizer. Generic addresses, and
    those of other blocks of the cluster, are resolved. `data` are the bytes of the operands, for
    the sanitizer. Raises the fault of the first in this order that may not access memory (in a
    cluster, shared memory first), before any access is done."""
    accesses_of_warp: list[LaneAccess] = []
    common: dict[Space, ByteStore] = {}  # memories that are the same for all lanes
    for lane in lanes_of(mask):
        space_of_lane, offset = _locate(request.space, addresses_by_lane[lane])
        store = common.get(space_of_lane)
        if store is None:
            store = _store_of(warp, space_of_lane, lane, request.of_call_parameters)
            if space_of_lane is not Space.LOCAL and not request.of_call_parameters:
                common[space_of_lane] = store
        accesses_of_warp.append(LaneAccess(lane, space_of_lane, offset, store))
    # Before the checks, so that a sanitizer can report and suppress invalid accesses.
    if warp.run.sanitizer is not None and not request.of_call_parameters:
        accesses_of_warp = _admitted(warp, request, accesses_of_warp, data)
    if _is_in_cluster(warp, request):
        accesses_of_warp = [
            _to_cluster_offset(warp, request, lane_access)
            if lane_access.space is Space.SHARED
            else lane_access
            for lane_access in accesses_of_warp
        ]
    # Check every lane first: a faulting instruction must have no effect.
    for lane_access in accesses_of_warp:
        _check(warp, request, lane_access)
    for accessed_space in accessible_spaces(request.space):
        space_of_lane = [
            lane_access for lane_access in accesses_of_warp if lane_access.space is accessed_space
        ]
        count_accesses(warp, request, accessed_space, space_of_lane)
        _publish(warp, request, accessed_space, space_of_lane)
    return accesses_of_warp


def _admitted(
    warp: Warp, request: AccessRequest, accesses_of_warp: Sequence[LaneAccess], data: bytes
) -> list[LaneAccess]:
    """Returns the accesses, space by space, but for those that the sanitizer suppresses; accesses
    to parameters are all retained and not passed to it."""
    sanitizer, admitted = warp.run.sanitizer, list[LaneAccess]()
    assert sanitizer is not None
    for space in accessible_spaces(request.space):
        in_space = [lane_access for lane_access in accesses_of_warp if lane_access.space is space]
        if in_space and space is not Space.PARAM:
            addresses = {lane_access.lane: lane_access.address for lane_access in in_space}
            attempt = AttemptedAccess(
                request.index, space, request.op, request.size, addresses, data
            )
            lanes = sanitizer.admitted(warp, attempt)
            in_space = [lane_access for lane_access in in_space if lanes >> lane_access.lane & 1]
        admitted += in_space
    return admitted


def _publish(
    warp: Warp, request: AccessRequest, space: Space, accesses_of_warp: Sequence[LaneAccess]
) -> None:
    """Reports the accesses to one space, with the bytes that are there before a store is done, to
    the listener and the observer; nothing without these or without accesses."""
    listener, observer = warp.run.listener, warp.run.observer
    if (listener is None and observer is None) or not accesses_of_warp:
        return
    lanes = tuple(lane_access.lane for lane_access in accesses_of_warp)
    lane_addresses = tuple(lane_access.address for lane_access in accesses_of_warp)
    data = tuple(
        lane_access.store.read(lane_access.address, request.size)
        for lane_access in accesses_of_warp
    )
    access = WarpAccess(request.index, space, request.op, request.size, lanes, lane_addresses, data)
    if listener is not None:
        listener.accessed(warp, access)
    if observer is not None:
        observer.access(warp, access)


def _locate(space: Space, address: int) -> tuple[Space, int]:
    """Returns the space that an address belongs to, and the address in that space: a generic
    address is in the shared or local window, or global; others stay as they are."""
    if space is not Space.GENERIC:
        return space, address
    for window_space, start in WINDOWS.items():
        if start <= address < start + WINDOW_SIZE:
            return window_space, address - start
    return Space.GLOBAL, address


def _is_in_cluster(warp: Warp, request: AccessRequest) -> bool:
    """Returns true if an access to shared memory may address another thread block's: the launch has
    clusters of several blocks or the program maps addresses (`mapa`), and the instruction is of
    `shared::cluster` or has a generic address."""
    instruction = warp.run.program.instructions[request.index]
    run = warp.run
    names_blocks = run.launch.cluster_blocks > 1 or Needs.CLUSTER_ADDRESSES in run.program.needs
    return names_blocks and accesses_cluster(instruction)


def _to_cluster_offset(warp: Warp, request: AccessRequest, lane_access: LaneAccess) -> LaneAccess:
    """Returns an access to shared memory with its offset in the shared memory of the whole cluster,
    and that memory as its store. The address has the rank of the block plus 1 from bit BLOCK_BITS
    on, 0 for the own block. Raises the fault of an access beyond that block's memory, or to a block
    that is not live."""
    run, block, address = warp.run, warp.block, lane_access.address
    live, size = live_blocks(run.plan, run.slots), len(block.shared)
    stride = shared_stride(run.program, run.launch)
    offset = cluster_offset(address, request.size, block.rank, live, size, stride)
    if offset >= 0:
        return replace(
            lane_access,
            address=offset,
            store=ByteArea(block.cluster, "the shared memory of the cluster"),
        )
    position = (request.index, block.number, warp.number, lane_access.lane)
    if offset == NO_SUCH_BLOCK:
        rank = (address >> BLOCK_BITS) - 1
        fault = Fault(FaultKind.NO_BLOCK, *position, rank, request.size, Space.SHARED)
    else:
        within = address & ((1 << BLOCK_BITS) - 1)
        fault = Fault(FaultKind.OUT_OF_BOUNDS, *position, within, request.size, Space.SHARED)
    block_memory = Allocation(0, size, "the block's shared memory")
    raise fault_error(fault, run.program, run.launch, block_memory)


def _store_of(warp: Warp, space: Space, lane: int, of_call_parameters: bool) -> ByteStore:
    """Returns the memory that a lane's access to a space addresses: the block's shared memory, the
    thread's local memory, the thread's frame with the parameters of calls, if it accesses these
    (`of_call_parameters`), the kernel's parameters, else device memory."""
    if space is Space.SHARED:
        return ByteArea(warp.block.shared, "the block's shared memory")
    if space is Space.LOCAL:
        return ByteArea(warp.local[lane], "the thread's local memory")
    if of_call_parameters:
        return ByteArea(warp.frame[lane], "the parameters of the call")
    if space is Space.PARAM:
        parameters = np.frombuffer(warp.run.launch.parameters, np.uint8)
        return ByteArea(parameters, "the parameters of the kernel")
    return warp.run.memory


def peek(warp: Warp, request: AccessRequest, lane: int, address: int) -> bytes:
    """Returns the bytes that a lane sees at an address, for host callbacks: not counted, at any
    alignment. Raises KernelFault if they are not accessible."""
    space, offset = _locate(request.space, address)
    store = _store_of(warp, space, lane, request.of_call_parameters)
    lane_access = LaneAccess(lane, space, offset, store)
    allocation = lane_access.store.find(offset)
    if allocation is None or offset + request.size > allocation.address + allocation.size:
        _check(warp, request, lane_access)
    return lane_access.store.read(offset, request.size)


def _check(warp: Warp, request: AccessRequest, lane_access: LaneAccess) -> None:
    """Raises the fault of an access, the first in the order out of bounds (not within one
    allocation), misaligned (to its size), read-only (not a load, in constant memory); else does
    nothing."""
    size = request.size
    allocation = lane_access.store.find(lane_access.address)
    if allocation is None or lane_access.address + size > allocation.address + allocation.size:
        kind = FaultKind.OUT_OF_BOUNDS
    elif lane_access.address % size:
        kind = FaultKind.MISALIGNED
    elif request.op != "load" and lane_access.store.is_constant(lane_access.address):
        kind = FaultKind.READ_ONLY
    else:
        return
    position = (request.index, warp.block.number, warp.number, lane_access.lane)
    fault = Fault(kind, *position, lane_access.address, size, lane_access.space)
    nearest = lane_access.store.nearest(lane_access.address)
    raise fault_error(fault, warp.run.program, warp.run.launch, nearest)
