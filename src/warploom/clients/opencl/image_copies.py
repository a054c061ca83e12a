"""Copies of regions of images, fills, and maps."""

from __future__ import annotations

from functools import partial

from warploom.clients.driver import ordering
from warploom.clients.driver.copies import Box, copy_rows
from warploom.clients.driver.state import state
from warploom.clients.driver.words import put
from warploom.clients.opencl.buffers import (
    MAP_INVALIDATE,
    MAP_READ,
    Buffer,
    check_map,
    same_context,
)
from warploom.clients.opencl.commands import Asked, enqueue
from warploom.clients.opencl.errors import Status, demand
from warploom.clients.opencl.images import DIMENSIONS, Image
from warploom.clients.opencl.memory import IMAGE_1D_ARRAY, Mapping, host_may
from warploom.clients.opencl.objects import get
from warploom.clients.opencl.queues import Queue
from warploom.clients.opencl.rectangles import Triple, region_at, triple_at
from warploom.clients.opencl.table import entry

READ, WRITE, COPY, TO_BUFFER, FROM_BUFFER, _, MAP = range(0x11F6, 0x11FD)
FILL = 0x1208


def opened(queue: int, image: int) -> tuple[Queue, Image]:
    """Returns a queue and an image of the same context."""
    at, made = get(queue, Queue), get(image, Image)
    same_context(at, made)
    return at, made


def part_of(image: Image, origin: int, region: int) -> tuple[Triple, Triple]:
    """Returns an origin and a region of an image; INVALID_VALUE where they do not fit it."""
    start, sizes = triple_at(origin), region_at(region)
    unused = DIMENSIONS[image.type]
    flat = all(start[n] == 0 and sizes[n] == 1 for n in range(unused, 3))
    demand(
        flat,
        Status.INVALID_VALUE,
        f"the image has {unused} dimension{'s'[: unused > 1]}: in the other dimensions, the origin "
        "must be 0 and the region must be 1",
    )
    inside = all(a + n <= most for a, n, most in zip(start, sizes, image.sizes, strict=True))
    demand(
        inside,
        Status.INVALID_VALUE,
        f"the region {sizes} at {start} is not inside the image of {image.sizes}",
    )
    return start, sizes


def host_rows(image: Image, sizes: Triple, row: int, slice: int, host: int) -> Box:
    """Returns how a region lies in memory of the host."""
    width, height, _ = image.bytes_of(sizes)
    demand(host, Status.INVALID_VALUE, "the host pointer is null")
    demand(
        not row or row >= width,
        Status.INVALID_VALUE,
        f"the row pitch must be at least {width} bytes, not {row}",
    )
    row = row or width
    if image.type == IMAGE_1D_ARRAY:
        row = slice or row
        return Box(host, row, row * height)
    fits = not slice or slice >= row * height
    demand(
        fits,
        Status.INVALID_VALUE,
        f"the slice pitch must be at least {row * height} bytes, not {slice}",
    )
    return Box(host, row, slice or row * height)


def _with_host(is_write: bool, *words: int) -> None:
    queue, image, blocks, origin, region, row, slice, host, *asked = words
    at, made = opened(queue, image)
    start, sizes = part_of(made, origin, region)
    outside = host_rows(made, sizes, row, slice, host)
    host_may(made, write=is_write)
    inside = made.box(start)
    ends = (outside, inside) if is_write else (inside, outside)
    work = partial(copy_rows, *ends, made.bytes_of(sizes), waits=False)
    kind = WRITE if is_write else READ
    enqueue(at, kind, work, Asked(*asked), blocking=bool(blocks), holds=[made])


@entry("clEnqueueReadImage")
def read(*words: int) -> None:
    _with_host(False, *words)


@entry("clEnqueueWriteImage")
def write(*words: int) -> None:
    _with_host(True, *words)


@entry("clEnqueueCopyImage")
def copy(
    queue: int, source: int, target: int, origin: int, to: int, region: int, *asked: int
) -> None:
    at, first = opened(queue, source)
    second = get(target, Image)
    same_context(at, second)
    same = first.format == second.format
    demand(same, Status.IMAGE_FORMAT_MISMATCH, "the images have different formats")
    start, sizes = part_of(first, origin, region)
    end, _ = part_of(second, to, region)
    if first is second:
        disjoint = any(abs(a - b) >= n for a, b, n in zip(start, end, sizes, strict=True))
        demand(disjoint, Status.MEM_COPY_OVERLAP, "the source and destination regions overlap")
    work = partial(copy_rows, first.box(start), second.box(end), first.bytes_of(sizes), waits=False)
    enqueue(at, COPY, work, Asked(*asked), holds=[first, second])


