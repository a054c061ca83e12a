"""Copies of rectangles between buffers, and between buffers and memory of the host."""

from __future__ import annotations

from functools import partial

from warploom.clients.driver.copies import Box, copy_rows
from warploom.clients.opencl.buffers import Buffer, opened, same_context
from warploom.clients.opencl.commands import Asked, enqueue
from warploom.clients.opencl.errors import Status, demand
from warploom.clients.opencl.info import sizes_at
from warploom.clients.opencl.memory import host_may
from warploom.clients.opencl.objects import get
from warploom.clients.opencl.table import entry

READ, WRITE, COPY = 0x1201, 0x1202, 0x1203

Triple = tuple[int, int, int]


def triple_at(address: int) -> Triple:
    """Returns an origin or a region; INVALID_VALUE for a null pointer."""
    x, y, z = sizes_at(address, 3)
    return x, y, z


def region_at(address: int) -> Triple:
    """Returns a region; INVALID_VALUE for one that is empty."""
    region = triple_at(address)
    demand(all(region), Status.INVALID_VALUE, f"the region {region} is empty")
    return region


def pitches(row: int, slice: int, region: Triple) -> tuple[int, int]:
    """Returns the bytes of a row and of a slice, which 0 stands for where they lie close."""
    width, height, _ = region
    fits = not row or row >= width
    demand(fits, Status.INVALID_VALUE, f"rows of {width} bytes do not fit in a row pitch of {row}")
    row = row or width
    close = not slice or (slice >= height * row and slice % row == 0)
    demand(
        close,
        Status.INVALID_VALUE,
        f"a slice of {height} rows does not fit in a slice pitch of {slice}",
    )
    return row, slice or height * row


def box_at(address: int, origin: Triple, row: int, slice: int) -> Box:
    """Returns where a rectangle begins, and its steps."""
    return Box(address + origin[2] * slice + origin[1] * row + origin[0], row, slice)


def in_buffer(buffer: Buffer, origin: Triple, region: Triple, row: int, slice: int) -> Box:
    """Returns a rectangle of a buffer; INVALID_VALUE where it ends beyond it."""
    row, slice = pitches(row, slice, region)
    last = [start + size - 1 for start, size in zip(origin, region, strict=True)]
    end = last[2] * slice + last[1] * row + last[0] + 1
    why = f"the rectangle ends at byte {end}, beyond the buffer of {buffer.size} bytes"
    demand(end <= buffer.size, Status.INVALID_VALUE, why)
    return box_at(buffer.address, origin, row, slice)


def _with_host(is_write: bool, *words: int) -> None:
    queue, buffer, blocks, origin, host_origin, region = words[:6]
    row, slice, host_row, host_slice, host, *asked = words[6:]
    at, made = opened(queue, buffer)
    sizes = region_at(region)
    on_device = in_buffer(made, triple_at(origin), sizes, row, slice)
    demand(host, Status.INVALID_VALUE, "the host pointer is null")
    outside = box_at(host, triple_at(host_origin), *pitches(host_row, host_slice, sizes))
    host_may(made, write=is_write)
    ends = (outside, on_device) if is_write else (on_device, outside)
    work = partial(copy_rows, *ends, sizes, waits=False)
    kind = WRITE if is_write else READ
    enqueue(at, kind, work, Asked(*asked), blocking=bool(blocks), holds=[made])


@entry("clEnqueueReadBufferRect")
def read(*words: int) -> None:
    _with_host(False, *words)


@entry("clEnqueueWriteBufferRect")
def write(*words: int) -> None:
    _with_host(True, *words)


@entry("clEnqueueCopyBufferRect")
def copy(queue: int, source: int, target: int, *words: int) -> None:
    origin, to, region, row, slice, target_row, target_slice, *asked = words
    at, first = opened(queue, source)
    second = get(target, Buffer)
    same_context(at, second)
    sizes = region_at(region)
    start = in_buffer(first, triple_at(origin), sizes, row, slice)
    end = in_buffer(second, triple_at(to), sizes, target_row, target_slice)
    if first is second:
        same = start.row == end.row and start.slice == end.slice
        demand(
            same,
            Status.INVALID_VALUE,
            "for a copy within one buffer, the source and destination pitches must be the same",
        )
        demand(not _overlap(start, end, sizes), Status.MEM_COPY_OVERLAP, "the rectangles overlap")
    work = partial(copy_rows, start, end, sizes, waits=False)
    enqueue(at, COPY, work, Asked(*asked), holds=[first, second])


def _overlap(first: Box, second: Box, sizes: Triple) -> bool:
    """Returns whether two rectangles of the same pitches share a byte."""
    begin, end = sorted((first.address, second.address))
    width, height, depth = sizes
    distance = end - begin
    slices, rest = divmod(distance, first.slice)
    for z, left in ((slices, rest), (slices + 1, rest - first.slice)):
        rows, bytes_ = divmod(left, first.row)
        for y, x in ((rows, bytes_), (rows + 1, bytes_ - first.row)):
            if z < depth and abs(y) < height and abs(x) < width:
                return True
    return False
