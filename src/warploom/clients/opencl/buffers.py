"""Buffers and parts of buffers: making them, and copying, filling and mapping them."""

from __future__ import annotations

import ctypes
from functools import partial

from warploom.clients.driver import ordering
from warploom.clients.driver.copies import move
from warploom.clients.driver.state import state
from warploom.clients.opencl.commands import Asked, enqueue
from warploom.clients.opencl.contexts import ClContext
from warploom.clients.opencl.devices import BASE_ALIGNMENT, device
from warploom.clients.opencl.errors import Status, demand
from warploom.clients.opencl.memory import (
    ALLOC_HOST,
    COPY_HOST,
    HOST_ACCESS,
    KERNEL_ACCESS,
    USE_HOST,
    Mapping,
    MemObject,
    check_flags,
    fill_from_host,
    host_may,
    property_list,
)
from warploom.clients.opencl.objects import get
from warploom.clients.opencl.queues import Queue
from warploom.clients.opencl.table import entry

READ, WRITE, COPY, MAP, FILL = 0x11F3, 0x11F4, 0x11F5, 0x11FB, 0x1207
MAP_READ, MAP_WRITE, MAP_INVALIDATE = 1, 2, 4
REGION = 0x1220
PATTERNS = tuple(1 << n for n in range(8))


class Buffer(MemObject):
    """A buffer, or a part of one."""

    what = "buffer"


@entry("clCreateBuffer")
def create(context: int, flags: int, size: int, host: int) -> int:
    return _create(context, None, flags, size, host)


@entry("clCreateBufferWithProperties")
def create_with(context: int, properties: int, flags: int, size: int, host: int) -> int:
    return _create(context, property_list(properties), flags, size, host)


def _create(
    context: int, properties: tuple[int, ...] | None, flags: int, size: int, host: int
) -> int:
    at = get(context, ClContext)
    flags = check_flags(flags, host)
    most = device().largest_allocation
    fits = 0 < size <= most
    demand(fits, Status.INVALID_BUFFER_SIZE, f"a buffer must have 1 to {most} bytes, not {size}")
    made = Buffer(at, flags, size, host, properties)
    fill_from_host(made)
    return made.handle


@entry("clCreateSubBuffer")
def create_part(handle: int, flags: int, type: int, info: int) -> int:
    whole = get(handle, Buffer)
    demand(whole.parent is None, Status.INVALID_MEM_OBJECT, "a sub-buffer cannot have sub-buffers")
    demand(
        type == REGION and info,
        Status.INVALID_VALUE,
        "only CL_BUFFER_CREATE_TYPE_REGION with a cl_buffer_region is valid",
    )
    of_host = flags & (USE_HOST | ALLOC_HOST | COPY_HOST)
    demand(
        not of_host,
        Status.INVALID_VALUE,
        "a sub-buffer cannot have its own host pointer flags: it inherits those of its parent "
        "buffer",
    )
    inherited = 0 if flags & KERNEL_ACCESS else whole.flags & KERNEL_ACCESS
    inherited |= 0 if flags & HOST_ACCESS else whole.flags & HOST_ACCESS
    kernel = flags & KERNEL_ACCESS
    wider = kernel and not whole.flags & 1 and kernel != whole.flags & KERNEL_ACCESS
    narrow = whole.flags & HOST_ACCESS & (256 | 128 | 512)
    asked = flags & HOST_ACCESS
    wider_host = asked and narrow and asked != narrow and asked != 512
    demand(
        not (wider or wider_host),
        Status.INVALID_VALUE,
        "a sub-buffer cannot allow accesses that its parent buffer forbids",
    )
    of_host = whole.flags & (USE_HOST | ALLOC_HOST | COPY_HOST)
    flags = check_flags(flags | inherited, 0) | of_host
    origin, size = (ctypes.c_size_t * 2).from_address(info)
    demand(size, Status.INVALID_BUFFER_SIZE, "the sub-buffer is empty")
    demand(
        origin + size <= whole.size,
        Status.INVALID_VALUE,
        "the sub-buffer extends past the end of its buffer",
    )
    aligned = origin % BASE_ALIGNMENT == 0
    why = f"the origin of a sub-buffer must be a multiple of {BASE_ALIGNMENT} bytes, not {origin}"
    demand(aligned, Status.MISALIGNED_SUB_BUFFER_OFFSET, why)
    host = whole.host + origin if whole.host else 0
    return Buffer(whole.context, flags, size, host, None, whole, origin).handle


def opened(queue: int, buffer: int) -> tuple[Queue, Buffer]:
    """Returns a queue and a buffer of the same context."""
    at = get(queue, Queue)
    made = get(buffer, Buffer)
    same_context(at, made)
    return at, made


def same_context(queue: Queue, *objects: MemObject) -> None:
    """INVALID_CONTEXT for objects of another context than the queue's."""
    same = all(made.context is queue.context for made in objects)
    demand(
        same, Status.INVALID_CONTEXT, "the queue and the memory object belong to different contexts"
    )


def inside(buffer: MemObject, offset: int, size: int) -> None:
    """INVALID_VALUE for a range that is empty or ends beyond a buffer."""
    fits = size and offset + size <= buffer.size
    why = f"{size} bytes at offset {offset} are not inside the buffer of {buffer.size} bytes"
    demand(fits, Status.INVALID_VALUE, why)


@entry("clEnqueueReadBuffer")
def read(
    queue: int, buffer: int, blocks: int, offset: int, size: int, host: int, *asked: int
) -> None:
    at, made = opened(queue, buffer)
    inside(made, offset, size)
    demand(host, Status.INVALID_VALUE, "the destination pointer is null")
    host_may(made, write=False)
    work = partial(move, host, made.address + offset, size, waits=False)
    enqueue(at, READ, work, Asked(*asked), blocking=bool(blocks), holds=[made])


