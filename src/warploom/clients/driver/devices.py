"""Initialization, versions, and what the device is."""

from __future__ import annotations

import ctypes
import hashlib
import uuid

from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import check_device, started_by, state
from warploom.clients.driver.table import entry, registry
from warploom.clients.driver.words import put, put_int, put_text, text_at
from warploom.clients.host_stack import calling_library
from warploom.clients.nvidia_libraries import machine_code_of
from warploom.clients.session import session
from warploom.clients.termination import before_termination

VERSION = 13050
"""The CUDA version that the driver reports; libraries of an older toolkit accept a newer driver."""

BUS_ID = "0000:01:00.0"

STATIC_RUNTIME = (
    "This program is statically linked with a CUDA runtime (nvcc's default; CuPy, Warp and cuBLAS "
    "also contain a static runtime). The static runtime requires undocumented tables in NVIDIA's "
    "driver and fails without them. Build the program with `nvcc -cudart shared` or `warploom "
    "nvcc`; build CuPy with Warploom's tools/build_cupy.py. You can also load the kernels with the "
    "driver API, or use PyTorch, numba-cuda, cuda.core, tinygrad or `from warploom import cuda`. "
    "docs/drop-in.md lists the supported clients."
)

HIDDEN = (
    "The environment variable CUDA_VISIBLE_DEVICES hides the software GPU, which is device 0. "
    "Remove the variable, or set it to 0."
)

_libraries: set[str] = set()
"""Names of libraries that have asked for tables."""


@entry("cuInit")
def init(flags: int) -> None:
    """Initializes the driver; only few entries work before."""
    if flags:
        raise DriverError(Result.INVALID_VALUE)
    first = not state.process
    if first and not _is_visible():
        raise DriverError(Result.NO_DEVICE, HIDDEN)
    state.initialise()
    started_by(registry.started)
    if first and session().reports:
        before_termination(session().report_once)


def _is_visible() -> bool:
    """Returns whether CUDA_VISIBLE_DEVICES, as it is in the process's environment now, begins with
    the device: its number 0, or `GPU-` and a prefix of its UUID (CUDA C++ Programming Guide, "CUDA
    Environment Variables"). An empty list, and one that begins with what is no device, hide it."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    shown: bytes | None = getenv(b"CUDA_VISIBLE_DEVICES")
    if shown is None:
        return True
    first = shown.decode(errors="replace").partition(",")[0].strip()
    identifier = f"GPU-{uuid.UUID(bytes=uuid_bytes())}"
    return first == "0" or (len(first) > len("GPU-") and identifier.startswith(first))


@entry("cuDriverGetVersion")
def driver_version(version: int) -> None:
    """Works before cuInit."""
    put_int(version, VERSION)


@entry("cuGetExportTable")
def export_table(table: int, _identity: int) -> int:
    """Does not answer, as tables are not documented. Says once of each library of NVIDIA's that it
    stops here, whose own errors say that they are not initialized, or nothing."""
    put(table, 0)
    session().if_nothing_ran = STATIC_RUNTIME
    library = calling_library()
    if library not in _libraries:
        _libraries.add(library)
        raise DriverError(Result.NOT_SUPPORTED, machine_code_of(library))
    return Result.NOT_SUPPORTED


@entry("cuDeviceGetCount")
def device_count(number: int) -> None:
    state.check()
    put_int(number, 1)


@entry("cuDeviceGet")
def device_get(device: int, ordinal: int) -> None:
    check_device(ordinal)
    put_int(device, ordinal)


@entry("cuDeviceGetName")
def device_name(name: int, capacity: int, device: int) -> None:
    check_device(device)
    put_text(name, capacity, state.device.spec.title)


@entry("cuDeviceGetUuid", "cuDeviceGetUuid_v2")
def device_uuid(target: int, device: int) -> None:
    """Writes an identifier that is always the same for a product."""
    check_device(device)
    if not target:
        raise DriverError(Result.INVALID_VALUE)
    ctypes.memmove(target, uuid_bytes(), 16)


def uuid_bytes() -> bytes:
    """Returns the 16 bytes of the device's UUID."""
    return hashlib.sha256(f"warploom {state.device.name}".encode()).digest()[:16]


@entry("cuDeviceTotalMem_v2")
def device_memory(size: int, device: int) -> None:
    check_device(device)
    put(size, state.device.memory.capacity)


@entry("cuDeviceComputeCapability")
def compute_capability(major: int, minor: int, device: int) -> None:
    check_device(device)
    first, second = state.device.spec.compute_capability
    put_int(major, first)
    put_int(minor, second)


@entry("cuDeviceGetAttribute")
def device_attribute(value: int, attribute: int, device: int) -> None:
    check_device(device)
    known = state.attributes
    if attribute not in known:
        raise DriverError(Result.INVALID_VALUE)
    put_int(value, known[attribute])


@entry("cuDeviceGetPCIBusId")
def bus_id(text: int, capacity: int, device: int) -> None:
    check_device(device)
    put_text(text, capacity, BUS_ID)


@entry("cuDeviceGetByPCIBusId")
def by_bus_id(device: int, text: int) -> None:
    state.check()
    if text_at(text) != BUS_ID:
        raise DriverError(Result.INVALID_DEVICE)
    put_int(device, 0)


@entry("cuDeviceGetExecAffinitySupport", "cuDeviceGetP2PAttribute")
def no_support(value: int, _kind: int, device: int) -> None:
    check_device(device)
    put_int(value, 0)


@entry("cuDeviceCanAccessPeer")
def can_access_peer(possible: int, device: int, peer: int) -> None:
    """Writes 0: there is no peer, and a device is none of its own."""
    check_device(device)
    check_device(peer)
    put_int(possible, 0)


@entry("cuProfilerStart", "cuProfilerStop")
def profiler() -> None:
    """Counters are always on."""


@entry("cuFlushGPUDirectRDMAWrites")
def flush(_target: int, _scope: int) -> None:
    """Writes are visible when they are made."""
