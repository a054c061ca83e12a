"""CUDA arrays by the runtime's names: the driver's, described in another way."""

from __future__ import annotations

import ctypes
from functools import partial

from warploom.clients.driver import memory
from warploom.clients.driver.arrays import arrays, mipmaps
from warploom.clients.driver.arrays.arrays import FORMATS, CudaArray
from warploom.clients.driver.copies import ARRAY, DEVICE, HOST, UNIFIED, boxes
from warploom.clients.driver.graphs.captures import capture_of
from warploom.clients.driver.graphs.graphs import Kind, Task
from warploom.clients.driver.queued import queued
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.streams import do_in_order, stream_of
from warploom.clients.driver.structures import Array3DDescriptor, Copy3D
from warploom.clients.driver.words import put_int, unsigned
from warploom.clients.runtime.memory import (
    BY_ADDRESS,
    HOST_TO_HOST,
    KINDS,
    ON_DEVICE,
    TO_DEVICE,
    TO_HOST,
)
from warploom.clients.runtime.structures import BoxCopy, Channels, Extent, Pitched
from warploom.clients.runtime.table import entry

INVALID_CHANNEL_DESCRIPTOR = 20

SIGNED, UNSIGNED, FLOAT = "iuf"
"""cudaChannelFormatKind, as NumPy calls them."""

ENDS = {
    HOST_TO_HOST: (HOST, HOST),
    TO_DEVICE: (HOST, DEVICE),
    TO_HOST: (DEVICE, HOST),
    ON_DEVICE: (DEVICE, DEVICE),
    BY_ADDRESS: (UNIFIED, UNIFIED),
}
"""The kinds of memory that the driver copies from and to."""


def format_of(channels: Channels) -> tuple[int, int] | None:
    """Returns the driver's format and how many components there are; None for what is no texel."""
    bits = [n for n in channels.bits if n]
    if not bits or len({*bits}) != 1 or not 0 <= channels.kind < 3:
        return None
    name = f"{(SIGNED, UNSIGNED, FLOAT)[channels.kind]}{bits[0] // 8}"
    number = next((n for n, dtype in FORMATS.items() if dtype.str[1:] == name), None)
    return None if number is None else (number, len(bits))


def _described(channels: int, extent: Extent, flags: int) -> Array3DDescriptor | None:
    if not channels:
        raise DriverError(Result.INVALID_VALUE)
    format = format_of(Channels.from_address(channels))
    if format is None:
        return None
    return Array3DDescriptor(extent.width, extent.height, extent.depth, *format, flags)


@entry("cudaMallocArray")
def malloc_array(array: int, channels: int, width: int, height: int, flags: int) -> int | None:
    extent = Extent(unsigned(width), unsigned(height), 0)
    return malloc_3d_array(array, channels, ctypes.addressof(extent), flags)


@entry("cudaMalloc3DArray")
def malloc_3d_array(array: int, channels: int, extent: int, flags: int) -> int | None:
    made = _described(channels, Extent.from_address(extent), flags)
    if made is None:
        return INVALID_CHANNEL_DESCRIPTOR
    arrays.create_3d(array, ctypes.addressof(made))
    return None


@entry("cudaMallocMipmappedArray")
def malloc_mipmapped(array: int, channels: int, extent: int, levels: int, flags: int) -> int | None:
    made = _described(channels, Extent.from_address(extent), flags)
    if made is None:
        return INVALID_CHANNEL_DESCRIPTOR
    mipmaps.create(array, ctypes.addressof(made), levels)
    return None


@entry("cudaGetMipmappedArrayLevel")
def level(array: int, mipmapped: int, number: int) -> None:
    mipmaps.level(array, mipmapped, number)


@entry("cudaFreeArray")
def free_array(array: int) -> None:
    """Frees an array; a null array is no error."""
    if array:
        arrays.destroy(array)


@entry("cudaFreeMipmappedArray")
def free_mipmapped(array: int) -> None:
    if array:
        mipmaps.destroy(array)


