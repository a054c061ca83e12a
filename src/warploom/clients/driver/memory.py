"""Allocations: on the device, on the host, managed; and filling them."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

from warploom.clients.driver import ordering
from warploom.clients.driver.graphs.graphs import Kind
from warploom.clients.driver.queued import queued
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import Context, Owned, state
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import offer, put, unsigned
from warploom.clients.session import session
from warploom.core.errors import WarploomError
from warploom.machine.memory.device_memory import Bytes, unwritten_bits

DEVICE_MAP = 2
"""CU_MEMHOSTALLOC_DEVICEMAP: kernels access the pages."""

PITCH = 512
"""Rows of cuMemAllocPitch begin at multiples of so many bytes, as on real devices."""


ALIGNMENT, SMALL_BYTES, LARGE_ALIGNMENT = 512, 1 << 20, 2 << 20
"""What addresses are multiples of, those of allocations above SMALL_BYTES of pages (an H200 with
driver 580.159). Allocators of other libraries divide such allocations and rely on it."""


@entry("cuMemGetInfo_v2")
def info(free: int, total: int) -> None:
    state.current()
    memory = state.device.memory
    offer(free, memory.free_bytes)
    offer(total, memory.capacity)


UNWRITTEN = ("device", "buffer", "image")
"""Kinds of memory whose content is undefined until something writes it."""


def allocate(size: int, kind: str, flags: int = 0, pool: int = 0) -> int:
    """Returns the address of a new allocation in device memory, in the current context."""
    return allocate_in(state.current(), size, kind, flags, pool)


def allocate_in(
    context: Context,
    size: int,
    kind: str,
    flags: int = 0,
    pool: int = 0,
    *,
    constant: bool = False,
) -> int:
    """Returns the address of a new allocation in device memory that ends with a context; kernels
    cannot write a `constant` one."""
    if not 0 < size < 1 << 62:
        raise DriverError(Result.OUT_OF_MEMORY if size else Result.INVALID_VALUE)
    alignment = LARGE_ALIGNMENT if size > SMALL_BYTES else ALIGNMENT
    memory, name = state.device.memory, f"{kind} memory"
    address = memory.allocate(size, name, constant=constant, alignment=alignment).address
    if kind in UNWRITTEN and "init" in session().settings.tools:
        state.device.memory.unwritten[address] = unwritten_bits(size)
    state.allocations[address] = Owned(kind, context, size, flags, pool)
    if kind == "device":
        state.count_device_memory(size)
    return address


@entry("cuMemAlloc_v2")
def alloc(pointer: int, size: int) -> None:
    put(pointer, allocate(unsigned(size), "device"))


@entry("cuMemAllocPitch_v2")
def alloc_pitch(pointer: int, pitch: int, width: int, height: int, _element: int) -> None:
    row = -(-unsigned(width) // PITCH) * PITCH
    address = allocate(row * unsigned(height), "device")
    put(pointer, address)
    put(pitch, row)


@entry("cuMemAllocManaged")
def alloc_managed(pointer: int, size: int, flags: int) -> None:
    """Device memory is memory of this process: the host can use its addresses."""
    if flags not in (1, 2):
        raise DriverError(Result.INVALID_VALUE)
    put(pointer, allocate(unsigned(size), "managed", flags))
    session().shares_memory = True


@entry("cuMemFree_v2")
def free(address: int) -> None:
    """Ends an allocation when all work that has been asked for is done."""
    ordering.host_waits_for(None)
    free_in_order(address)


def free_in_order(address: int) -> None:
    """Ends an allocation where a stream has come to that."""
    state.current()
    if address:
        free_in_any_state(address, "device", "managed")


def free_in_any_state(address: int, *kinds: str) -> None:
    """Ends an allocation of one of `kinds`, also in a context that an error has ended;
    INVALID_VALUE where there is none."""
    owned = state.allocations.get(unsigned(address))
    if owned is None or owned.kind not in kinds:
        raise DriverError(Result.INVALID_VALUE)
    state.free(unsigned(address))


# ---- of the host ---------------------------------------------------------------------------------


@entry("cuMemHostAlloc")
def host_alloc(pointer: int, size: int, flags: int) -> None:
    """Allocates host pages that kernels access at the same addresses as the host."""
    context = state.current()
    length = unsigned(size)
    if not 0 < length < 1 << 62:
        raise DriverError(Result.OUT_OF_MEMORY if length else Result.INVALID_VALUE)
    try:
        pages = np.frombuffer(mmap.mmap(-1, length), np.uint8)
    except OSError:
        raise DriverError(Result.OUT_OF_MEMORY) from None
    address = int(pages.ctypes.data)
    state.device.memory.lend(address, length, pages, "host memory")
    state.allocations[address] = Owned("host", context, length, flags)
    put(pointer, address)
    if flags & DEVICE_MAP:
        session().shares_memory = True


@entry("cuMemAllocHost_v2")
def alloc_host(pointer: int, size: int) -> None:
    host_alloc(pointer, size, 0)


@entry("cuMemFreeHost")
def free_host(address: int) -> None:
    state.current()
    free_in_any_state(address, "host")


@entry("cuMemHostRegister", "cuMemHostRegister_v2")
def host_register(address: int, size: int, flags: int) -> None:
    context = state.current()
    address, length = unsigned(address), unsigned(size)
    if not address or not length:
        raise DriverError(Result.INVALID_VALUE)
    try:
        state.device.memory.lend(address, length, None, "registered host memory")
    except WarploomError:
        raise DriverError(Result.HOST_MEMORY_ALREADY_REGISTERED) from None
    state.allocations[address] = Owned("registered", context, length, flags)


@entry("cuMemHostUnregister")
def host_unregister(address: int) -> None:
    state.current()
    owned = state.allocations.get(unsigned(address))
    if owned is None or owned.kind != "registered":
        raise DriverError(Result.HOST_MEMORY_NOT_REGISTERED)
    state.free(unsigned(address))


@entry("cuMemHostGetDevicePointer_v2")
def device_pointer(pointer: int, address: int, flags: int) -> None:
    """Host and device share their addresses."""
    state.current()
    if flags or state.device.memory.find(unsigned(address)) is None:
        raise DriverError(Result.INVALID_VALUE)
    put(pointer, unsigned(address))
    session().shares_memory = True


@entry("cuMemHostGetFlags")
def host_flags(flags: int, address: int) -> None:
    state.current()
    owned = state.allocations.get(unsigned(address))
    if owned is None or owned.kind != "host":
        raise DriverError(Result.INVALID_VALUE)
    put(flags, owned.flags, ctypes.c_uint)


# ---- hints ---------------------------------------------------------------------------------------


@entry("cuMemAdvise", "cuMemAdvise_v2")
def advise(address: int, size: int) -> None:
    device_bytes(unsigned(address), unsigned(size))


@entry("cuMemPrefetchAsync", "cuMemPrefetchAsync_v2")
def prefetch(address: int, size: int) -> None:
    device_bytes(unsigned(address), unsigned(size))


# ---- filling -------------------------------------------------------------------------------------


def device_bytes(address: int, size: int) -> Bytes:
    """Returns the bytes at a device address, themselves; INVALID_VALUE unless all in one
    allocation."""
    state.current()
    try:
        return state.device.memory.view(address, size)
    except WarploomError:
        raise DriverError(Result.INVALID_VALUE) from None


def _fill(address: int, value: int, count: int, width: int) -> None:
    count = unsigned(count)
    if address % width or count >> 60:
        raise DriverError(Result.INVALID_VALUE)
    if count:
        target = device_bytes(unsigned(address), count * width)
        target.view(f"u{width}")[:] = value & ((1 << 8 * width) - 1)
        ordering.filled(unsigned(address), count * width)


def fill_rows(address: int, pitch: int, value: int, width: int, height: int, size: int) -> None:
    """Fills rows of `width` elements of `size` bytes each."""
    pitch, width, height = unsigned(pitch), unsigned(width), unsigned(height)
    if pitch < width * size and height > 1:
        raise DriverError(Result.INVALID_VALUE)
    for row in range(height):
        _fill(unsigned(address) + row * pitch, value, width, size)


@queued(entry, Kind.MEMSET, "cuMemsetD8Async")
@entry("cuMemsetD8_v2")
def fill_8(address: int, value: int, count: int) -> None:
    _fill(address, value, count, 1)


@queued(entry, Kind.MEMSET, "cuMemsetD16Async")
@entry("cuMemsetD16_v2")
def fill_16(address: int, value: int, count: int) -> None:
    _fill(address, value, count, 2)


@queued(entry, Kind.MEMSET, "cuMemsetD32Async")
@entry("cuMemsetD32_v2")
def fill_32(address: int, value: int, count: int) -> None:
    _fill(address, value, count, 4)


@queued(entry, Kind.MEMSET, "cuMemsetD2D8Async")
@entry("cuMemsetD2D8_v2")
def fill_rows_8(address: int, pitch: int, value: int, width: int, height: int) -> None:
    fill_rows(address, pitch, value, width, height, 1)


@queued(entry, Kind.MEMSET, "cuMemsetD2D16Async")
@entry("cuMemsetD2D16_v2")
def fill_rows_16(address: int, pitch: int, value: int, width: int, height: int) -> None:
    fill_rows(address, pitch, value, width, height, 2)


@queued(entry, Kind.MEMSET, "cuMemsetD2D32Async")
@entry("cuMemsetD2D32_v2")
def fill_rows_32(address: int, pitch: int, value: int, width: int, height: int) -> None:
    fill_rows(address, pitch, value, width, height, 4)