def _in_buffer(buffer: Buffer, offset: int, image: Image, sizes: Triple) -> Box:
    """Returns a region that lies close in a buffer."""
    width, height, depth = image.bytes_of(sizes)
    size = width * height * depth
    fits = offset + size <= buffer.size
    demand(
        fits,
        Status.INVALID_VALUE,
        f"{size} bytes at offset {offset} extend past the end of the buffer",
    )
    return Box(buffer.address + offset, width, width * height)


@entry("clEnqueueCopyImageToBuffer")
def to_buffer(
    queue: int, source: int, target: int, origin: int, region: int, offset: int, *asked: int
) -> None:
    at, made = opened(queue, source)
    buffer = get(target, Buffer)
    same_context(at, buffer)
    start, sizes = part_of(made, origin, region)
    end = _in_buffer(buffer, offset, made, sizes)
    work = partial(copy_rows, made.box(start), end, made.bytes_of(sizes), waits=False)
    enqueue(at, TO_BUFFER, work, Asked(*asked), holds=[made, buffer])


@entry("clEnqueueCopyBufferToImage")
def from_buffer(
    queue: int, source: int, target: int, offset: int, origin: int, region: int, *asked: int
) -> None:
    at, made = opened(queue, target)
    buffer = get(source, Buffer)
    same_context(at, buffer)
    start, sizes = part_of(made, origin, region)
    begin = _in_buffer(buffer, offset, made, sizes)
    work = partial(copy_rows, begin, made.box(start), made.bytes_of(sizes), waits=False)
    enqueue(at, FROM_BUFFER, work, Asked(*asked), holds=[made, buffer])


@entry("clEnqueueFillImage")
def fill(queue: int, image: int, color: int, origin: int, region: int, *asked: int) -> None:
    at, made = opened(queue, image)
    demand(color, Status.INVALID_VALUE, "the pointer to the fill color is null")
    start, sizes = part_of(made, origin, region)
    row = made.format.pixel(color) * sizes[0]
    work = partial(_fill, made.box(start), row, sizes)
    enqueue(at, FILL, work, Asked(*asked), holds=[made])


def _fill(box: Box, row: bytes, sizes: Triple) -> None:
    for z in range(sizes[2]):
        for y in range(sizes[1]):
            address = box.address + z * box.slice + y * box.row
            state.device.memory.write(address, row)
            ordering.filled(address, len(row))


@entry("clEnqueueMapImage")
def map_image(
    queue: int,
    image: int,
    blocks: int,
    flags: int,
    origin: int,
    region: int,
    row_pitch: int,
    slice_pitch: int,
    *asked: int,
) -> int:
    at, made = opened(queue, image)
    start, sizes = part_of(made, origin, region)
    demand(row_pitch, Status.INVALID_VALUE, "the pointer to the row pitch is null")
    layered = DIMENSIONS[made.type] == 3 or made.type == IMAGE_1D_ARRAY
    demand(
        slice_pitch or not layered,
        Status.INVALID_VALUE,
        "the pointer to the slice pitch is null",
    )
    check_map(made, flags)
    inside = made.box(start)
    seen = made.host_box(start) if made.uses_host else inside
    put(row_pitch, made.host_row if made.uses_host else made.row)
    if slice_pitch:
        put(slice_pitch, (seen.row if made.type == IMAGE_1D_ARRAY else seen.slice) * layered)
    extent = made.bytes_of(sizes)
    into = partial(_show, seen, inside, extent, flags)
    back = partial(copy_rows, seen, inside, extent, waits=False) if made.uses_host else None
    mapped = Mapping(seen.address, flags, back if flags & ~MAP_READ else None)
    made.maps.append(mapped)
    enqueue(at, MAP, into, Asked(*asked[:3]), blocking=bool(blocks), holds=[made])
    return seen.address


def _show(seen: Box, inside: Box, sizes: Triple, flags: int) -> None:
    """Brings the content of a region to where it is to be seen."""
    if seen is not inside and not flags & MAP_INVALIDATE:
        copy_rows(inside, seen, sizes, waits=False)
    elif flags & ~MAP_READ:
        for z in range(sizes[2]):
            for y in range(sizes[1]):
                address = inside.address + z * inside.slice + y * inside.row
                state.device.memory.mark_written(address, sizes[0])
