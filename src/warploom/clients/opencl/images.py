"""Images: pixels in device memory, row by row, and what kernels see of them."""

from __future__ import annotations

import ctypes
from functools import partial

from warploom.clients.driver.copies import Box, copy_rows
from warploom.clients.driver.state import state
from warploom.clients.opencl.buffers import Buffer
from warploom.clients.opencl.contexts import ClContext
from warploom.clients.opencl.errors import Status, demand
from warploom.clients.opencl.image_formats import ImageFormat, format_at, formats_of
from warploom.clients.opencl.info import Answers, answer, uint, word
from warploom.clients.opencl.memory import (
    COPY_HOST,
    IMAGE_1D,
    IMAGE_1D_ARRAY,
    IMAGE_1D_BUFFER,
    IMAGE_2D,
    IMAGE_2D_ARRAY,
    IMAGE_3D,
    KERNEL_ACCESS,
    USE_HOST,
    MemObject,
    check_flags,
    property_list,
)
from warploom.clients.opencl.objects import get
from warploom.clients.opencl.table import entry
from warploom.core.lazy import cached_property
from warploom.machine.memory.textures import TextureDescription
from warploom.texture.descriptors import SURFACE, TEXTURE

WIDE, HIGH, DEEP, LAYERS, IN_BUFFER = 16384, 32768, 16384, 2048, 1 << 28
"""The limits of `devices`."""

DIMENSIONS = {
    IMAGE_1D: 1,
    IMAGE_1D_BUFFER: 1,
    IMAGE_1D_ARRAY: 2,
    IMAGE_2D: 2,
    IMAGE_2D_ARRAY: 3,
    IMAGE_3D: 3,
}
"""Axes that an origin and a region have, that of an array among them."""

ARRAYS = (IMAGE_1D_ARRAY, IMAGE_2D_ARRAY)

GEOMETRIES = {
    IMAGE_1D: "1d",
    IMAGE_1D_BUFFER: "1d",
    IMAGE_1D_ARRAY: "a1d",
    IMAGE_2D: "2d",
    IMAGE_2D_ARRAY: "a2d",
    IMAGE_3D: "3d",
}


