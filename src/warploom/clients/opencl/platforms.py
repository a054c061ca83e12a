"""The platform: what programs find first, and choose by its name."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version

from warploom.clients.driver.devices import VERSION
from warploom.clients.driver.state import started_by, state
from warploom.clients.driver.words import put
from warploom.clients.opencl.errors import Status, demand
from warploom.clients.opencl.info import Answers, answer, put_uint, text, uint, word
from warploom.clients.opencl.objects import ClObject, get
from warploom.clients.opencl.table import entry, registry
from warploom.clients.session import session
from warploom.clients.termination import before_termination
from warploom.devices.spec import DeviceSpec
from warploom.frontends.opencl_features import language_extensions, opencl_version

VENDOR, VENDOR_ID = "NVIDIA Corporation", 0x10DE
"""The device's, as NVIDIA's own driver reports it: programs choose by it."""

DRIVER_VERSION = "580.00"
CUDA_VERSION = f"{VERSION // 1000}.{VERSION % 1000 // 10}"

ICD = "cl_khr_icd"
EXTENSIONS = (
    *(ICD, "cl_nv_compiler_options", "cl_nv_device_attribute_query"),
    *("cl_nv_pragma_unroll", "cl_khr_device_uuid", "cl_khr_pci_bus_info"),
)
"""Those of NVIDIA's driver beside the language's, but for what shares objects with other
interfaces."""


class Platform(ClObject):
    """The platform."""

    what = "platform"
    invalid = Status.INVALID_PLATFORM


@cache
def platform() -> Platform:
    """Returns the platform; the first time it begins the work of this process."""
    started_by(registry.started)
    if session().reports:
        before_termination(session().report_once)
    return Platform()


def extensions_of(spec: DeviceSpec) -> list[str]:
    """Returns the extensions of a device."""
    return [*language_extensions(spec.compute_capability), *EXTENSIONS]


def opencl_number(spec: DeviceSpec) -> tuple[int, int]:
    """Returns the version of OpenCL that NVIDIA's last driver reports for a device."""
    version = opencl_version(spec.compute_capability)
    return version // 100, version % 100 // 10


def versions(version: tuple[int, int, int], names: Iterable[str]) -> bytes:
    """Encodes names with a version: cl_name_version."""
    major, minor, patch = version
    number = major << 22 | minor << 12 | patch
    return b"".join(struct.pack("<I64s", number, name.encode()) for name in names)


def extension_versions(spec: DeviceSpec) -> bytes:
    """Encodes the extensions of a device with their versions."""
    return b"".join(
        versions((2, 0, 0) if name == ICD else (1, 0, 0), [name]) for name in extensions_of(spec)
    )


def _version(platform: Platform) -> str:
    major, minor = opencl_number(state.device.spec)
    return f"OpenCL {major}.{minor} CUDA {CUDA_VERSION} Warploom {version('warploom')}"


ANSWERS: Answers[Platform] = {
    0x0900: lambda p: text("FULL_PROFILE"),
    0x0901: lambda p: text(_version(p)),
    0x0902: lambda p: text("Warploom (NVIDIA CUDA)"),
    0x0903: lambda p: text(VENDOR),
    0x0904: lambda p: text(" ".join(extensions_of(state.device.spec))),
    0x0905: lambda p: word(1),
    0x0906: lambda p: versions((*opencl_number(state.device.spec), 0), [""])[:4],
    0x0907: lambda p: extension_versions(state.device.spec),
    0x0920: lambda p: text("WLM"),
    0x0921: lambda p: uint(0),  # the library stays loaded
}


@entry("clGetPlatformIDs")
def platform_ids(capacity: int, target: int, number: int) -> None:

    nothing = (target and not capacity) or (not target and not number)
    demand(
        not nothing,
        Status.INVALID_VALUE,
        "num_entries is 0 but platforms is not null, or platforms and num_platforms are both null",
    )
    if target:
        put(target, platform().handle)
    if number:
        put_uint(number, 1)


@entry("clGetPlatformInfo")
def platform_info(handle: int, question: int, capacity: int, target: int, size: int) -> None:
    at = get(handle, Platform) if handle else platform()
    answer(ANSWERS, at, question, capacity, target, size)


@entry("clUnloadPlatformCompiler")
def unload_platform_compiler(handle: int) -> None:
    """Does nothing: the compiler is a program of its own."""
    get(handle, Platform)


@entry("clUnloadCompiler")
def unload_compiler() -> None:
    """Does nothing: the compiler is a program of its own."""
