"""Arrays of texels in device memory: how a host array becomes one, level by level.

What a kernel makes of them is for `host.textures.textures`. Source: CUDA C++ Programming Guide,
"Texture and Surface Memory".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.core.byte_order import in_device_order
from warploom.core.errors import WarploomError
from warploom.host.buffer import Array, Buffer
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.texture.descriptors import MOST_LEVELS

FORMATS = {np.dtype(name): format for name, format in (
    *(("u1", "u8"), ("i1", "s8"), ("u2", "u16"), ("i2", "s16")),
    *(("f2", "f16"), ("u4", "u32"), ("i4", "s32"), ("f4", "f32")),
)}  # fmt: skip


@dataclass(frozen=True)
class Texels:
    """An array of texels in device memory: its levels one after the other.

    `shape` is that of level 0, layers first, then slices, rows, columns, and where there are
    several, components. Whoever reads or writes it holds it. There is no buffer where the texels
    are in memory that others own.
    """

    buffer: Buffer | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    components: int
    layered: bool
    cube: bool
    levels: tuple[int, ...]

    @property
    def layers(self) -> int:
        return self.shape[0] if self.layered or self.cube else 1

    @property
    def extents(self) -> tuple[int, int, int]:
        """Width, height and depth in texels."""
        sizes = self.shape[1 if self.layered or self.cube else 0 :]
        sizes = sizes[:-1] if self.components > 1 else sizes
        width, height, depth = (*reversed(sizes), 1, 1)[:3]
        return width, height, depth

    @property
    def geometry(self) -> str:
        """Returns its name in PTX."""
        if self.cube:
            return "acube" if self.layered else "cube"
        lead = 1 if self.layered else 0
        dims = len(self.shape) - lead - (self.components > 1)
        return f"{'a' if self.layered else ''}{dims}d"


def store_texels(
    memory: DeviceMemory,
    array: npt.ArrayLike | Buffer,
    name: str,
    *,
    channels: int = 1,
    layers: bool = False,
    cube: bool = False,
    mipmaps: Sequence[npt.ArrayLike | Buffer] = (),
) -> Texels:
    """Copies an array or a buffer and its smaller levels; WarploomError for what is no texture."""
    given = (level.view if isinstance(level, Buffer) else level for level in (array, *mipmaps))
    levels = [in_device_order(np.ascontiguousarray(level)) for level in given]
    first = levels[0]
    _check_array(first, name, channels, layers=layers, cube=cube)
    lead, tail = int(layers or cube), int(channels > 1)
    sizes = first.shape[lead : first.ndim - tail]
    for number, level in enumerate(levels):
        wanted = tuple(max(1, n >> number) for n in sizes)
        shape = (*first.shape[:lead], *wanted, *first.shape[first.ndim - tail :])
        if level.shape != shape or level.dtype != first.dtype:
            raise WarploomError(
                f"level {number} of {name} has type {level.dtype} and shape {level.shape}, but "
                f"must have type {first.dtype} and shape {shape}, because all levels have the same "
                "type, and each is half the size of the previous one"
            )
    if len(levels) > MOST_LEVELS:
        raise WarploomError(
            f"{name} has {len(levels)} levels, but at most {MOST_LEVELS} are allowed"
        )
    data = np.concatenate([level.reshape(-1) for level in levels])
    buffer = Buffer(memory, (data.nbytes,), np.dtype(np.uint8), name)
    buffer.view[:] = data.view(np.uint8)
    starts = np.cumsum([0, *(level.nbytes for level in levels[:-1])])
    places = tuple(buffer.address + int(start) for start in starts)
    return Texels(buffer, first.shape, first.dtype, channels, layers, cube, places)


def _check_array(array: Array, name: str, channels: int, *, layers: bool, cube: bool) -> None:
    if array.dtype not in FORMATS:
        known = ", ".join(str(dtype) for dtype in FORMATS)
        raise WarploomError(f"{name}: texels of {array.dtype} are not supported; use {known}")
    if channels not in (1, 2, 4):
        raise WarploomError(f"{name}: a texel must have 1, 2 or 4 channels, not {channels}")
    if channels > 1 and array.shape[-1:] != (channels,):
        raise WarploomError(
            f"{name}: channels={channels} requires a last axis of length {channels}, but this "
            f"array has the shape {array.shape}"
        )
    dims = array.ndim - (channels > 1) - (layers or cube)
    most = 2 if layers or cube else 3
    if not 1 <= dims <= most or 0 in array.shape:
        raise WarploomError(
            f"{name}: an array of shape {array.shape} has {dims} spatial axes, but must have 1 "
            f"to {most}, each of nonzero size. If a texel has several channels (channels=), the "
            "last axis is the channel axis; if there are layers, the first axis is the layer axis"
        )
    faces = array.shape[0] if cube else 6
    square = not cube or (dims == 2 and array.shape[1] == array.shape[2])
    if not square or (faces % 6 if layers else faces != 6):
        raise WarploomError(
            f"{name}: a cube must have 6 square faces (with layers=True, a multiple of 6) along "
            f"the first axis; this array has the shape {array.shape}"
        )
