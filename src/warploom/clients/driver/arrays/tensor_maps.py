"""Tensor maps: `cuTensorMapEncodeTiled`, `cuTensorMapEncodeIm2col` and their kin."""

from __future__ import annotations

import ctypes
from typing import Any

from warploom.asynchronous.records import MapWords
from warploom.asynchronous.tensors import maps
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.table import entry
from warploom.core.errors import WarploomError
from warploom.host.textures.tensor_map import (
    INTERLEAVES,
    SWIZZLES,
    Tensor,
    TensorMap,
    encode_im2col,
    encode_tiled,
)

TYPES = (
    *("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32.ftz"),
    *("tf32", "tf32.ftz", "b4x16", "b4x16_p64", "b6x16_p32"),
)
"""Element types by their numbers in CUtensorMapDataType."""

WIDE_MODES = (maps.IM2COL_W, maps.IM2COL_W128)


def _numbers(address: int, count: int, type: Any) -> tuple[int, ...]:
    """Returns the numbers of a C array. Raises DriverError where there is none."""
    if count and not address:
        raise DriverError(Result.INVALID_VALUE)
    return tuple((type * count).from_address(address)) if count else ()


def _tensor(
    type: int, rank: int, address: int, dims: int, strides: int, steps: int,
    interleave: int, swizzle: int, fill: int,
) -> Tensor:  # fmt: skip
    """Returns the tensor that arguments describe."""
    if not 1 <= rank <= maps.MOST_RANK:
        raise DriverError(
            Result.INVALID_VALUE, f"tensor map: the rank must be from 1 to 5, not {rank}"
        )
    try:
        names = (TYPES[type], tuple(INTERLEAVES)[interleave], tuple(SWIZZLES)[swizzle])
        filling = ("zeros", "nans")[fill]
    except IndexError:
        raise DriverError(Result.INVALID_VALUE) from None
    steps_given = _numbers(steps, rank, ctypes.c_uint32)
    if interleave == maps.NO_INTERLEAVE:
        steps_given = (1, *steps_given[1:])
    return Tensor(
        names[0],
        address,
        _numbers(dims, rank, ctypes.c_uint64),
        _numbers(strides, rank - 1, ctypes.c_uint64),
        steps_given,
        names[1],
        names[2],
        filling,
    )


def _write(target: int, made: TensorMap) -> None:
    """Copies a map to the host. cuda.h wants an address that 64 divides, which cuda.bindings does
    not always give; it matters where a kernel gets the map."""
    if not target:
        raise DriverError(Result.INVALID_VALUE)
    ctypes.memmove(target, bytes(made), maps.MAP_BYTES)


@entry("cuTensorMapEncodeTiled")
def encode_tiled_map(
    target: int, type: int, rank: int, address: int, dims: int, strides: int, box: int,
    steps: int, interleave: int, swizzle: int, _promotion: int, fill: int,
) -> None:  # fmt: skip
    tensor = _tensor(type, rank, address, dims, strides, steps, interleave, swizzle, fill)
    try:
        _write(target, encode_tiled(tensor, _numbers(box, rank, ctypes.c_uint32)))
    except WarploomError as error:
        raise DriverError(Result.INVALID_VALUE, str(error)) from None


@entry("cuTensorMapEncodeIm2col")
def encode_im2col_map(
    target: int, type: int, rank: int, address: int, dims: int, strides: int, lower: int,
    upper: int, channels: int, pixels: int, steps: int, interleave: int, swizzle: int,
    _promotion: int, fill: int,
) -> None:  # fmt: skip
    tensor = _tensor(type, rank, address, dims, strides, steps, interleave, swizzle, fill)
    corners = [_numbers(at, max(rank - 2, 0), ctypes.c_int32) for at in (lower, upper)]
    try:
        _write(target, encode_im2col(tensor, corners[0], corners[1], channels, pixels))
    except WarploomError as error:
        raise DriverError(Result.INVALID_VALUE, str(error)) from None


@entry("cuTensorMapEncodeIm2colWide")
def encode_wide_map(
    target: int, type: int, rank: int, address: int, dims: int, strides: int, lower: int,
    upper: int, channels: int, pixels: int, steps: int, interleave: int, mode: int, swizzle: int,
    _promotion: int, fill: int,
) -> None:  # fmt: skip
    tensor = _tensor(type, rank, address, dims, strides, steps, interleave, swizzle, fill)
    corners = [ctypes.c_int32(corner).value for corner in (lower, upper)]
    if mode not in range(len(WIDE_MODES)):
        raise DriverError(Result.INVALID_VALUE)
    try:
        made = encode_im2col(tensor, corners[:1], corners[1:], channels, pixels, WIDE_MODES[mode])
        _write(target, made)
    except WarploomError as error:
        raise DriverError(Result.INVALID_VALUE, str(error)) from None


@entry("cuTensorMapReplaceAddress")
def replace_address(target: int, address: int) -> None:
    if not target or address % 16:
        raise DriverError(Result.INVALID_VALUE)
    words = (ctypes.c_int64 * MapWords.WORDS).from_address(target)
    MapWords(words, 0).address = address
