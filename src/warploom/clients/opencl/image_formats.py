"""Formats of images: the channels of a pixel, their type, and colors as bytes."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.clients.opencl.contexts import ClContext
from warploom.clients.opencl.errors import Status, demand
from warploom.clients.opencl.info import put_uint
from warploom.clients.opencl.memory import (
    BUFFER,
    FLAGS,
    IMAGE_1D_BUFFER,
    IMAGE_2D,
    IMAGE_2D_ARRAY,
    READ_AND_WRITE,
    READ_ONLY,
)
from warploom.clients.opencl.objects import get
from warploom.clients.opencl.table import entry
from warploom.texture.descriptors import (
    NORMALIZED_TEXELS,
    SELECT_ONE,
    SELECT_ZERO,
    SRGB,
    Selects,
)

Floats = npt.NDArray[np.float32]

R, A, RG, RA, RGB, RGBA, BGRA, ARGB, INTENSITY, LUMINANCE = range(0x10B0, 0x10BA)
DEPTH, SRGBA = 0x10BD, 0x10C1

COMPONENTS = {
    R: (0,),
    A: (3,),
    RG: (0, 1),
    RA: (0, 3),
    RGBA: (0, 1, 2, 3),
    BGRA: (2, 1, 0, 3),
    ARGB: (3, 0, 1, 2),
    INTENSITY: (0,),
    LUMINANCE: (0,),
    DEPTH: (0,),
    SRGBA: (0, 1, 2, 3),
}
"""Which components of a color a pixel holds, by the order of its channels."""

SNORM_8, SNORM_16, UNORM_8, UNORM_16 = range(0x10D0, 0x10D4)
SIGNED_8, SIGNED_16, SIGNED_32, UNSIGNED_8, UNSIGNED_16, UNSIGNED_32, HALF, FLOAT = range(
    0x10D7, 0x10DF
)
PACKED = (0x10D4, 0x10D5, 0x10D6, 0x10E0)
"""Three or four channels in one number."""

TYPES = {
    SNORM_8: "i1",
    SNORM_16: "i2",
    UNORM_8: "u1",
    UNORM_16: "u2",
    SIGNED_8: "i1",
    SIGNED_16: "i2",
    SIGNED_32: "i4",
    UNSIGNED_8: "u1",
    UNSIGNED_16: "u2",
    UNSIGNED_32: "u4",
    HALF: "f2",
    FLOAT: "f4",
}
NORMALIZED = {SNORM_8: 127, SNORM_16: 32767, UNORM_8: 255, UNORM_16: 65535}
NUMBERS = (*NORMALIZED, HALF, FLOAT)

SUPPORTED = tuple(
    (order, type)
    for orders, types in (
        ((R, A, RG, RA, RGBA), tuple(TYPES)),
        ((INTENSITY, LUMINANCE), NUMBERS),
        ((BGRA,), (SNORM_8, UNORM_8, SIGNED_8, UNSIGNED_8)),
        ((DEPTH,), (UNORM_16, FLOAT)),
        ((SRGBA,), (UNORM_8,)),
    )
    for order in orders
    for type in types
)
FLAT = (IMAGE_2D, IMAGE_2D_ARRAY)
"""The kinds of images that have depths as pixels."""


def formats_of(type: int, flags: int) -> tuple[tuple[int, int], ...]:
    """Returns the formats of a kind of images that kernels use as flags say: none for both at once
    (CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS), and sRGB only to be read."""
    if flags & READ_AND_WRITE:
        return ()
    excluded = {*(() if type in FLAT else (DEPTH,)), *(() if flags & READ_ONLY else (SRGBA,))}
    return tuple(one for one in SUPPORTED if one[0] not in excluded)


@dataclass(frozen=True)
class ImageFormat:
    """The order and the type of the channels of a pixel."""

    order: int
    type: int

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Returns the type of a channel as it is stored."""
        return np.dtype(TYPES[self.type])

    @property
    def channels(self) -> int:
        """Returns how many channels a pixel has."""
        return len(COMPONENTS[self.order])

    @property
    def pixel_bytes(self) -> int:
        """Returns the bytes of a pixel."""
        return self.channels * self.dtype.itemsize

    @property
    def texels(self) -> str:
        """Returns the format of a channel as the texture unit names it."""
        dtype = self.dtype
        return f"{dtype.kind.replace('i', 's')}{8 * dtype.itemsize}"

    @property
    def as_float(self) -> int:
        """Returns how the texture unit reads integers."""
        if self.order == SRGBA:
            return SRGB
        return NORMALIZED_TEXELS if self.type in NORMALIZED else 0

    @property
    def selects(self) -> Selects:
        """Returns which channel each component of a color is read from (OpenCL C 3.0, 6.15.15.7):
        those that a pixel does not hold are 0, but 1 is the last of an order without it."""
        if self.order == INTENSITY:
            return (0, 0, 0, 0)
        if self.order == LUMINANCE:
            return (0, 0, 0, SELECT_ONE)
        held = COMPONENTS[self.order]
        x, y, z = (held.index(n) if n in held else SELECT_ZERO for n in range(3))
        return x, y, z, held.index(3) if 3 in held else SELECT_ONE

    @property
    def words(self) -> bytes:
        """Returns the structure of the header."""
        return struct.pack("<2I", self.order, self.type)

    def pixel(self, color: int) -> bytes:
        """Returns a pixel of the color at an address: four numbers of 32 bits, each a float where
        the channels are normalized or floats, rounded to the nearest."""
        is_number = self.type in NUMBERS
        kind = np.float32 if is_number else np.int32
        given = np.frombuffer(ctypes.string_at(color, 4 if self.order == DEPTH else 16), kind)
        if self.order == SRGBA:
            given = np.append(_encoded(given[:3].astype(np.float32)), given[3:])
        chosen = given[list(COMPONENTS[self.order])]
        if self.type in NORMALIZED:
            scale, least = NORMALIZED[self.type], 0 if self.type in (UNORM_8, UNORM_16) else -1
            chosen = np.rint(np.clip(np.nan_to_num(chosen), least, 1).astype(np.float64) * scale)
        elif not is_number:
            limits = np.iinfo(self.dtype.name)
            wide = chosen.view(np.uint32) if self.dtype.kind == "u" else chosen
            chosen = np.clip(wide.astype(np.int64), limits.min, limits.max)
        return chosen.astype(self.dtype).tobytes()


