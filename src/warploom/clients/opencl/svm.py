"""Shared virtual memory: device memory, at addresses that the host uses as they are."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

from warploom.clients.driver.copies import move
from warploom.clients.driver.memory import allocate_in
from warploom.clients.driver.state import state
from warploom.clients.opencl.buffers import MAP_READ, PATTERNS, fill_bytes, pattern_at
from warploom.clients.opencl.commands import Asked, enqueue
from warploom.clients.opencl.contexts import ClContext
from warploom.clients.opencl.devices import device
from warploom.clients.opencl.errors import Status, demand
from warploom.clients.opencl.info import list_at, sizes_at
from warploom.clients.opencl.memory import KERNEL_ACCESS
from warploom.clients.opencl.objects import get
from warploom.clients.opencl.queues import Queue
from warploom.clients.opencl.table import entry

FREE, COPY, FILL, MAP, UNMAP, MIGRATE = range(0x1209, 0x120F)
FINE, ATOMICS = 1 << 10, 1 << 11
LARGEST_ALIGNMENT = 128
SHARED = "shared"

_FREE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p
)


@entry("clSVMAlloc")
def alloc(context: int, flags: int, size: int, alignment: int) -> int:
    """Returns an address; a null pointer, by the code of an error, where it cannot."""
    at = get(context, ClContext)
    known = not flags & ~(KERNEL_ACCESS | FINE | ATOMICS)
    known = known and (flags & KERNEL_ACCESS).bit_count() < 2
    demand(known, Status.INVALID_VALUE, f"invalid memory flags: {flags:#x}")
    demand(
        not flags & ATOMICS,
        Status.INVALID_VALUE,
        "the device does not support SVM atomics (CL_MEM_SVM_ATOMICS)",
    )
    fits = 0 < size <= device().largest_allocation
    demand(fits, Status.INVALID_VALUE, f"the size is 0 or exceeds the maximum: {size} bytes")
    power = alignment.bit_count() <= 1 and alignment <= LARGEST_ALIGNMENT
    demand(power, Status.INVALID_VALUE, f"{alignment} is not a supported alignment")
    return allocate_in(at.driver, size, SHARED, flags)


@entry("clSVMFree")
def free(context: int, address: int) -> None:
    get(context, ClContext)
    if address:
        _free(address)


def _free(address: int) -> None:
    owned = state.allocations.get(address)
    known = owned is not None and owned.kind == SHARED
    demand(known, Status.INVALID_VALUE, f"{address:#x} is not in shared virtual memory")
    state.drop(address)


@entry("clEnqueueSVMFree")
def enqueue_free(
    queue: int, count: int, pointers: int, function: int, data: int, *asked: int
) -> None:
    at = get(queue, Queue)
    given = list_at(pointers, count, Status.INVALID_VALUE)
    demand(given, Status.INVALID_VALUE, "there are no pointers to free")
    demand(all(given), Status.INVALID_VALUE, "a pointer to free is null")

    def work() -> None:
        if function:
            array = (ctypes.c_void_p * count)(*given)
            _FREE(function)(queue, count, array, data or None)
        else:
            for address in given:
                _free(address)

    enqueue(at, FREE, work, Asked(*asked))


def _disjoint(target: int, source: int, size: int) -> None:
    disjoint = target + size <= source or source + size <= target
    demand(disjoint, Status.MEM_COPY_OVERLAP, "the source and destination of the copy overlap")


@entry("clEnqueueSVMMemcpy")
def copy(queue: int, blocks: int, target: int, source: int, size: int, *asked: int) -> None:
    at = get(queue, Queue)
    demand(
        (target and source) or not size,
        Status.INVALID_VALUE,
        "the source or destination pointer of the copy is null",
    )
    if size:
        _disjoint(target, source, size)
    work: Callable[[], object] = partial(move, target, source, size, waits=False)
    enqueue(at, COPY, work if size else _nothing, Asked(*asked), blocking=bool(blocks))


@entry("clEnqueueSVMMemFill")
def fill(queue: int, target: int, pattern: int, length: int, size: int, *asked: int) -> None:
    at = get(queue, Queue)
    demand(target, Status.INVALID_VALUE, "the pointer to fill is null")
    known = length in PATTERNS and target % length == 0
    demand(
        known,
        Status.INVALID_VALUE,
        "the pattern size is invalid, or the address is not a multiple of the pattern size",
    )
    given = pattern_at(pattern, length, 0, size)
    work = partial(fill_bytes, target, given, size) if size else _nothing
    enqueue(at, FILL, work, Asked(*asked))


@entry("clEnqueueSVMMap")
def map_memory(queue: int, blocks: int, flags: int, at: int, size: int, *asked: int) -> None:
    to = get(queue, Queue)
    demand(at and size, Status.INVALID_VALUE, "the pointer to map is null, or the size is 0")
    demand(0 < flags <= 7, Status.INVALID_VALUE, f"invalid map flags: {flags:#x}")
    writes = flags & ~MAP_READ
    work = partial(state.device.memory.mark_written, at, size) if writes else _nothing
    enqueue(to, MAP, work, Asked(*asked), blocking=bool(blocks))


@entry("clEnqueueSVMUnmap")
def unmap(queue: int, address: int, *asked: int) -> None:
    at = get(queue, Queue)
    demand(address, Status.INVALID_VALUE, "the pointer to unmap is null")
    enqueue(at, UNMAP, _nothing, Asked(*asked))


@entry("clEnqueueSVMMigrateMem")
def migrate(queue: int, count: int, pointers: int, sizes: int, flags: int, *asked: int) -> None:
    at = get(queue, Queue)
    demand(count and pointers, Status.INVALID_VALUE, "there are no pointers to migrate")
    demand(not flags & ~3, Status.INVALID_VALUE, f"invalid migration flags: {flags:#x}")
    given = sizes_at(pointers, count)
    lengths = sizes_at(sizes, count) if sizes else (0,) * count
    for address, size in zip(given, lengths, strict=True):
        found = state.device.memory.find(address)
        inside = found is not None and address + size <= found.address + found.size
        demand(inside, Status.INVALID_VALUE, f"{address:#x} is not in shared virtual memory")
    enqueue(at, MIGRATE, _nothing, Asked(*asked))


def _nothing() -> None:
    """Does nothing: the host accesses the memory as it is."""
