"""Encodes tensor maps, which describe a tensor in global memory to copies of the Tensor Memory
Accelerator.

The rules are those of `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` (cuda.h).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.asynchronous.records import MapWords
from warploom.asynchronous.tensors import maps, packed
from warploom.core.errors import WarploomError
from warploom.host.buffer import Buffer
from warploom.machine.memory.device_memory import DeviceMemory

INTERLEAVES = {"none": maps.NO_INTERLEAVE, "16B": maps.INTERLEAVE_16B, "32B": maps.INTERLEAVE_32B}

SWIZZLES = {
    "none": (maps.NO_SWIZZLE, maps.ATOM_16B),
    "32B": (maps.SWIZZLE_32B, maps.ATOM_16B),
    "64B": (maps.SWIZZLE_64B, maps.ATOM_16B),
    "128B": (maps.SWIZZLE_128B, maps.ATOM_16B),
    "128B_atom_32B": (maps.SWIZZLE_128B, maps.ATOM_32B),
    "128B_atom_32B_flip_8B": (maps.SWIZZLE_128B, maps.ATOM_32B_FLIP_8B),
    "128B_atom_64B": (maps.SWIZZLE_128B, maps.ATOM_64B),
}
"""Swizzles by name, in the order of CUtensorMapSwizzle: mode and atomicity."""

FILLS = {"zeros": maps.FILL_ZEROS, "nans": maps.FILL_NANS}

FLOATS = ("f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz")
PACKED = maps.ELEMENT_TYPES[maps.FIRST_PACKED :]

_OF_NUMPY = {
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "int8": "u8",
    "int16": "u16",
    "int32": "s32",
    "int64": "s64",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "float8_e4m3fn": "u8",
    "float8_e5m2": "u8",
}
"""Element types by the names of NumPy's."""

LARGEST_STRIDE, LARGEST_DIM, LARGEST_BOX, LARGEST_STEP = 1 << 40, 1 << 32, 256, 8
MOST_CHANNELS, MOST_PIXELS = 256, 1024
SWIZZLED_BYTES = {maps.SWIZZLE_32B: 32, maps.SWIZZLE_64B: 64, maps.SWIZZLE_128B: 128}
NOT_ALONG_W = ("none", "128B_atom_32B_flip_8B")
"""Swizzles that columns along W alone do not have (PTX ISA, "im2col::w and im2col::w::128
modes")."""

CORNERS = {3: (-(1 << 15), (1 << 15) - 1), 4: (-128, 127), 5: (-16, 15)}
"""The least and the greatest corner of a bounding box of im2col, by rank."""


@dataclass(frozen=True)
class Tensor:
    """A tensor in global memory; axes begin with the innermost, as in cuda.h.

    `strides` in bytes are those of all axes but the innermost.
    """

    type: str
    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: str = "none"
    swizzle: str = "none"
    fill: str = "zeros"

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def type_number(self) -> int:
        """Returns the number of the element type in a map."""
        return maps.ELEMENT_TYPES.index(self.type)

    def check(self) -> None:
        """Raises WarploomError where the tensor breaks a rule."""
        least = 1 if self.interleave == "none" else 3
        _demand(
            least <= self.rank <= maps.MOST_RANK,
            f"the rank must be from {least} to 5, not {self.rank}",
        )
        lengths = (len(self.strides) + 1, len(self.element_strides))
        _demand(
            lengths == (self.rank, self.rank),
            "the numbers of strides and element strides do not match the rank",
        )
        unit = 32 if self.interleave == "32B" or packed.is_padded(self.type_number) else 16
        _demand(
            self.address % unit == 0,
            f"the address must be a multiple of {unit}, not {self.address:#x}",
        )
        for size in self.dims:
            _demand(1 <= size <= LARGEST_DIM, f"each dimension must be from 1 to 2^32, not {size}")
        for stride in self.strides:
            fits = stride % unit == 0 and 0 <= stride < LARGEST_STRIDE
            _demand(
                fits,
                f"each stride must be a multiple of {unit} bytes and less than 2^40 bytes, not "
                f"{stride}",
            )
        for step in self.element_strides:
            _demand(
                1 <= step <= LARGEST_STEP, f"each element stride must be from 1 to 8, not {step}"
            )
        swizzle = self.interleave != "32B" or self.swizzle == "32B"
        _demand(swizzle, "with an interleave of 32 bytes, the swizzle must be 32B")
        numbers = self.fill == "zeros" or self.type in FLOATS
        _demand(numbers, f"out-of-bounds elements of type {self.type} cannot be filled with NaNs")
        if self.type in PACKED:
            self._check_packed()

    def _check_packed(self) -> None:
        """Raises WarploomError where a tensor of packed elements breaks a rule of these."""
        unit = packed.size_unit(self.type_number)
        _demand(
            self.dims[0] % unit == 0,
            f"the innermost dimension must be a multiple of {unit}, not {self.dims[0]}",
        )
        fits = packed.fits_swizzle(self.type_number, *SWIZZLES[self.swizzle], stores=True)
        _demand(fits, f"{self.type} does not support swizzle {self.swizzle}")
        fits = self.interleave == "none" or self.type_number != packed.B6X16_P32
        _demand(fits, f"{self.type} does not support interleaving")

    def check_row(self, elements: int) -> None:
        """Raises WarploomError where a row of the box, of so many elements, breaks a rule."""
        size = packed.global_size(self.type_number, elements)
        mode, _ = SWIZZLES[self.swizzle]
        if self.type in PACKED:
            unit = "128" if packed.is_padded(self.type_number) else "a multiple of 32"
            fits = packed.fits_row(self.type_number, elements)
            _demand(
                fits,
                f"the innermost dimension of the box has {elements} elements of {self.type}, but "
                f"must have {unit} elements",
            )
        if self.interleave == "none":
            _demand(
                size % 16 == 0,
                f"the innermost dimension of the box has {size} bytes, but its size must be a "
                "multiple of 16 bytes",
            )
            if mode != maps.NO_SWIZZLE:
                most = SWIZZLED_BYTES[mode]
                message = (
                    f"the innermost dimension of the box has {size} bytes, but at most {most} "
                    f"are allowed with swizzle {self.swizzle}"
                )
                _demand(size <= most, message)

    def words(self, mode: int) -> MapWords:
        """Returns the words that all modes have in common."""
        words = MapWords(np.zeros(MapWords.WORDS, np.int64), 0)
        swizzle, atomicity = SWIZZLES[self.swizzle]
        maps.begin_map(words, mode)
        fields = {
            maps.RANK: self.rank - 1,
            maps.ELEMTYPE: self.type_number,
            maps.INTERLEAVE_LAYOUT: INTERLEAVES[self.interleave],
            maps.SWIZZLE_MODE: swizzle,
            maps.SWIZZLE_ATOMICITY: atomicity,
            maps.FILL_MODE: FILLS[self.fill],
        }
        for field, value in fields.items():
            maps.replace(words, field, 0, value)
        maps.replace(words, maps.GLOBAL_ADDRESS, 0, self.address)
        for axis, size in enumerate(self.dims):
            maps.replace(words, maps.GLOBAL_DIM, axis, size)
        for axis, size in enumerate(self.strides):
            maps.replace(words, maps.GLOBAL_STRIDE, axis, size)
        for axis, step in enumerate(self.element_strides):
            maps.replace(words, maps.ELEMENT_STRIDE, axis, step)
        return words


