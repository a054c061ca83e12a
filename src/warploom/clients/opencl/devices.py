"""The one device: the software GPU that the run chose, with the limits that NVIDIA's driver
reports.

Of `clinfo` on NVIDIA's OpenCL 3.0 driver (580, CUDA 13): limits of images, versions and features of
the language, extensions. Whatever a product determines comes from the catalog.
"""

from __future__ import annotations

from functools import cache

from warploom.clients.driver.attributes import KILOHERTZ
from warploom.clients.driver.devices import uuid_bytes
from warploom.clients.driver.state import state
from warploom.clients.driver.words import put
from warploom.clients.opencl.errors import Status, demand
from warploom.clients.opencl.info import Answers, answer, put_uint, text, uint, word, words
from warploom.clients.opencl.objects import ClObject, get
from warploom.clients.opencl.platforms import (
    DRIVER_VERSION,
    VENDOR,
    VENDOR_ID,
    Platform,
    extension_versions,
    extensions_of,
    opencl_number,
    platform,
    versions,
)
from warploom.clients.opencl.table import entry
from warploom.devices.spec import DeviceSpec
from warploom.frontends.opencl_features import language_features

DEFAULT_TYPE, GPU_TYPE, EVERY_TYPE = 1, 4, 0xFFFFFFFF
KNOWN_TYPES = 0b11111

BASE_ALIGNMENT = 512
"""Buffers begin at multiples of so many bytes, and sub-buffers in them."""

COARSE, FINE = 1, 2
"""Kinds of shared virtual memory: device memory is memory of this process."""

PRINTF_BYTES, PARAMETER_BYTES = 1 << 20, 4352
CONFORMANCE = ""


class ClDevice(ClObject):
    """The device of the session."""

    what = "device"
    invalid = Status.INVALID_DEVICE

    @property
    def spec(self) -> DeviceSpec:
        """Returns its facts."""
        return state.device.spec

    @property
    def largest_allocation(self) -> int:
        """Returns the most bytes of one buffer: a quarter of the memory, as NVIDIA has it."""
        return state.device.memory.capacity // 4


@cache
def device() -> ClDevice:
    """Returns the device."""
    return ClDevice()


@entry("clGetDeviceIDs")
def device_ids(at: int, type: int, capacity: int, target: int, number: int) -> None:
    if at:
        get(at, Platform)
    known = type == EVERY_TYPE or (0 < type <= KNOWN_TYPES)
    demand(known, Status.INVALID_DEVICE_TYPE, f"{type:#x} is not a device type")
    nothing = (target and not capacity) or (not target and not number)
    demand(
        not nothing,
        Status.INVALID_VALUE,
        "num_entries is 0 but devices is not null, or devices and num_devices are both null",
    )
    demand(
        type & (DEFAULT_TYPE | GPU_TYPE),
        Status.DEVICE_NOT_FOUND,
        "no device has this type: the only device is a GPU",
    )
    if target:
        put(target, device().handle)
    if number:
        put_uint(number, 1)


@entry("clGetDeviceInfo")
def device_info(handle: int, question: int, capacity: int, target: int, size: int) -> None:
    answer(ANSWERS, get(handle, ClDevice), question, capacity, target, size)


@entry("clRetainDevice", "clReleaseDevice", "clRetainDeviceEXT", "clReleaseDeviceEXT")
def count_device(handle: int) -> None:
    """Does nothing: a device that is no part of another is there as long as its platform is."""
    get(handle, ClDevice)


@entry("clCreateSubDevices")
def create_sub_devices(handle: int, properties: int) -> None:
    get(handle, ClDevice)
    demand(properties, Status.INVALID_VALUE, "the pointer to the partition properties is null")
    demand(
        False,
        Status.INVALID_VALUE,
        "the device cannot be partitioned (CL_DEVICE_PARTITION_MAX_SUB_DEVICES)",
    )


@entry("clSetDefaultDeviceCommandQueue")
def set_default_queue(context: int, handle: int, queue: int) -> None:
    get(handle, ClDevice)
    demand(False, Status.INVALID_OPERATION, "the device does not support on-device queues")


def _extensions(device: ClDevice) -> str:
    return " ".join(extensions_of(device.spec))


def _features(device: ClDevice) -> bytes:
    """Returns the optional features of OpenCL C 3.0, as NVIDIA has them."""
    return versions((3, 0, 0), language_features(device.spec.compute_capability))


def _language_versions(device: ClDevice) -> bytes:
    newest = opencl_number(device.spec)
    known = ((1, 0, 0), (1, 1, 0), (1, 2, 0), (3, 0, 0))
    every = [version for version in known if version[:2] <= newest]
    return b"".join(versions(version, ["OpenCL C"]) for version in every)


def _language(device: ClDevice) -> str:
    """Returns what programs are compiled as without an option."""
    major, minor = min(opencl_number(device.spec), (1, 2))
    return f"OpenCL C {major}.{minor} "


def _version(device: ClDevice) -> str:
    major, minor = opencl_number(device.spec)
    return f"OpenCL {major}.{minor} CUDA"


def _no(device: ClDevice) -> bytes:
    return uint(0)


def _yes(device: ClDevice) -> bytes:
    return uint(1)