class Descriptor(ctypes.Structure):
    """cl_image_desc."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("depth", ctypes.c_size_t),
        ("layers", ctypes.c_size_t),
        ("row", ctypes.c_size_t),
        ("slice", ctypes.c_size_t),
        ("levels", ctypes.c_uint32),
        ("samples", ctypes.c_uint32),
        ("source", ctypes.c_uint64),
    )


class Image(MemObject):
    """An image; rows and slices are close to each other, but in a buffer as that says."""

    what = "image"

    def __init__(
        self,
        context: ClContext,
        flags: int,
        format: ImageFormat,
        d: Descriptor,
        host: int,
        properties: tuple[int, ...] | None = None,
    ) -> None:
        self.type, self.format = d.type, format
        sizes = (d.width, d.layers if d.type == IMAGE_1D_ARRAY else d.height)
        deep = d.layers if d.type == IMAGE_2D_ARRAY else d.depth
        x, y, z = (*sizes, deep)[: DIMENSIONS[d.type]] + (1,) * (3 - DIMENSIONS[d.type])
        self.sizes = x, y, z
        self.source = get(d.source, Buffer) if d.source else None
        in_rows = self.source is not None and d.type == IMAGE_2D and d.row
        self.row = d.row if in_rows else x * format.pixel_bytes
        self.slice = self.row * y
        close = d.row or x * format.pixel_bytes
        by_slice = self.type in (IMAGE_3D, IMAGE_2D_ARRAY, IMAGE_1D_ARRAY)
        self.host_row = close
        self.host_slice = (d.slice or close * (1 if d.type == IMAGE_1D_ARRAY else y)) * by_slice
        address = self.source.address if self.source else 0
        size = self.slice * z
        super().__init__(context, flags, size, host, properties, address=address)
        if self.source is not None:
            self.source.hold()
        if flags & (USE_HOST | COPY_HOST) and host:
            copy_rows(self.host_box((0, 0, 0)), self.box((0, 0, 0)), self.bytes_of(self.sizes))

    @property
    def layers(self) -> int:
        """Returns the images of an array; 0 for what is none."""
        return {IMAGE_1D_ARRAY: self.sizes[1], IMAGE_2D_ARRAY: self.sizes[2]}.get(self.type, 0)

    @property
    def height(self) -> int:
        """Returns the rows; 0 for an image of one dimension."""
        return self.sizes[1] if self.type in (IMAGE_2D, IMAGE_2D_ARRAY, IMAGE_3D) else 0

    @property
    def depth(self) -> int:
        """Returns the slices; 0 for what has no third dimension."""
        return self.sizes[2] if self.type == IMAGE_3D else 0

    def bytes_of(self, region: tuple[int, int, int]) -> tuple[int, int, int]:
        """Returns the sizes of a region, along x in bytes."""
        return region[0] * self.format.pixel_bytes, region[1], region[2]

    def box(self, origin: tuple[int, int, int]) -> Box:
        """Returns where a region of the image begins, and its steps."""
        x, y, z = origin
        start = self.address + z * self.slice + y * self.row + x * self.format.pixel_bytes
        return Box(start, self.row, self.slice)

    def host_box(self, origin: tuple[int, int, int]) -> Box:
        """Returns the same in the memory of the program that the image was made from."""
        x, y, z = origin
        # The images of an array of one dimension lie a slice disjoint.
        row = self.host_slice if self.type == IMAGE_1D_ARRAY else self.host_row
        start = self.host + z * self.host_slice + y * row + x * self.format.pixel_bytes
        return Box(start, row, self.host_slice)

    @cached_property
    def texture(self) -> int:
        """Returns the handle by which kernels read it."""
        return self._handle_of(TEXTURE)

    @cached_property
    def surface(self) -> int:
        """Returns the handle by which kernels write it."""
        return self._handle_of(SURFACE)

    def _handle_of(self, kind: int) -> int:
        format = self.format
        described = TextureDescription(
            kind,
            GEOMETRIES[self.type],
            format.texels,
            format.channels,
            (self.sizes[0], max(self.height, 1), max(self.depth, 1)),
            (self.address,),
            max(self.layers, 1),
            format.as_float,
            selects=format.selects,
            order=format.order,
        )
        return state.device.memory.textures.add(described)

    def end(self) -> None:
        for kind in ("texture", "surface"):
            if kind in self.__dict__:
                remove = state.device.memory.textures.remove
                state.when_idle(partial(remove, self.__dict__[kind]))
        if self.source is not None:
            self.source.drop()
        super().end()


@entry("clCreateImage")
def create(context: int, flags: int, format: int, description: int, host: int) -> int:
    return _create(context, None, flags, format, description, host)


@entry("clCreateImageWithProperties")
def create_with(
    context: int, properties: int, flags: int, format: int, description: int, host: int
) -> int:
    return _create(context, property_list(properties), flags, format, description, host)


def _create(
    context: int,
    properties: tuple[int, ...] | None,
    flags: int,
    format: int,
    description: int,
    host: int,
) -> int:
    at = get(context, ClContext)
    given = format_at(format)
    demand(
        description, Status.INVALID_IMAGE_DESCRIPTOR, "the pointer to the image descriptor is null"
    )
    d = Descriptor.from_buffer_copy(ctypes.string_at(description, ctypes.sizeof(Descriptor)))
    if d.source:
        whole = get(d.source, Buffer, Status.INVALID_IMAGE_DESCRIPTOR)
        why = (
            "the device does not support 2D images created from buffers (its pitch alignment is 0)"
        )
        demand(d.type != IMAGE_2D, Status.INVALID_OPERATION, why)
        if not flags & KERNEL_ACCESS:
            flags |= whole.flags & KERNEL_ACCESS
        demand(
            not host,
            Status.INVALID_HOST_PTR,
            "host_ptr must be null for an image created from a buffer",
        )
        flags = check_flags(flags, 0)
    else:
        flags = check_flags(flags, host)
    _check(d, given, host)
    _check_format(given, d.type, flags)
    return Image(at, flags, given, d, host, properties).handle


def _check_format(format: ImageFormat, type: int, flags: int) -> None:
    """Checks that images of a kind have a format: IMAGE_FORMAT_NOT_SUPPORTED."""
    there = (format.order, format.type) in formats_of(type, flags)
    why = (
        f"images of this type with these flags do not support channel order {format.order:#x} with "
        f"channel data type {format.type:#x}"
    )
    demand(there, Status.IMAGE_FORMAT_NOT_SUPPORTED, why)


def _check(d: Descriptor, format: ImageFormat, host: int) -> None:
    """Checks a description: INVALID_IMAGE_DESCRIPTOR, or INVALID_IMAGE_SIZE for its sizes."""
    invalid = Status.INVALID_IMAGE_DESCRIPTOR
    demand(d.type in DIMENSIONS, invalid, f"{d.type:#x} is not an image type")
    demand(not (d.levels or d.samples), invalid, "num_mip_levels and num_samples must be 0")
    from_buffer = d.type in (IMAGE_1D_BUFFER, IMAGE_2D)
    demand(
        not d.source or from_buffer,
        invalid,
        "only 1D buffer images and 2D images can be created from a buffer",
    )
    demand(d.source or d.type != IMAGE_1D_BUFFER, invalid, "a 1D buffer image needs a buffer")
    demand(
        host or d.source or not (d.row or d.slice),
        invalid,
        "pitches must be 0 if host_ptr is null",
    )
    most = {IMAGE_1D_BUFFER: (IN_BUFFER, 1, 1), IMAGE_3D: (DEEP, DEEP, DEEP)}
    limits = most.get(d.type, (WIDE, HIGH, DEEP))
    flat = d.type in (IMAGE_1D, IMAGE_1D_ARRAY, IMAGE_1D_BUFFER)
    sizes = (d.width, 1 if flat else d.height, d.depth if d.type == IMAGE_3D else 1)
    fits = all(0 < size <= limit for size, limit in zip(sizes, limits, strict=True))
    fits = fits and (d.type not in ARRAYS or 0 < d.layers <= LAYERS)
    demand(
        fits,
        Status.INVALID_IMAGE_SIZE,
        f"the image size {sizes} is empty or exceeds the maximum of {limits}",
    )
    close = d.width * format.pixel_bytes
    valid = not d.row or (d.row >= close and d.row % format.pixel_bytes == 0)
    demand(
        valid,
        invalid,
        f"the row pitch of {d.row} is not a multiple of the pixel size, or is less than {close}",
    )
    rows = 1 if d.type == IMAGE_1D_ARRAY else sizes[1]
    wanted = (d.row or close) * rows
    sliced = not d.slice or (d.slice >= wanted and d.slice % (d.row or close) == 0)
    demand(
        sliced or d.type in (IMAGE_1D, IMAGE_2D),
        invalid,
        "the slice pitch is too small, or not a multiple of the row pitch",
    )
    if d.source:
        size = (d.row or close) * sizes[1]
        enough = size <= get(d.source, Buffer).size
        demand(enough, Status.INVALID_IMAGE_SIZE, "the image is larger than its buffer")


@entry("clCreateImage2D")
def create_2d(
    context: int, flags: int, format: int, width: int, height: int, row: int, host: int
) -> int:
    d = Descriptor(type=IMAGE_2D, width=width, height=height, row=row)
    return _old(context, flags, format, d, host)


@entry("clCreateImage3D")
def create_3d(
    context: int,
    flags: int,
    format: int,
    width: int,
    height: int,
    depth: int,
    row: int,
    slice: int,
    host: int,
) -> int:
    d = Descriptor(type=IMAGE_3D, width=width, height=height, depth=depth, row=row, slice=slice)
    demand(depth > 1, Status.INVALID_IMAGE_SIZE, "a 3D image must have a depth of at least 2")
    return _old(context, flags, format, d, host)


def _old(context: int, flags: int, format: int, d: Descriptor, host: int) -> int:
    """Makes an image as OpenCL 1.1 did, where a wrong pitch is a wrong size."""
    at = get(context, ClContext)
    given = format_at(format)
    flags = check_flags(flags, host)
    valid = host or not (d.row or d.slice)
    demand(valid, Status.INVALID_IMAGE_SIZE, "pitches must be 0 if host_ptr is null")
    _check(d, given, host)
    _check_format(given, d.type, flags)
    return Image(at, flags, given, d, host).handle


ANSWERS: Answers[Image] = {
    0x1110: lambda i: i.format.words,
    0x1111: lambda i: word(i.format.pixel_bytes),
    0x1112: lambda i: word(i.host_row if i.uses_host else i.row),
    0x1113: lambda i: word(_slice_pitch(i)),
    0x1114: lambda i: word(i.sizes[0]),
    0x1115: lambda i: word(i.height),
    0x1116: lambda i: word(i.depth),
    0x1117: lambda i: word(i.layers),
    0x1118: lambda i: word(i.source.handle if i.source else 0),
    0x1119: lambda i: uint(0),
    0x111A: lambda i: uint(0),
}


def _slice_pitch(image: Image) -> int:
    if image.uses_host:
        return image.host_slice
    if image.type == IMAGE_1D_ARRAY:
        return image.row
    return image.slice if image.type in (IMAGE_3D, IMAGE_2D_ARRAY) else 0


@entry("clGetImageInfo")
def image_info(handle: int, question: int, capacity: int, target: int, size: int) -> None:
    answer(ANSWERS, get(handle, Image), question, capacity, target, size)