def _encoded(linear: Floats) -> Floats:
    """Returns components of a color in sRGB."""
    within = np.clip(np.nan_to_num(linear), 0, 1).astype(np.float64)
    curved = 1.055 * within ** (1 / 2.4) - 0.055
    return np.where(within <= 0.0031308, 12.92 * within, curved).astype(np.float32)


def format_at(address: int) -> ImageFormat:
    """Returns the format that a structure of the header describes: INVALID_IMAGE_FORMAT_DESCRIPTOR
    for what is none, IMAGE_FORMAT_NOT_SUPPORTED for one that is not there."""
    invalid = Status.INVALID_IMAGE_FORMAT_DESCRIPTOR
    demand(address, invalid, "the pointer to the image format is null")
    order, type = struct.unpack("<2I", ctypes.string_at(address, 8))
    known = 0x10B0 <= order <= 0x10C3 and 0x10D0 <= type <= 0x10E0
    demand(
        known,
        invalid,
        f"the channel order {order:#x} or the channel data type {type:#x} is unknown",
    )
    fits = order not in (INTENSITY, LUMINANCE) or type in NUMBERS
    fits = fits and (order not in (RGB, 0x10BC) or type in PACKED)
    fits = fits and (type not in PACKED or order in (RGB, 0x10BC, RGBA))
    narrow = (SNORM_8, UNORM_8, SIGNED_8, UNSIGNED_8)
    fits = fits and (order not in (BGRA, ARGB, 0x10C3) or type in narrow)
    fits = fits and (order != DEPTH or type in (UNORM_16, FLOAT))
    demand(fits, invalid, f"channel order {order:#x} cannot have channel data type {type:#x}")
    there = (order, type) in SUPPORTED
    demand(
        there,
        Status.IMAGE_FORMAT_NOT_SUPPORTED,
        f"channel order {order:#x} with channel data type {type:#x} is not supported",
    )
    return ImageFormat(order, type)


@entry("clGetSupportedImageFormats")
def supported(context: int, flags: int, type: int, capacity: int, target: int, number: int) -> None:
    """Lists the formats of a kind of images."""
    get(context, ClContext)
    demand(
        not flags & ~(FLAGS | READ_AND_WRITE),
        Status.INVALID_VALUE,
        f"invalid memory flags: {flags:#x}",
    )
    is_image = BUFFER < type <= IMAGE_1D_BUFFER
    demand(is_image, Status.INVALID_VALUE, f"{type:#x} is not an image type")
    demand(
        capacity or not target,
        Status.INVALID_VALUE,
        "num_entries is 0, but image_formats is not null",
    )
    found = formats_of(type, flags)
    if target:
        data = b"".join(ImageFormat(*one).words for one in found[:capacity])
        ctypes.memmove(target, data, len(data))
    if number:
        put_uint(number, len(found))
