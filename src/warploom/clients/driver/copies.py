"""Copies of all kinds: along a line, of rows, of boxes; to and from arrays.

Device addresses are checked. So is a host pointer into memory that is the device's (managed or
pinned); any other is trusted.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from warploom.clients.driver import ordering
from warploom.clients.driver.arrays.arrays import CudaArray
from warploom.clients.driver.graphs.graphs import Kind
from warploom.clients.driver.memory import device_bytes
from warploom.clients.driver.queued import queued
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.structures import Copy2D, Copy3D
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import unsigned

HOST, DEVICE, ARRAY, UNIFIED = 1, 2, 3, 4


def _host(address: int, size: int) -> int:
    """Returns a host address, checked where it is the device's as well."""
    address = unsigned(address)
    memory = state.device.memory
    if memory.base <= address < memory.base + memory.capacity:
        device_bytes(address, size)
    elif not address:
        raise DriverError(Result.INVALID_VALUE)
    return address


def _device(address: int, size: int) -> int:
    address = unsigned(address)
    device_bytes(address, size)
    return address


def move(target: int, source: int, size: int, *, waits: bool | None = None) -> None:
    """Copies bytes, and reports that to the sanitizers (`ordering.copied`)."""
    ctypes.memmove(target, source, size)
    ordering.copied(target, source, size, waits=waits)


@queued(entry, Kind.MEMCPY, "cuMemcpyHtoDAsync_v2")
@entry("cuMemcpyHtoD_v2")
def to_device(target: int, source: int, size: int) -> None:
    state.current()
    if size := unsigned(size):
        move(_device(target, size), _host(source, size), size)


@queued(entry, Kind.MEMCPY, "cuMemcpyDtoHAsync_v2")
@entry("cuMemcpyDtoH_v2")
def to_host(target: int, source: int, size: int) -> None:
    state.current()
    if size := unsigned(size):
        move(_host(target, size), _device(source, size), size)


@queued(entry, Kind.MEMCPY, "cuMemcpyDtoDAsync_v2")
@entry("cuMemcpyDtoD_v2")
def on_device(target: int, source: int, size: int) -> None:
    state.current()
    if size := unsigned(size):
        move(_device(target, size), _device(source, size), size)


@queued(entry, Kind.MEMCPY, "cuMemcpyAsync")
@entry("cuMemcpy")
def anywhere(target: int, source: int, size: int) -> None:
    """Copies bytes between addresses, each of the host or of the device."""
    state.current()
    if size := unsigned(size):
        move(_host(target, size), _host(source, size), size)


@queued(entry, Kind.MEMCPY, "cuMemcpyPeerAsync")
@entry("cuMemcpyPeer")
def between_contexts(target: int, into: int, source: int, out_of: int, size: int) -> None:
    state.context(into)
    state.context(out_of)
    on_device(target, source, size)


# ---- arrays along a line -------------------------------------------------------------------------


def _in_array(handle: int, offset: int, size: int) -> int:
    made = state.handles.get(handle, CudaArray)
    if offset + size > made.nbytes:
        raise DriverError(Result.INVALID_VALUE)
    return made.address + offset


@queued(entry, Kind.MEMCPY, "cuMemcpyHtoAAsync_v2")
@entry("cuMemcpyHtoA_v2")
def host_to_array(array: int, offset: int, source: int, size: int) -> None:
    state.current()
    size = unsigned(size)
    move(_in_array(array, unsigned(offset), size), _host(source, size), size)


@queued(entry, Kind.MEMCPY, "cuMemcpyAtoHAsync_v2")
@entry("cuMemcpyAtoH_v2")
def array_to_host(target: int, array: int, offset: int, size: int) -> None:
    state.current()
    size = unsigned(size)
    move(_host(target, size), _in_array(array, unsigned(offset), size), size)


