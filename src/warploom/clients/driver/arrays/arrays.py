"""CUDA arrays: texels that textures and surfaces see. They are stored row by row."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.structures import Array3DDescriptor, ArrayDescriptor
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import put
from warploom.host.buffer import Buffer
from warploom.host.textures.texels import Texels

FORMATS: dict[int, np.dtype[Any]] = {
    number: np.dtype(name)
    for number, name in (
        *((0x01, "u1"), (0x02, "u2"), (0x03, "u4"), (0x08, "i1")),
        *((0x09, "i2"), (0x0A, "i4"), (0x10, "f2"), (0x20, "f4")),
    )
}
"""CUarray_format."""

LAYERED, SURFACE, CUBE = 1, 2, 4


@dataclass(frozen=True)
class CudaArray:
    """An array as it was described, and its texels in device memory, `offset` bytes into `buffer`.
    One that is a level of another has no life of its own."""

    width: int
    height: int
    depth: int
    format: int
    channels: int
    flags: int
    buffer: Buffer
    offset: int = 0
    is_level: bool = False

    @property
    def address(self) -> int:
        return self.buffer.address + self.offset

    @property
    def nbytes(self) -> int:
        return self.row_bytes * self.rows * self.slices

    @property
    def dtype(self) -> np.dtype[Any]:
        return FORMATS[self.format]

    @property
    def row_bytes(self) -> int:
        return self.width * self.dtype.itemsize * self.channels

    @property
    def rows(self) -> int:
        return max(1, self.height)

    @property
    def slices(self) -> int:
        return max(1, self.depth)

    @property
    def texels(self) -> Texels:
        """Returns what a texture sees."""
        layered, cube = bool(self.flags & LAYERED), bool(self.flags & CUBE)
        sizes = [n for n in (self.height, self.width) if n]
        deep = [self.depth] if self.depth else []
        tail = [self.channels] if self.channels > 1 else []
        return Texels(
            self.buffer,
            (*deep, *sizes, *tail),
            self.dtype,
            self.channels,
            layered,
            cube,
            (self.address,),
        )


def make_arrays(
    width: int,
    height: int,
    depth: int,
    format: int,
    channels: int,
    flags: int,
    count: int = 1,
    *,
    are_levels: bool = False,
) -> list[CudaArray]:
    """New arrays, all zero, one after the other in memory, each half as large as the one before.
    Raises INVALID_VALUE for what is none."""
    if format not in FORMATS or channels not in (1, 2, 4) or not width:
        raise DriverError(Result.INVALID_VALUE)
    if depth and not height and not flags & LAYERED:
        raise DriverError(Result.INVALID_VALUE)
    state.current()
    deep = not flags & (LAYERED | CUBE)
    shapes = [
        (
            max(1, width >> n),
            height and max(1, height >> n),
            depth and (max(1, depth >> n) if deep else depth),
        )
        for n in range(count)
    ]
    texel = FORMATS[format].itemsize * channels
    sizes = [w * max(1, h) * max(1, d) * texel for w, h, d in shapes]
    buffer = Buffer(state.device.memory, (sum(sizes),), np.dtype(np.uint8), "CUDA array")
    starts = accumulate(sizes, initial=0)
    return [
        CudaArray(*shape, format, channels, flags, buffer, start, are_levels)
        for shape, start in zip(shapes, starts, strict=False)
    ]


@entry("cuArrayCreate_v2")
def create(array: int, description: int) -> None:
    if not description:
        raise DriverError(Result.INVALID_VALUE)
    d = ArrayDescriptor.from_address(description)
    [made] = make_arrays(d.width, d.height, 0, d.format, d.channels, 0)
    put(array, state.own(state.current(), made))


@entry("cuArray3DCreate_v2")
def create_3d(array: int, description: int) -> None:
    if not description:
        raise DriverError(Result.INVALID_VALUE)
    d = Array3DDescriptor.from_address(description)
    [made] = make_arrays(d.width, d.height, d.depth, d.format, d.channels, d.flags)
    put(array, state.own(state.current(), made))


@entry("cuArrayGetDescriptor_v2")
def describe(description: int, array: int) -> None:
    made = state.handles.get(array, CudaArray)
    if not description:
        raise DriverError(Result.INVALID_VALUE)
    d = ArrayDescriptor.from_address(description)
    d.width, d.height, d.format, d.channels = made.width, made.height, made.format, made.channels


@entry("cuArray3DGetDescriptor_v2")
def describe_3d(description: int, array: int) -> None:
    made = state.handles.get(array, CudaArray)
    if not description:
        raise DriverError(Result.INVALID_VALUE)
    d = Array3DDescriptor.from_address(description)
    d.width, d.height, d.depth = made.width, made.height, made.depth
    d.format, d.channels, d.flags = made.format, made.channels, made.flags


@entry("cuArrayDestroy")
def destroy(array: int) -> None:
    made = state.handles.get(array, CudaArray)
    if made.is_level:
        raise DriverError(Result.INVALID_HANDLE)
    state.when_idle(made.buffer.free)
    state.handles.remove(array)
