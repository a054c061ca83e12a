"""Texture and surface objects over arrays."""

from __future__ import annotations

from warploom.clients.driver.arrays.arrays import FORMATS, CudaArray
from warploom.clients.driver.arrays.mipmaps import MipmappedArray
from warploom.clients.driver.memory import device_bytes
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.structures import ResourceDescriptor, TextureDescriptor
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import put
from warploom.core.errors import WarploomError
from warploom.host.textures.texels import Texels
from warploom.host.textures.textures import Handle, make_surface, make_texture

MODES = ("wrap", "clamp", "mirror", "border")
FILTERS = ("point", "linear")
AS_INTEGER, NORMALIZED = 1, 2
ARRAY, MIPMAPPED, LINEAR, ROWS = 0, 1, 2, 3


def _texels(resource: ResourceDescriptor, d: TextureDescriptor) -> Texels:
    """Returns the texels of a resource: an array, the levels of one that a texture may choose, or
    plain memory."""
    if resource.type == ARRAY:
        return state.handles.get(resource.handle, CudaArray).texels
    if resource.type == MIPMAPPED:
        return state.handles.get(resource.handle, MipmappedArray).texels(_most_level(d))
    if resource.type not in (LINEAR, ROWS) or resource.format not in FORMATS:
        raise DriverError(Result.INVALID_VALUE)
    dtype, channels = FORMATS[resource.format], resource.channels
    texel = dtype.itemsize * channels
    linear = resource.type == LINEAR
    sizes = (resource.width // texel,) if linear else (resource.height, resource.width)
    if not linear and resource.pitch != resource.width * texel:
        raise DriverError(
            Result.NOT_SUPPORTED,
            "Warploom requires the rows of a texture to be contiguous, with a pitch of "
            f"{resource.width * texel} bytes, not {resource.pitch}",
        )
    size = texel
    for n in sizes:
        size *= n
    device_bytes(resource.handle, size)
    tail = (channels,) if channels > 1 else ()
    return Texels(
        None, (*sizes, *tail), dtype, channels, layered=False, cube=False, levels=(resource.handle,)
    )


@entry("cuTexObjectCreate")
def texture_create(texture: int, resource: int, description: int, view: int) -> None:
    context = state.current()
    if not (resource and description):
        raise DriverError(Result.INVALID_VALUE)
    if view:
        raise DriverError(Result.NOT_SUPPORTED, "resource views of textures are not supported")
    d = TextureDescriptor.from_address(description)
    texels = _texels(ResourceDescriptor.from_address(resource), d)
    small = texels.dtype.kind in "ui" and texels.dtype.itemsize < 4
    modes: list[int] = list(d.address_modes)
    filters: list[int] = [d.filter, d.mipmap_filter]
    try:
        filter, between = (FILTERS[number] for number in filters)
        made = make_texture(
            state.device.memory,
            texels,
            "texture",
            address=[_mode(mode, d.flags) for mode in modes],
            filter=filter,
            normalized=bool(d.flags & NORMALIZED),
            read="normalized" if small and not d.flags & AS_INTEGER else "element",
            border=list(d.border),
            mipmap_filter=between,
        )
    except IndexError:
        raise DriverError(Result.INVALID_VALUE) from None
    except WarploomError as error:
        raise DriverError(Result.INVALID_VALUE, str(error)) from None
    _give(texture, made, context.handles)


def _mode(number: int, flags: int) -> str:
    """Returns how addresses outside are meant. Those that are not normalized are clamped where a
    program asks for wrap or mirror (CUDA Runtime API, cudaTextureDesc)."""
    mode = MODES[number]
    return mode if flags & NORMALIZED or mode == "border" else "clamp"


def _most_level(d: TextureDescriptor) -> int:
    """Returns the last level that a texture may choose; NOT_SUPPORTED for what shifts that
    choice."""
    if d.mipmap_bias or d.mipmap_least > 0 or d.mipmap_most % 1:
        raise DriverError(
            Result.NOT_SUPPORTED,
            "mipmaps require a bias of 0, a minimum level of 0 and an integer maximum level; this "
            f"texture has a bias of {d.mipmap_bias:g}, a minimum level of {d.mipmap_least:g} and a "
            f"maximum level of {d.mipmap_most:g}",
        )
    return max(0, int(d.mipmap_most))


@entry("cuSurfObjectCreate")
def surface_create(surface: int, resource: int) -> None:
    context = state.current()
    if not resource:
        raise DriverError(Result.INVALID_VALUE)
    described = ResourceDescriptor.from_address(resource)
    if described.type != ARRAY:
        raise DriverError(Result.INVALID_VALUE)
    texels = state.handles.get(described.handle, CudaArray).texels
    made = make_surface(state.device.memory, texels, "surface")
    _give(surface, made, context.handles)


def _give(target: int, made: Handle, owned: set[int]) -> None:
    """Kernels know textures by numbers of their own: they are the handles."""
    put(target, made.handle)
    state.handles.put(made.handle, made)
    owned.add(made.handle)


@entry("cuTexObjectDestroy", "cuSurfObjectDestroy")
def destroy(handle: int) -> None:
    state.current()
    made = state.handles.get(handle, Handle)
    state.when_idle(made.free)
    state.handles.remove(handle)