class TensorMap:
    """The 128 bytes that a kernel gets for a `CUtensorMap`, by value. It keeps `buffer`, whose
    memory it describes, from being freed before it."""

    def __init__(self, map: MapWords) -> None:
        self._data = map.words.tobytes()
        self.buffer: Buffer | None = None

    @property
    def memory(self) -> DeviceMemory | None:
        """Returns the memory that it describes; None where that is known by its address alone."""
        return None if self.buffer is None else self.buffer.memory

    def __bytes__(self) -> bytes:
        return self._data


def encode_tiled(tensor: Tensor, box: Sequence[int]) -> TensorMap:
    """Returns the map of boxes of a tensor. Raises WarploomError where a rule is broken."""
    tensor.check()
    _demand(
        len(box) == tensor.rank, f"the box has {len(box)} axes, but the tensor has {tensor.rank}"
    )
    for size in box:
        _demand(
            1 <= size <= LARGEST_BOX,
            f"the size of the box must be from 1 to 256 along each axis, not {size}",
        )
    tensor.check_row(box[0])
    words = tensor.words(maps.TILED)
    for axis, size in enumerate(box):
        maps.replace(words, maps.BOX_DIM, axis, size)
    return TensorMap(words)


def encode_im2col(
    tensor: Tensor,
    lower: Sequence[int],
    upper: Sequence[int],
    channels: int,
    pixels: int,
    mode: int = maps.IM2COL,
) -> TensorMap:
    """Returns the map of columns of pixels of a tensor (C, W, H, D, N from the innermost axis on);
    corners are those along W, then H, then D. Raises WarploomError where a rule is broken."""
    tensor.check()
    _demand(tensor.rank >= 3, f"im2col requires a rank from 3 to 5, not {tensor.rank}")
    if mode != maps.IM2COL:
        _demand(
            tensor.swizzle not in NOT_ALONG_W,
            f"the modes im2col::w and im2col::w::128 do not support swizzle {tensor.swizzle}",
        )
        _demand(
            tensor.interleave == "none",
            "the modes im2col::w and im2col::w::128 do not support interleaving",
        )
    wanted = tensor.rank - 2 if mode == maps.IM2COL else 1
    _demand(
        len(lower) == len(upper) == wanted,
        f"each corner of the bounding box must have {wanted} coordinates",
    )
    least, greatest = CORNERS[tensor.rank if mode == maps.IM2COL else 3]
    for corner in (*lower, *upper):
        _demand(
            least <= corner <= greatest,
            f"each coordinate of a corner must be from {least} to {greatest}, not {corner}",
        )
    sizes = tensor.dims[1:]
    for below, above, size in zip(lower, upper, sizes, strict=False):
        _demand(
            below <= size - 1 + above,
            f"the bounding box from {below} to {size - 1 + above} is empty",
        )
    _demand(
        1 <= channels <= MOST_CHANNELS,
        f"the number of channels per pixel must be from 1 to 256, not {channels}",
    )
    _demand(
        1 <= pixels <= MOST_PIXELS,
        f"the number of pixels per column must be from 1 to 1024, not {pixels}",
    )
    tensor.check_row(channels)
    words = tensor.words(mode)
    for axis, (below, above) in enumerate(zip(lower, upper, strict=True)):
        maps.set_part(words, MapWords.lower, 16 * axis, 16, below)
        maps.set_part(words, MapWords.upper, 16 * axis, 16, above)
    maps.set_part(words, MapWords.column, 0, 16, channels)
    maps.set_part(words, MapWords.column, 16, 16, pixels)
    return TensorMap(words)


def type_of(dtype: np.dtype[Any]) -> str:
    """Returns the element type for one of NumPy's. Raises WarploomError where there is none."""
    if dtype.name not in _OF_NUMPY:
        raise WarploomError(f"a tensor map does not support elements of type {dtype}")
    return _OF_NUMPY[dtype.name]


def _demand(holds: bool, message: str) -> None:
    if not holds:
        raise WarploomError(f"tensor map: {message} (cuda.h, cuTensorMapEncodeTiled and -Im2col)")
