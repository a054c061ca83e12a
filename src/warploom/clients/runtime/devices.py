"""Devices by the runtime's names, and the large structure that describes one."""

from __future__ import annotations

import ctypes
from ctypes import c_int, c_size_t, c_uint

from warploom.clients.driver import devices
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import check_device, state
from warploom.clients.driver.words import int_at, put_int
from warploom.clients.runtime.table import entry


class Properties(ctypes.Structure):
    """The part of cudaDeviceProp that the catalog fills; the rest stays zero."""

    _fields_ = (
        ("name", ctypes.c_char * 256),
        ("uuid", ctypes.c_uint8 * 16),
        ("luid", ctypes.c_char * 8),
        ("luid_mask", c_uint),
        ("total_memory", c_size_t),
        ("shared_per_block", c_size_t),
        ("registers_per_block", c_int),
        ("warp_size", c_int),
        ("pitch", c_size_t),
        ("threads_per_block", c_int),
        ("block", c_int * 3),
        ("grid", c_int * 3),
        ("constant_bytes", c_size_t),
        ("major", c_int),
        ("minor", c_int),
        ("texture_alignment", c_size_t),
        ("texture_pitch", c_size_t),
        ("sms", c_int),
        ("integrated", c_int),
        ("maps_host", c_int),
        ("textures", c_int * 39),
        ("surface_alignment", c_size_t),
        ("concurrent_kernels", c_int),
        ("ecc", c_int),
        ("bus", c_int * 3),
        ("tcc", c_int),
        ("copy_engines", c_int),
        ("unified_addressing", c_int),
        ("bus_width", c_int),
        ("l2_bytes", c_int),
        ("l2_persisting", c_int),
        ("threads_per_sm", c_int),
        ("priorities", c_int),
        ("l1_global", c_int),
        ("l1_local", c_int),
        ("shared_per_sm", c_size_t),
        ("registers_per_sm", c_int),
        ("managed", c_int),
        ("multi_gpu", c_int * 2),
        ("host_atomics", c_int),
        ("pageable", c_int),
        ("concurrent_managed", c_int),
        ("preemption", c_int),
        ("host_pointer", c_int),
        ("cooperative", c_int),
        ("shared_optin", c_size_t),
        ("page_tables", c_int * 2),
        ("blocks_per_sm", c_int),
        ("policy_window", c_int),
        ("shared_reserved", c_size_t),
        ("rest", c_int * 75),
    )


@entry("cudaGetDeviceProperties", "cudaGetDeviceProperties_v2")
def properties(target: int, device: int) -> None:
    """Writes the catalog's data of the device."""
    check_device(device)
    if not target:
        raise DriverError(Result.INVALID_VALUE)
    ctypes.memset(target, 0, ctypes.sizeof(Properties))
    fields, spec = Properties.from_address(target), state.device.spec
    fields.name = spec.title.encode()
    fields.uuid[:] = devices.uuid_bytes()
    fields.total_memory = state.device.memory.capacity
    fields.shared_per_block = spec.shared_bytes_per_block
    fields.registers_per_block = spec.registers_per_block
    fields.warp_size, fields.pitch = spec.warp_size, (1 << 31) - 1
    fields.threads_per_block = spec.max_threads_per_block
    fields.block[:], fields.grid[:] = list(spec.max_block_dims), list(spec.max_grid_dims)
    fields.constant_bytes = spec.constant_bytes
    fields.major, fields.minor = spec.compute_capability
    fields.texture_alignment, fields.texture_pitch, fields.surface_alignment = 512, 32, 512
    fields.sms, fields.maps_host, fields.concurrent_kernels = spec.sms, 1, 1
    fields.copy_engines, fields.unified_addressing, fields.bus_width = 1, 1, 256
    fields.l2_bytes, fields.threads_per_sm = spec.l2_bytes, spec.max_threads_per_sm
    fields.priorities = fields.l1_global = fields.l1_local = fields.managed = fields.cooperative = 1
    fields.concurrent_managed = fields.host_pointer = 1
    fields.shared_per_sm, fields.registers_per_sm = spec.shared_bytes_per_sm, spec.registers_per_sm
    fields.shared_optin = spec.shared_bytes_per_block_optin
    fields.blocks_per_sm = spec.max_blocks_per_sm
    fields.shared_reserved = spec.shared_reserved_per_block


@entry("cudaGetDeviceCount")
def device_count(number: int) -> None:
    devices.device_count(number)


@entry("cudaSetDevice", "cudaInitDevice")
def set_device(device: int) -> None:
    check_device(device)


@entry("cudaSetDeviceFlags", "cudaDeviceSetCacheConfig", "cudaDeviceSetSharedMemConfig")
def set_flags(_flags: int) -> None:
    """Preferences, which change no result."""


@entry("cudaDeviceGetAttribute")
def attribute(value: int, number: int, device: int) -> None:
    devices.device_attribute(value, number, device)


@entry("cudaDriverGetVersion", "cudaRuntimeGetVersion")
def version(number: int) -> None:
    put_int(number, devices.VERSION)


@entry("cudaDeviceCanAccessPeer")
def can_access_peer(possible: int, device: int, peer: int) -> None:
    devices.can_access_peer(possible, device, peer)


@entry("cudaDeviceEnablePeerAccess")
def enable_peer_access(_peer: int, _flags: int) -> None:
    """Refuses: no device is a peer of the only one, nor is it one of its own."""
    raise DriverError(Result.INVALID_DEVICE)


@entry("cudaDeviceDisablePeerAccess")
def disable_peer_access(peer: int) -> None:
    """Access that is not enabled cannot be disabled."""
    check_device(peer)
    raise DriverError(Result.PEER_ACCESS_NOT_ENABLED)


@entry("cudaChooseDevice")
def choose_device(device: int, _properties: int) -> None:
    """Chooses device 0, the only one."""
    put_int(device, 0)


@entry("cudaSetValidDevices")
def set_valid_devices(numbers: int, count: int) -> None:
    """Programs list the devices that they would take."""
    for number in range(count):
        check_device(int_at(numbers + 4 * number))


@entry("cudaProfilerStart", "cudaProfilerStop")
def profiler() -> None:
    """Counters are always on."""