@entry("cuMemcpyDtoA_v2")
def device_to_array(array: int, offset: int, source: int, size: int) -> None:
    state.current()
    size = unsigned(size)
    move(_in_array(array, unsigned(offset), size), _device(source, size), size)


@entry("cuMemcpyAtoD_v2")
def array_to_device(target: int, array: int, offset: int, size: int) -> None:
    state.current()
    size = unsigned(size)
    move(_device(target, size), _in_array(array, unsigned(offset), size), size)


@entry("cuMemcpyAtoA_v2")
def between_arrays(target: int, to: int, source: int, start: int, size: int) -> None:
    state.current()
    size = unsigned(size)
    move(_in_array(target, unsigned(to), size), _in_array(source, unsigned(start), size), size)


# ---- rows and boxes ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """The beginning and the steps of a copy of `width` bytes by `height` rows by `depth` slices."""

    address: int
    row: int
    slice: int


@dataclass(frozen=True)
class _End:
    """One end of a copy as the caller describes it."""

    kind: int
    host: int
    device: int
    array: int
    pitch: int
    height: int
    x: int
    y: int
    z: int


def _box(end: _End, width: int, height: int, depth: int) -> Box:
    if end.kind == ARRAY:
        made = state.handles.get(end.array, CudaArray)
        start, row, rows = made.address, made.row_bytes, made.rows
        if end.x + width > row or end.y + height > rows or end.z + depth > made.slices:
            raise DriverError(Result.INVALID_VALUE)
        offset = (end.z * rows + end.y) * row + end.x
        return Box(start + offset, row, row * rows)
    start = unsigned((end.host if end.kind == HOST else end.device) or 0)
    row, rows = end.pitch or width, end.height or height
    if (row < end.x + width and height > 1) or (rows < end.y + height and depth > 1):
        raise DriverError(Result.INVALID_VALUE)
    address = start + (end.z * rows + end.y) * row + end.x
    extent = (depth - 1) * row * rows + (height - 1) * row + width
    check = _device if end.kind == DEVICE else _host
    return Box(check(address, extent), row, row * rows)


def copy_rows(
    source: Box, target: Box, sizes: tuple[int, int, int], *, waits: bool | None = None
) -> None:
    """Copies rows: their bytes, how many rows a slice has, and slices."""
    width, height, depth = sizes
    for z in range(depth):
        for y in range(height):
            start = source.address + z * source.slice + y * source.row
            move(target.address + z * target.slice + y * target.row, start, width, waits=waits)


def _copy_box(source: _End, target: _End, width: int, height: int, depth: int) -> None:
    state.current()
    if not (width and height and depth):
        return
    start, end = _box(source, width, height, depth), _box(target, width, height, depth)
    copy_rows(start, end, (width, height, depth))


@queued(entry, Kind.MEMCPY, "cuMemcpy2DAsync_v2", description=Copy2D)
@entry("cuMemcpy2D_v2", "cuMemcpy2DUnaligned_v2")
def rows(description: int) -> None:
    if not description:
        raise DriverError(Result.INVALID_VALUE)
    c = Copy2D.from_address(description)
    _copy_box(_end(c, "src"), _end(c, "dst"), c.width, c.height, 1)


@queued(entry, Kind.MEMCPY, "cuMemcpy3DAsync_v2", description=Copy3D)
@entry("cuMemcpy3D_v2")
def boxes(description: int) -> None:
    if not description:
        raise DriverError(Result.INVALID_VALUE)
    c = Copy3D.from_address(description)
    if c.src_level or c.dst_level:
        raise DriverError(Result.INVALID_VALUE)
    _copy_box(_end(c, "src"), _end(c, "dst"), c.width, c.height, c.depth)


def _end(copy: Copy2D | Copy3D, end: str) -> _End:
    """Returns one end ("src" or "dst") of a copy; what two dimensions lack is 0."""
    fields = ("type", "host", "device", "array", "pitch", "height", "x", "y", "z")
    return _End(*(getattr(copy, f"{end}_{field}", 0) for field in fields))