@entry("cudaGetChannelDesc")
def channels_of(channels: int, array: int) -> None:
    made = state.handles.get(array, CudaArray)
    fields = Channels.from_address(channels)
    fields.kind = (SIGNED, UNSIGNED, FLOAT).index(made.dtype.kind)
    for index in range(4):
        fields.bits[index] = 8 * made.dtype.itemsize if index < made.channels else 0


@entry("cudaArrayGetInfo")
def array_info(channels: int, extent: int, flags: int, array: int) -> None:
    """Writes how an array was made; pointers to what the caller does not want are null."""
    made = state.handles.get(array, CudaArray)
    if channels:
        channels_of(channels, array)
    if extent:
        fields = Extent.from_address(extent)
        fields.width, fields.height, fields.depth = made.width, made.height, made.depth
    if flags:
        put_int(flags, made.flags)


# ---- boxes ---------------------------------------------------------------------------------------


@entry("cudaMalloc3D")
def malloc_3d(pitched: int, extent: int) -> None:
    """Rows begin at multiples of the pitch, as with cudaMallocPitch."""
    if not pitched:
        raise DriverError(Result.INVALID_VALUE)
    wanted, fields = Extent.from_address(extent), Pitched.from_address(pitched)
    address, pitch = ctypes.c_uint64(), ctypes.c_uint64()
    places = ctypes.addressof(address), ctypes.addressof(pitch)
    memory.alloc_pitch(*places, wanted.width, wanted.height * wanted.depth, 4)
    fields.address, fields.pitch = address.value, pitch.value
    fields.width, fields.height = wanted.width, wanted.height


def _fill_box(pitched: int, value: int, extent: int) -> None:
    at, box = Pitched.from_address(pitched), Extent.from_address(extent)
    for z in range(box.depth):
        start = (at.address or 0) + z * at.pitch * at.height
        memory.fill_rows(start, at.pitch, value, box.width, box.height, 1)


entry("cudaMemset3D")(_fill_box)


@entry("cudaMemset3DAsync")
def fill_box_in(pitched: int, value: int, extent: int, stream: int) -> None:
    """Fills a box; the caller's structures are copied for a graph that captures the stream."""
    at, box = (
        kind.from_buffer_copy(ctypes.string_at(place, ctypes.sizeof(kind)))
        for kind, place in ((Pitched, pitched), (Extent, extent))
    )
    places = ctypes.addressof(at), value, ctypes.addressof(box)
    stream_of(stream)
    capture, task = capture_of(stream), Task(Kind.MEMSET, partial(_fill_box, *places), (at, box))
    if capture is None:
        do_in_order(stream, task)
    else:
        capture.add(stream, task)


@queued(entry, Kind.MEMCPY, "cudaMemcpy3DAsync", description=BoxCopy)
@entry("cudaMemcpy3D")
def copy_box(parameters: int) -> None:
    """Copies a box; with an array, widths and positions along rows are in its texels, not in
    bytes."""
    if not parameters:
        raise DriverError(Result.INVALID_VALUE)
    made = driver_copy(BoxCopy.from_address(parameters))
    boxes(ctypes.addressof(made))


def driver_copy(given: BoxCopy) -> Copy3D:
    """Returns a copy in the driver's terms."""
    if given.kind not in KINDS:
        raise DriverError(Result.INVALID_MEMCPY_DIRECTION)
    texel = 0
    made = Copy3D(height=given.extent.height, depth=given.extent.depth)
    for end, kind in zip(("src", "dst"), ENDS[given.kind], strict=True):
        array: int = getattr(given, f"{end}_array")
        at: Extent = getattr(given, f"{end}_at")
        plain: Pitched = getattr(given, end)
        width = 1
        if array:
            found = state.handles.get(array, CudaArray)
            width = texel = found.dtype.itemsize * found.channels
        fields = {
            "x": at.width * width,
            "y": at.height,
            "z": at.depth,
            "type": ARRAY if array else kind,
            "array": array,
            "host": plain.address,
            "device": plain.address or 0,
            "pitch": plain.pitch,
            "height": plain.height,
        }
        for name, value in fields.items():
            setattr(made, f"{end}_{name}", value)
    made.width = given.extent.width * (texel or 1)
    return made