@entry("clEnqueueWriteBuffer")
def write(
    queue: int, buffer: int, blocks: int, offset: int, size: int, host: int, *asked: int
) -> None:
    at, made = opened(queue, buffer)
    inside(made, offset, size)
    demand(host, Status.INVALID_VALUE, "the source pointer is null")
    host_may(made, write=True)
    work = partial(move, made.address + offset, host, size, waits=False)
    enqueue(at, WRITE, work, Asked(*asked), blocking=bool(blocks), holds=[made])


@entry("clEnqueueCopyBuffer")
def copy(queue: int, source: int, target: int, start: int, to: int, size: int, *asked: int) -> None:
    at, first = opened(queue, source)
    second = get(target, Buffer)
    same_context(at, second)
    inside(first, start, size)
    inside(second, to, size)
    begin, end = first.address + start, second.address + to
    disjoint = begin + size <= end or end + size <= begin
    demand(disjoint, Status.MEM_COPY_OVERLAP, "the source and destination of the copy overlap")
    work = partial(move, end, begin, size, waits=False)
    enqueue(at, COPY, work, Asked(*asked), holds=[first, second])


def fill_bytes(address: int, pattern: bytes, size: int) -> None:
    """Fills a range with a pattern."""
    ctypes.memmove(address, pattern * (size // len(pattern)), size)
    ordering.filled(address, size)


def pattern_at(address: int, size: int, offset: int, length: int) -> bytes:
    """Returns a pattern to fill a range with; INVALID_VALUE for what is none, or does not fit."""
    known = address and size in PATTERNS
    demand(
        known, Status.INVALID_VALUE, "the pattern must be 1, 2, 4, 8, 16, 32, 64 or 128 bytes long"
    )
    fits = offset % size == 0 and length % size == 0
    demand(
        fits,
        Status.INVALID_VALUE,
        f"the offset and size must be multiples of the pattern size, {size} bytes",
    )
    return ctypes.string_at(address, size)


@entry("clEnqueueFillBuffer")
def fill(
    queue: int, buffer: int, pattern: int, length: int, offset: int, size: int, *asked: int
) -> None:
    at, made = opened(queue, buffer)
    inside(made, offset, size)
    given = pattern_at(pattern, length, offset, size)
    work = partial(fill_bytes, made.address + offset, given, size)
    enqueue(at, FILL, work, Asked(*asked), holds=[made])


@entry("clEnqueueMapBuffer")
def map_buffer(
    queue: int, buffer: int, blocks: int, flags: int, offset: int, size: int, *asked: int
) -> int:
    at, made = opened(queue, buffer)
    inside(made, offset, size)
    check_map(made, flags)
    start = made.address + offset
    pointer = made.host + offset if made.uses_host else start
    into = partial(_show, pointer, start, size, flags)
    back = partial(_show, start, pointer, size, MAP_READ) if made.uses_host else None
    mapped = Mapping(pointer, flags, back if flags & ~MAP_READ else None)
    made.maps.append(mapped)
    enqueue(at, MAP, into, Asked(*asked[:3]), blocking=bool(blocks), holds=[made])
    return pointer


def check_map(made: MemObject, flags: int) -> None:
    """Checks the flags of a mapping."""
    known = 0 < flags <= 7 and not (flags & MAP_INVALIDATE and flags & ~MAP_INVALIDATE)
    demand(known, Status.INVALID_VALUE, f"invalid map flags: {flags:#x}")
    if flags & MAP_READ:
        host_may(made, write=False)
    if flags & ~MAP_READ:
        host_may(made, write=True)


def _show(target: int, source: int, size: int, flags: int) -> None:
    """Copies the content of a region to where it is read next."""
    if target != source and not flags & MAP_INVALIDATE:
        move(target, source, size, waits=False)
    if flags & ~MAP_READ:
        state.device.memory.mark_written(source, size)


@entry("clEnqueueUnmapMemObject")
def unmap(queue: int, handle: int, pointer: int, *asked: int) -> None:
    at = get(queue, Queue)
    made = get(handle, MemObject)
    same_context(at, made)
    found = next((one for one in made.maps if one.pointer == pointer), None)
    demand(found is not None, Status.INVALID_VALUE, f"nothing is mapped at {pointer:#x}")
    assert found is not None
    made.maps.remove(found)
    enqueue(at, 0x11FD, found.back or _nothing, Asked(*asked), holds=[made])


def _nothing() -> None:
    """Does nothing: the program has written to the memory itself."""


@entry("clEnqueueMigrateMemObjects")
def migrate(queue: int, count: int, objects: int, flags: int, *asked: int) -> None:
    """Moves nothing: there is one device, whose memory the host accesses."""
    at = get(queue, Queue)
    demand(count and objects, Status.INVALID_VALUE, "there are no memory objects to migrate")
    given = [get(one, MemObject) for one in (ctypes.c_size_t * count).from_address(objects)]
    same_context(at, *given)
    demand(not flags & ~3, Status.INVALID_VALUE, f"invalid migration flags: {flags:#x}")
    enqueue(at, 0x1206, _nothing, Asked(*asked), holds=given)


@entry("clCreatePipe")
def create_pipe(context: int) -> int:
    get(context, ClContext)
    demand(
        False,
        Status.INVALID_OPERATION,
        "the device does not support pipes (CL_DEVICE_PIPE_SUPPORT)",
    )
    return 0


@entry("clGetPipeInfo")
def pipe_info(handle: int) -> None:
    get(handle, MemObject)
    demand(False, Status.INVALID_MEM_OBJECT, "the device does not support pipes")
