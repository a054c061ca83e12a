"""Copies to, from and between CUDA arrays by the runtime's names.

Offsets, widths and sizes along rows are in bytes here.
"""

from __future__ import annotations

import ctypes

from warploom.clients.driver.arrays.arrays import CudaArray
from warploom.clients.driver.copies import ARRAY, boxes
from warploom.clients.driver.graphs.graphs import Kind
from warploom.clients.driver.queued import queued
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.structures import Copy3D
from warploom.clients.driver.words import unsigned
from warploom.clients.runtime.arrays import ENDS
from warploom.clients.runtime.memory import KINDS, ON_DEVICE, copy
from warploom.clients.runtime.table import entry

# ---- stretches, which may begin and end inside of rows -------------------------------------------


def _stretch(array: int, x: int, y: int, size: int) -> int:
    """Returns the address of `size` bytes that begin at a position of an array and continue in its
    next rows. Raises DriverError (INVALID_VALUE) where the array ends before."""
    made = state.handles.get(array, CudaArray)
    offset = unsigned(y) * made.row_bytes + unsigned(x)
    if offset + unsigned(size) > made.nbytes:
        raise DriverError(Result.INVALID_VALUE)
    return made.address + offset


@queued(entry, Kind.MEMCPY, "cudaMemcpyToArrayAsync")
@entry("cudaMemcpyToArray")
def to_array(array: int, x: int, y: int, source: int, size: int, kind: int) -> None:
    copy(_stretch(array, x, y, size), source, size, kind)


@queued(entry, Kind.MEMCPY, "cudaMemcpyFromArrayAsync")
@entry("cudaMemcpyFromArray")
def from_array(target: int, array: int, x: int, y: int, size: int, kind: int) -> None:
    copy(target, _stretch(array, x, y, size), size, kind)


@entry("cudaMemcpyArrayToArray")
def between_arrays(
    target: int, to_x: int, to_y: int, source: int, x: int, y: int, size: int, _kind: int
) -> None:
    copy(_stretch(target, to_x, to_y, size), _stretch(source, x, y, size), size, ON_DEVICE)


# ---- rows ----------------------------------------------------------------------------------------


@entry("cudaMemcpy2DArrayToArray")
def rows_between_arrays(
    target: int,
    to_x: int,
    to_y: int,
    source: int,
    x: int,
    y: int,
    width: int,
    height: int,
    _kind: int,
) -> None:
    made = _rows(width, height, ON_DEVICE)
    made.src_type, made.src_array, made.src_x, made.src_y = ARRAY, source, unsigned(x), unsigned(y)
    made.dst_type, made.dst_array = ARRAY, target
    made.dst_x, made.dst_y = unsigned(to_x), unsigned(to_y)
    boxes(ctypes.addressof(made))


@queued(entry, Kind.MEMCPY, "cudaMemcpy2DToArrayAsync")
@entry("cudaMemcpy2DToArray")
def rows_to_array(
    array: int, x: int, y: int, source: int, pitch: int, width: int, height: int, kind: int
) -> None:
    made = _rows(width, height, kind)
    made.dst_type, made.dst_array, made.dst_x, made.dst_y = ARRAY, array, unsigned(x), unsigned(y)
    made.src_host, made.src_device, made.src_pitch = source, unsigned(source), unsigned(pitch)
    boxes(ctypes.addressof(made))


@queued(entry, Kind.MEMCPY, "cudaMemcpy2DFromArrayAsync")
@entry("cudaMemcpy2DFromArray")
def rows_from_array(
    target: int, pitch: int, array: int, x: int, y: int, width: int, height: int, kind: int
) -> None:
    made = _rows(width, height, kind)
    made.src_type, made.src_array, made.src_x, made.src_y = ARRAY, array, unsigned(x), unsigned(y)
    made.dst_host, made.dst_device, made.dst_pitch = target, unsigned(target), unsigned(pitch)
    boxes(ctypes.addressof(made))


def _rows(width: int, height: int, kind: int) -> Copy3D:
    if kind not in KINDS:
        raise DriverError(Result.INVALID_MEMCPY_DIRECTION)
    source, target = ENDS[kind]
    return Copy3D(
        width=unsigned(width), height=unsigned(height), depth=1, src_type=source, dst_type=target
    )
