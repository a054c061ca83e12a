"""Textures and surfaces: arrays of texels in device memory, and how kernels see them.

What a fetch does is in `rules.texture`. Source: CUDA C++ Programming Guide, "Texture and Surface
Memory".
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.core.errors import WarploomError
from warploom.host.buffer import Array, Buffer
from warploom.machine.memory import DeviceMemory
from warploom.machine.textures import Description
from warploom.rules import descriptors as d

ADDRESS_MODES = {
    "wrap": d.WRAP,
    "mirror": d.MIRROR,
    "clamp": d.CLAMP,
    "border": d.BORDERED,
}
FORMATS = {np.dtype(name): format for name, format in (
    *(("u1", "u8"), ("i1", "s8"), ("u2", "u16"), ("i2", "s16")),
    *(("f2", "f16"), ("u4", "u32"), ("i4", "s32"), ("f4", "f32")),
)}  # fmt: skip
FILTERS = ("point", "linear")
READS = ("element", "normalized")


@dataclass(frozen=True)
class Texels:
    """An array of texels in device memory: its levels one after the other.

    `shape` is that of level 0, layers first, then slices, rows, columns, and where there are
    several, components. Whoever reads or writes it holds it.
    """

    buffer: Buffer
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
        """Its name in PTX."""
        if self.cube:
            return "acube" if self.layered else "cube"
        lead = 1 if self.layered else 0
        dims = len(self.shape) - lead - (self.components > 1)
        return f"{'a' if self.layered else ''}{dims}d"


class Handle:
    """A texture or a surface as kernels take it: a 64-bit number.

    It lives until `free()` is called or nobody holds it any more.
    """

    def __init__(self, memory: DeviceMemory, texels: Texels, made: Description, name: str) -> None:
        self.memory, self.texels, self.name = memory, texels, name
        self._handle = memory.textures.add(made)
        self._release = weakref.finalize(self, memory.textures.remove, self._handle)
        self._release.atexit = False

    @property
    def handle(self) -> int:
        """The number that a kernel gets; WarploomError after `free()`."""
        if not self._release.alive:
            raise WarploomError(f"{self.name} was freed and is gone; make a new one")
        return self._handle

    @property
    def shape(self) -> tuple[int, ...]:
        return self.texels.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.texels.dtype

    def copy_to_host(self) -> Array:
        """The texels of the first level as a new array."""
        count = int(np.prod(self.texels.shape))
        flat = self.texels.buffer.view.view(self.texels.dtype)[:count]
        return flat.reshape(self.texels.shape).copy()

    def free(self) -> None:
        """Take its meaning away; the texels go when nothing else uses them. Doing so twice is
        harmless."""
        self._release()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {self.texels.geometry}, shape={self.shape})"


class Texture(Handle):
    """What `tex2D` and its like read."""


class Surface(Handle):
    """What `surf2Dread` and `surf2Dwrite` and their like read and write."""


def store_texels(
    memory: DeviceMemory,
    array: npt.ArrayLike,
    name: str,
    *,
    channels: int = 1,
    layers: bool = False,
    cube: bool = False,
    mipmaps: Sequence[npt.ArrayLike] = (),
) -> Texels:
    """Copy an array and its smaller levels to the device; WarploomError for what is no texture."""
    levels = [np.ascontiguousarray(level) for level in (array, *mipmaps)]
    first = levels[0]
    _check_array(first, name, channels, layers=layers, cube=cube)
    lead, tail = int(layers or cube), int(channels > 1)
    sizes = first.shape[lead : first.ndim - tail]
    for number, level in enumerate(levels):
        wanted = tuple(max(1, n >> number) for n in sizes)
        shape = (*first.shape[:lead], *wanted, *first.shape[first.ndim - tail :])
        if level.shape != shape or level.dtype != first.dtype:
            raise WarploomError(
                f"level {number} of {name} is {level.dtype} of shape {level.shape}, where"
                f" {first.dtype} of shape {shape} belongs: each level is half of the one before"
            )
    if len(levels) > d.MOST_LEVELS:
        raise WarploomError(f"{name} has {len(levels)} levels; {d.MOST_LEVELS} are the most")
    data = np.concatenate([level.reshape(-1) for level in levels])
    buffer = Buffer(memory, (data.nbytes,), np.dtype(np.uint8), name)
    buffer.view[:] = data.view(np.uint8)
    starts = np.cumsum([0, *(level.nbytes for level in levels[:-1])])
    places = tuple(buffer.address + int(start) for start in starts)
    return Texels(buffer, first.shape, first.dtype, channels, layers, cube, places)


def _check_array(array: Array, name: str, channels: int, *, layers: bool, cube: bool) -> None:
    if array.dtype not in FORMATS:
        known = ", ".join(str(dtype) for dtype in FORMATS)
        raise WarploomError(f"{name}: texels of {array.dtype} do not exist; these do: {known}")
    if channels not in (1, 2, 4):
        raise WarploomError(f"{name}: a texel has 1, 2 or 4 channels, not {channels}")
    if channels > 1 and array.shape[-1:] != (channels,):
        raise WarploomError(
            f"{name}: with channels={channels} the last axis holds them, and this array has the"
            f" shape {array.shape}"
        )
    dims = array.ndim - (channels > 1) - (layers or cube)
    most = 2 if layers or cube else 3
    if not 1 <= dims <= most or 0 in array.shape:
        raise WarploomError(
            f"{name}: an array of shape {array.shape} leaves {dims} axes of space where 1 to {most}"
            f" with something in them are needed; channels (say how many) stand last, layers first"
        )
    faces = array.shape[0] if cube else 6
    square = not cube or (dims == 2 and array.shape[1] == array.shape[2])
    if not square or (faces % 6 if layers else faces != 6):
        raise WarploomError(
            f"{name}: a cube is 6 square faces, or with layers=True a multiple of 6, along the"
            f" first axis; this array has the shape {array.shape}"
        )


def make_texture(
    memory: DeviceMemory,
    texels: Texels,
    name: str,
    *,
    address: str | Sequence[str] = "clamp",
    filter: str = "point",
    normalized: bool = False,
    read: str = "element",
    border: float | Sequence[float] = 0,
    mipmap_filter: str = "point",
) -> Texture:
    """A texture over texels; WarploomError for settings that do not go together."""
    modes = [address] * 3 if isinstance(address, str) else [*address, *["clamp"] * 3][:3]
    for what, chosen, known in (
        *(("address mode", mode, tuple(ADDRESS_MODES)) for mode in modes),
        *(("filter", one, FILTERS) for one in (filter, mipmap_filter)),
        ("read mode", read, READS),
    ):
        if chosen not in known:
            raise WarploomError(f"{name}: {chosen!r} is no {what}; choose of {', '.join(known)}")
    format = FORMATS[texels.dtype]
    small = texels.dtype.kind in "ui" and texels.dtype.itemsize < 4
    if read == "normalized" and not small:
        raise WarploomError(
            f"{name}: only 8-bit and 16-bit integers can be read as normalized floats, not"
            f" {texels.dtype}"
        )
    floats = texels.dtype.kind == "f" or read == "normalized"
    if "linear" in (filter, mipmap_filter) and not floats:
        raise WarploomError(
            f"{name}: linear filtering needs texels that are read as floats; these are"
            f" {texels.dtype}: use floats or, for small integers, read='normalized'"
        )
    cubic = texels.cube
    if not normalized and not cubic and (len(texels.levels) > 1 or {"wrap", "mirror"} & {*modes}):
        raise WarploomError(
            f"{name}: mipmaps, and the address modes wrap and mirror, work with normalized"
            f" coordinates alone (real devices clamp instead); pass normalized=True and divide"
            f" coordinates by the size"
        )
    flags = d.LINEAR * (filter == "linear") | d.MIP_LINEAR * (mipmap_filter == "linear")
    flags |= d.NORMALIZED * (normalized or cubic)
    first, second, third = (ADDRESS_MODES[mode] for mode in modes)
    made = Description(
        d.TEXTURE,
        texels.geometry,
        format,
        texels.components,
        texels.extents,
        texels.levels,
        texels.layers,
        read == "normalized",
        d.sampler_word((first, second, third), flags=flags),
        _border_words(border, name, texels.dtype, floats=floats),
    )
    return Texture(memory, texels, made, name)


def _border_words(
    border: float | Sequence[float], name: str, dtype: np.dtype[Any], *, floats: bool
) -> tuple[int, ...]:
    """The four words that a fetch of the border gives."""
    given = [border] * 4 if isinstance(border, (int, float)) else [*border, 0, 0, 0][:4]
    if floats:
        return tuple(np.array(given, np.float32).view(np.uint32).tolist())
    if any(value != int(value) for value in given):
        raise WarploomError(f"{name}: texels of {dtype} need a border of integers, not {border}")
    return tuple(int(value) & 0xFFFFFFFF for value in given)


def make_surface(memory: DeviceMemory, texels: Texels, name: str) -> Surface:
    """A surface over texels."""
    made = Description(
        d.SURFACE,
        texels.geometry,
        FORMATS[texels.dtype],
        texels.components,
        texels.extents,
        texels.levels[:1],
        texels.layers,
    )
    return Surface(memory, texels, made, name)
