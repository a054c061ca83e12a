"""Mipmapped arrays: an array, one of half its size, and so on, which textures choose from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from warploom.clients.driver.arrays.arrays import CUBE, LAYERED, CudaArray, make_arrays
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.structures import Array3DDescriptor
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import put
from warploom.host.textures.texels import Texels


@dataclass(eq=False)
class MipmappedArray:
    """The levels, the largest first, and their handles."""

    levels: list[CudaArray]
    handles: list[int]

    def texels(self, most: int) -> Texels:
        """Returns what a texture sees that looks at levels up to `most`."""
        places = tuple(level.address for level in self.levels[: most + 1])
        return replace(self.levels[0].texels, levels=places)


@entry("cuMipmappedArrayCreate")
def create(array: int, description: int, levels: int) -> None:
    """More levels than there are sizes are as many as there are sizes (CUDA Driver API)."""
    if not description:
        raise DriverError(Result.INVALID_VALUE)
    d = Array3DDescriptor.from_address(description)
    deep = 0 if d.flags & (LAYERED | CUBE) else d.depth
    count = min(max(1, levels), max(d.width, d.height, deep).bit_length())
    sizes = d.width, d.height, d.depth
    made = make_arrays(*sizes, d.format, d.channels, d.flags, count, are_levels=True)
    context = state.current()
    handles = [state.own(context, level) for level in made]
    put(array, state.own(context, MipmappedArray(made, handles)))


@entry("cuMipmappedArrayGetLevel")
def level(array: int, mipmapped: int, number: int) -> None:
    found = state.handles.get(mipmapped, MipmappedArray)
    if not 0 <= number < len(found.levels):
        raise DriverError(Result.INVALID_VALUE)
    put(array, found.handles[number])


@entry("cuMipmappedArrayDestroy")
def destroy(mipmapped: int) -> None:
    found = state.handles.get(mipmapped, MipmappedArray)
    state.when_idle(found.levels[0].buffer.free)
    for handle in (*found.handles, mipmapped):
        state.handles.remove(handle)