def _zero(device: ClDevice) -> bytes:
    return word(0)


def _none(device: ClDevice) -> bytes:
    return b""


def _depth(device: ClDevice) -> bytes:
    return word(16384)


ANSWERS: Answers[ClDevice] = {
    0x1000: lambda d: word(GPU_TYPE),
    0x1001: lambda d: uint(VENDOR_ID),
    0x1002: lambda d: uint(d.spec.sms),
    0x1003: lambda d: uint(3),
    0x1004: lambda d: word(d.spec.max_threads_per_block),
    0x1005: lambda d: words(d.spec.max_block_dims),
    **dict.fromkeys((*range(0x1006, 0x100C), *range(0x1036, 0x103C)), _yes),
    **dict.fromkeys((0x1034, 0x103C), _no),  # there is no half precision in the language
    0x100C: lambda d: uint(KILOHERTZ // 1000),
    0x100D: lambda d: uint(64),
    0x100E: lambda d: uint(256),
    0x100F: lambda d: uint(16),
    0x1010: lambda d: word(d.largest_allocation),
    0x1011: lambda d: word(16384),
    0x1012: lambda d: word(32768),
    **dict.fromkeys((0x1013, 0x1014, 0x1015), _depth),
    0x1016: _yes,
    0x1017: lambda d: word(PARAMETER_BYTES),
    0x1018: lambda d: uint(32),
    0x1019: lambda d: uint(8 * BASE_ALIGNMENT),
    0x101A: lambda d: uint(128),
    0x101B: lambda d: word(0b10111111),  # all but software floating point
    0x1032: lambda d: word(0b111111 if d.spec.compute_capability >= (1, 3) else 0),
    0x101C: lambda d: uint(2),
    0x101D: lambda d: uint(128),
    0x101E: lambda d: word(d.spec.l2_bytes),
    0x101F: lambda d: word(state.device.memory.capacity),
    0x1020: lambda d: word(d.spec.constant_bytes),
    0x1021: lambda d: uint(9),
    0x1022: lambda d: uint(1),
    0x1023: lambda d: word(d.spec.shared_bytes_per_block),
    0x1024: _no,
    0x1025: lambda d: word(1),
    **dict.fromkeys((0x1026, 0x1027, 0x1028, 0x103E), _yes),
    0x1029: lambda d: word(0b11),  # kernels, and functions of the host
    0x102A: lambda d: word(0b11),  # out of order, profiling
    0x102B: lambda d: text(d.spec.title),
    0x102C: lambda d: text(VENDOR),
    0x102D: lambda d: text(DRIVER_VERSION),
    0x102E: lambda d: text("FULL_PROFILE"),
    0x102F: lambda d: text(_version(d)),
    0x1030: lambda d: text(_extensions(d)),
    0x1031: lambda d: word(platform().handle),
    0x1035: _no,
    0x103D: lambda d: text(_language(d)),
    0x103F: lambda d: text(""),
    0x1040: lambda d: word(1 << 28),
    0x1041: lambda d: word(2048),
    0x1042: _zero,
    0x1043: lambda d: uint(1),
    0x1044: lambda d: word(0),
    0x1045: _zero,
    0x1046: _none,
    0x1047: _yes,
    0x1048: _no,
    0x1049: lambda d: word(PRINTF_BYTES),
    **dict.fromkeys((0x104A, 0x104B), _no),
    0x104C: _no,
    **dict.fromkeys((0x104D, 0x104E, 0x1054), _zero),
    **dict.fromkeys((*range(0x104F, 0x1053), *range(0x1055, 0x105B), 0x105C, 0x105D), _no),
    0x1053: lambda d: word(COARSE | FINE),
    0x105B: lambda d: text(""),
    0x105E: lambda d: versions((*opencl_number(d.spec), 0), [""])[:4],
    0x1060: lambda d: extension_versions(d.spec),
    **dict.fromkeys((0x1061, 0x1062), _none),
    0x1063: lambda d: word(0b10001),  # relaxed, in a work-group
    0x1064: lambda d: word(0b10011),  # and acquire/release
    0x1065: _no,
    0x1066: _language_versions,
    0x1067: lambda d: word(d.spec.warp_size),
    **dict.fromkeys((0x1068, 0x1069, 0x1071), _no),
    0x106A: lambda d: uuid_bytes(),
    0x106B: lambda d: uuid_bytes(),
    0x106C: _no,
    0x106D: lambda d: bytes(8),
    0x106E: _no,
    0x106F: _features,
    0x1070: _zero,
    0x1072: lambda d: text(CONFORMANCE),
    0x4000: lambda d: uint(d.spec.compute_capability[0]),
    0x4001: lambda d: uint(d.spec.compute_capability[1]),
    0x4002: lambda d: uint(d.spec.registers_per_block),
    0x4003: lambda d: uint(d.spec.warp_size),
    0x4004: _yes,
    **dict.fromkeys((0x4005, 0x4006, 0x4009, 0x400A), _no),
    0x4007: lambda d: uint(2),
    0x4008: _yes,
    0x410F: lambda d: b"".join(map(uint, (0, 1, 0, 0))),
}
"""What a device answers, by the numbers of cl_device_info and of the extensions that it has."""
