"""Textures and surfaces: arrays of texels in device memory, and how kernels see them.

What a fetch does is in `texture.fetch`. Source: CUDA C++ Programming Guide, "Texture and Surface
Memory".
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from warploom.core.errors import WarploomError
from warploom.core.options import checked
from warploom.host.buffer import Array, Buffer
from warploom.host.option_types import Content
from warploom.host.textures.texels import FORMATS, Texels, store_texels
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.textures import TextureDescription
from warploom.texture import descriptors as d

ADDRESS_MODES = {
    "wrap": d.WRAP,
    "mirror": d.MIRROR,
    "clamp": d.CLAMP,
    "border": d.BORDERED,
}
FILTERS = ("point", "linear")
READS = ("element", "normalized")


class Handle:
    """A texture or a surface as kernels take it: a 64-bit number.

    It lives until `free()` is called or it is no longer referenced.
    """

    def __init__(
        self, memory: DeviceMemory, texels: Texels, made: TextureDescription, name: str
    ) -> None:
        self.memory, self.texels, self.name = memory, texels, name
        self._handle = memory.textures.add(made)
        self._release = weakref.finalize(self, memory.textures.drop, self._handle)
        self._release.atexit = False

    @property
    def handle(self) -> int:
        """Returns the number that a kernel gets; WarploomError after `free()`."""
        if not self._release.alive:
            raise WarploomError(f"{self.name} has been freed; create a new one")
        return self._handle

    @property
    def shape(self) -> tuple[int, ...]:
        return self.texels.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.texels.dtype

    def copy_to_host(self) -> Array:
        """Returns the texels of the first level as a new array."""
        count = int(np.prod(self.texels.shape))
        size = count * self.texels.dtype.itemsize
        flat = self.memory.view(self.texels.levels[0], size).view(self.texels.dtype)
        return flat.reshape(self.texels.shape).copy()

    def free(self) -> None:
        """Makes the handle invalid; the texels are freed when nothing else uses them. A second call
        does nothing."""
        if self._release.detach():
            self.memory.textures.remove(self._handle)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {self.texels.geometry}, shape={self.shape})"


class Texture(Handle):
    """A texture, which `tex2D` and its like read."""


class Surface(Handle):
    """A surface, which `surf2Dread`, `surf2Dwrite` and their like read and write."""


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
    """Returns a texture over texels; WarploomError for settings that do not go together."""
    modes = [address] * 3 if isinstance(address, str) else [*address, *["clamp"] * 3][:3]
    for what, chosen, known in (
        *(("address mode", mode, tuple(ADDRESS_MODES)) for mode in modes),
        *(("filter", one, FILTERS) for one in (filter, mipmap_filter)),
        ("read mode", read, READS),
    ):
        if chosen not in known:
            raise WarploomError(
                f"{name}: {chosen!r} is not a valid {what}; choose from {', '.join(known)}"
            )
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
            f"{name}: linear filtering needs texels that are read as floats, but these are "
            f"{texels.dtype}: use floats, or read='normalized' for 8-bit and 16-bit integers"
        )
    cubic = texels.cube
    if not normalized and not cubic and (len(texels.levels) > 1 or {"wrap", "mirror"} & {*modes}):
        raise WarploomError(
            f"{name}: mipmaps and the address modes 'wrap' and 'mirror' require normalized "
            "coordinates (GPUs clamp all other coordinates); pass normalized=True and divide the "
            "coordinates by the size"
        )
    flags = d.LINEAR * (filter == "linear") | d.MIP_LINEAR * (mipmap_filter == "linear")
    flags |= d.NORMALIZED * (normalized or cubic)
    first, second, third = (ADDRESS_MODES[mode] for mode in modes)
    made = TextureDescription(
        d.TEXTURE,
        texels.geometry,
        format,
        texels.components,
        texels.extents,
        texels.levels,
        texels.layers,
        d.NORMALIZED_TEXELS if read == "normalized" else 0,
        d.sampler_word((first, second, third), flags=flags),
        _border_words(border, name, texels.dtype, floats=floats),
    )
    return Texture(memory, texels, made, name)


def _border_words(
    border: float | Sequence[float], name: str, dtype: np.dtype[Any], *, floats: bool
) -> tuple[int, ...]:
    """Returns the four words that a fetch of the border gives."""
    given = [border] * 4 if isinstance(border, (int, float)) else [*border, 0, 0, 0][:4]
    if floats:
        return tuple(np.array(given, np.float32).view(np.uint32).tolist())
    if any(value != int(value) for value in given):
        raise WarploomError(f"{name}: texels of {dtype} need an integer border, not {border}")
    return tuple(int(value) & 0xFFFFFFFF for value in given)


def make_surface(memory: DeviceMemory, texels: Texels, name: str) -> Surface:
    """Returns a surface over texels."""
    made = TextureDescription(
        d.SURFACE,
        texels.geometry,
        FORMATS[texels.dtype],
        texels.components,
        texels.extents,
        texels.levels[:1],
        texels.layers,
    )
    return Surface(memory, texels, made, name)


class MakesTextures:
    """The textures and surfaces of a device."""

    memory: DeviceMemory

    @checked("Device.texture(...)")
    def texture(
        self,
        array: Content | Buffer | Surface,
        *,
        address: str | Sequence[str] = "clamp",
        filter: str = "point",
        normalized: bool = False,
        read: str = "element",
        border: float | Sequence[float] = 0,
        channels: int = 1,
        layers: bool = False,
        cube: bool = False,
        mipmaps: Sequence[Content | Buffer] = (),
        mipmap_filter: str = "point",
        name: str = "texture",
    ) -> Texture:
        """Returns a texture with a copy of an array or a buffer, or over the texels of a surface.

        The array's axes are layers (with `layers`; six faces with `cube`), slices, rows, columns,
        then `channels` where there are 2 or 4. `address` ("clamp", "border", "wrap", "mirror", for
        all axes or each of x, y, z), `filter` and `mipmap_filter` ("point", "linear"), `normalized`
        coordinates and `read` ("element", "normalized") are CUDA's. `mipmaps` are the levels after
        the first. Raises WarploomError for what does not go together.
        """
        if isinstance(array, Surface):
            self.memory.check_owner(array.memory, array)
            texels = array.texels
        else:
            texels = store_texels(
                self.memory,
                array,
                name,
                channels=channels,
                layers=layers,
                cube=cube,
                mipmaps=mipmaps,
            )
        return make_texture(
            self.memory,
            texels,
            name,
            address=address,
            filter=filter,
            normalized=normalized,
            read=read,
            border=border,
            mipmap_filter=mipmap_filter,
        )

    @checked("Device.surface(...)")
    def surface(
        self,
        array: Content | Buffer,
        *,
        channels: int = 1,
        layers: bool = False,
        cube: bool = False,
        name: str = "surface",
    ) -> Surface:
        """Returns a surface with a copy of an array, whose axes are those of `texture`."""
        texels = store_texels(self.memory, array, name, channels=channels, layers=layers, cube=cube)
        return make_surface(self.memory, texels, name)
