"""Texture and surface objects by the runtime's names."""

from __future__ import annotations

import ctypes

from warploom.clients.driver.arrays import textures
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.structures import ResourceDescriptor, TextureDescriptor
from warploom.clients.runtime.arrays import INVALID_CHANNEL_DESCRIPTOR, format_of
from warploom.clients.runtime.structures import Resource, Sampler
from warploom.clients.runtime.table import entry


def _resource(address: int) -> ResourceDescriptor | None:
    """Returns a resource in the driver's terms; None where its channels are none."""
    if not address:
        raise DriverError(Result.INVALID_VALUE)
    given = Resource.from_address(address)
    made = ResourceDescriptor(type=given.type, handle=given.handle)
    if given.type in (textures.LINEAR, textures.ROWS):
        format = format_of(given.channels)
        if format is None:
            return None
        made.format, made.channels = format
        made.width, made.height, made.pitch = given.width, given.height, given.pitch
    return made


@entry("cudaCreateTextureObject")
def create_texture(texture: int, resource: int, description: int, view: int) -> int | None:
    made = _resource(resource)
    if made is None:
        return INVALID_CHANNEL_DESCRIPTOR
    if not description:
        raise DriverError(Result.INVALID_VALUE)
    given = Sampler.from_address(description)
    sampler = TextureDescriptor(
        address_modes=given.address_modes,
        filter=given.filter,
        flags=(0 if given.read_normalized else textures.AS_INTEGER)
        | (textures.NORMALIZED if given.normalized else 0),
        mipmap_filter=given.mipmap_filter,
        mipmap_bias=given.mipmap_bias,
        mipmap_least=given.mipmap_least,
        mipmap_most=given.mipmap_most,
        border=given.border,
    )
    textures.texture_create(texture, ctypes.addressof(made), ctypes.addressof(sampler), view)
    return None


@entry("cudaCreateSurfaceObject")
def create_surface(surface: int, resource: int) -> int | None:
    made = _resource(resource)
    if made is None:
        return INVALID_CHANNEL_DESCRIPTOR
    textures.surface_create(surface, ctypes.addressof(made))
    return None


@entry("cudaDestroyTextureObject", "cudaDestroySurfaceObject")
def destroy(handle: int) -> None:
    if handle:
        textures.destroy(handle)
