"""The structures of cuda.h that calls take and give."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p


class Copy2D(ctypes.Structure):
    """CUDA_MEMCPY2D."""

    _fields_ = (
        ("src_x", c_size_t),
        ("src_y", c_size_t),
        ("src_type", c_int),
        ("src_host", c_void_p),
        ("src_device", c_uint64),
        ("src_array", c_uint64),
        ("src_pitch", c_size_t),
        ("dst_x", c_size_t),
        ("dst_y", c_size_t),
        ("dst_type", c_int),
        ("dst_host", c_void_p),
        ("dst_device", c_uint64),
        ("dst_array", c_uint64),
        ("dst_pitch", c_size_t),
        ("width", c_size_t),
        ("height", c_size_t),
    )


class Copy3D(ctypes.Structure):
    """CUDA_MEMCPY3D."""

    _fields_ = (
        ("src_x", c_size_t),
        ("src_y", c_size_t),
        ("src_z", c_size_t),
        ("src_level", c_size_t),
        ("src_type", c_int),
        ("src_host", c_void_p),
        ("src_device", c_uint64),
        ("src_array", c_uint64),
        ("reserved0", c_void_p),
        ("src_pitch", c_size_t),
        ("src_height", c_size_t),
        ("dst_x", c_size_t),
        ("dst_y", c_size_t),
        ("dst_z", c_size_t),
        ("dst_level", c_size_t),
        ("dst_type", c_int),
        ("dst_host", c_void_p),
        ("dst_device", c_uint64),
        ("dst_array", c_uint64),
        ("reserved1", c_void_p),
        ("dst_pitch", c_size_t),
        ("dst_height", c_size_t),
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
    )


class ArrayDescriptor(ctypes.Structure):
    """CUDA_ARRAY_DESCRIPTOR."""

    _fields_ = (
        ("width", c_size_t),
        ("height", c_size_t),
        ("format", c_int),
        ("channels", c_uint),
    )


class Array3DDescriptor(ctypes.Structure):
    """CUDA_ARRAY3D_DESCRIPTOR."""

    _fields_ = (
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
        ("format", c_int),
        ("channels", c_uint),
        ("flags", c_uint),
    )


class ResourceDescriptor(ctypes.Structure):
    """CUDA_RESOURCE_DESC; `handle` is an array or an address, by `type`."""

    _fields_ = (
        ("type", c_int),
        ("handle", c_uint64),
        ("format", c_int),
        ("channels", c_uint),
        ("width", c_size_t),  # of linear memory: its size in bytes
        ("height", c_size_t),
        ("pitch", c_size_t),
        ("rest", c_int * 22),
        ("flags", c_uint),
    )


class TextureDescriptor(ctypes.Structure):
    """CUDA_TEXTURE_DESC."""

    _fields_ = (
        ("address_modes", c_int * 3),
        ("filter", c_int),
        ("flags", c_uint),
        ("anisotropy", c_uint),
        ("mipmap_filter", c_int),
        ("mipmap_bias", c_float),
        ("mipmap_least", c_float),
        ("mipmap_most", c_float),
        ("border", c_float * 4),
        ("reserved", c_int * 12),
    )


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = (("id", c_int), ("pad", c_int), ("value", c_uint * 16))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("stream", c_uint64),
        ("attributes", c_uint64),
        ("attribute_count", c_uint),
    )


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS; its first version ends before `kernel`."""

    _fields_ = (
        ("function", c_uint64),
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("parameters", c_uint64),
        ("extra", c_uint64),
        ("kernel", c_uint64),
        ("context", c_uint64),
    )


class FillNode(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = (
        ("address", c_uint64),
        ("pitch", c_size_t),
        ("value", c_uint),
        ("element", c_uint),
        ("width", c_size_t),
        ("height", c_size_t),
    )


class HostFunction(ctypes.Structure):
    """CUDA_HOST_NODE_PARAMS."""

    _fields_ = (("function", c_uint64), ("data", c_void_p))
