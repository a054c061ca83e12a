"""The structures of driver_types.h and texture_types.h that describe arrays and textures."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p


class Channels(ctypes.Structure):
    """cudaChannelFormatDesc: the bits of each component, and what they mean."""

    _fields_ = (("bits", c_int * 4), ("kind", c_int))


class Extent(ctypes.Structure):
    """cudaExtent, and cudaPos."""

    _fields_ = (("width", c_size_t), ("height", c_size_t), ("depth", c_size_t))


class Pitched(ctypes.Structure):
    """cudaPitchedPtr."""

    _fields_ = (
        ("address", c_void_p),
        ("pitch", c_size_t),
        ("width", c_size_t),
        ("height", c_size_t),
    )


class BoxCopy(ctypes.Structure):
    """cudaMemcpy3DParms."""

    _fields_ = (
        ("src_array", c_uint64),
        ("src_at", Extent),
        ("src", Pitched),
        ("dst_array", c_uint64),
        ("dst_at", Extent),
        ("dst", Pitched),
        ("extent", Extent),
        ("kind", c_int),
    )


class Resource(ctypes.Structure):
    """cudaResourceDesc; what follows `handle` is there for plain memory alone."""

    _fields_ = (
        ("type", c_int),
        ("handle", c_uint64),
        ("channels", Channels),
        ("width", c_size_t),  # of linear memory: its size in bytes
        ("height", c_size_t),
        ("pitch", c_size_t),
    )


class Sampler(ctypes.Structure):
    """cudaTextureDesc."""

    _fields_ = (
        ("address_modes", c_int * 3),
        ("filter", c_int),
        ("read_normalized", c_int),
        ("srgb", c_int),
        ("border", c_float * 4),
        ("normalized", c_int),
        ("anisotropy", c_uint),
        ("mipmap_filter", c_int),
        ("mipmap_bias", c_float),
        ("mipmap_least", c_float),
        ("mipmap_most", c_float),
        ("not_trilinear", c_int),
        ("seamless", c_int),
    )
