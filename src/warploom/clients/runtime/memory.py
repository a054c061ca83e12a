"""Memory by the runtime's names: the driver's own, and the variables of the program."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from warploom.clients.driver import copies, memory, pools
from warploom.clients.driver.graphs.graphs import Kind
from warploom.clients.driver.queued import queued
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import check_device, state
from warploom.clients.driver.words import put, unsigned
from warploom.clients.runtime.registration import symbol_of
from warploom.clients.runtime.table import entry

HOST_TO_HOST, TO_DEVICE, TO_HOST, ON_DEVICE, BY_ADDRESS = KINDS = range(5)


SAME: dict[str, Callable[..., int | None]] = {
    "cudaMallocManaged": memory.alloc_managed,
    "cudaMemGetInfo": memory.info,
    "cudaHostRegister": memory.host_register,
    "cudaHostUnregister": memory.host_unregister,
    "cudaHostGetDevicePointer": memory.device_pointer,
    "cudaMemset": memory.fill_8,
    "cudaMemset2D": memory.fill_rows_8,
    "cudaMemPrefetchAsync": memory.prefetch,
    "cudaMemAdvise": memory.advise,
    "cudaMallocAsync": pools.alloc,
    "cudaFreeAsync": pools.free_async,
}
"""What takes the same arguments."""

for _name, _function in SAME.items():
    entry(_name)(_function)


@entry("cudaMalloc")
def malloc(pointer: int, size: int) -> None:
    """Allocates memory; of 0 bytes it writes a null pointer, which the driver refuses."""
    if size:
        memory.alloc(pointer, size)
    else:
        put(pointer, 0)


@entry("cudaMallocHost", "cudaHostAlloc")
def malloc_host(pointer: int, size: int, flags: int = 0) -> None:
    if size:
        memory.host_alloc(pointer, size, flags)
    else:
        put(pointer, 0)


@entry("cudaFree")
def free(address: int) -> None:
    """Frees an allocation, also after an error that has ended the context: C++ destructors free,
    and an error in one ends the process before it can say why."""
    if address:
        memory.free_in_any_state(address, "device", "managed")


@entry("cudaFreeHost")
def free_host(address: int) -> None:
    """Frees an allocation, in any state of the context."""
    if address:
        memory.free_in_any_state(address, "host")


queued(entry, Kind.MEMSET, "cudaMemsetAsync")(memory.fill_8)
queued(entry, Kind.MEMSET, "cudaMemset2DAsync")(memory.fill_rows_8)


@entry("cudaMallocPitch")
def malloc_pitch(pointer: int, pitch: int, width: int, height: int) -> None:
    memory.alloc_pitch(pointer, pitch, width, height, 4)


@queued(entry, Kind.MEMCPY, "cudaMemcpyAsync")
@entry("cudaMemcpy")
def copy(target: int, source: int, size: int, kind: int) -> None:
    if kind == HOST_TO_HOST:
        ctypes.memmove(target, source, unsigned(size))
    elif kind == TO_DEVICE:
        copies.to_device(target, source, size)
    elif kind == TO_HOST:
        copies.to_host(target, source, size)
    elif kind == ON_DEVICE:
        copies.on_device(target, source, size)
    elif kind == BY_ADDRESS:
        copies.anywhere(target, source, size)
    else:
        raise DriverError(Result.INVALID_MEMCPY_DIRECTION)


@queued(entry, Kind.MEMCPY, "cudaMemcpyPeerAsync")
@entry("cudaMemcpyPeer")
def copy_between_devices(target: int, to: int, source: int, origin: int, size: int) -> None:
    """Copies within the one device that there is."""
    check_device(to)
    check_device(origin)
    copies.on_device(target, source, size)


@queued(entry, Kind.MEMCPY, "cudaMemcpy2DAsync")
@entry("cudaMemcpy2D")
def copy_rows(
    target: int, to_pitch: int, source: int, from_pitch: int, width: int, height: int, kind: int
) -> None:
    width = unsigned(width)
    if unsigned(to_pitch) < width or unsigned(from_pitch) < width:
        raise DriverError(Result.INVALID_PITCH)
    for row in range(unsigned(height)):
        copy(target + row * to_pitch, source + row * from_pitch, width, kind)


# ---- variables -----------------------------------------------------------------------------------


def _part(symbol: int, size: int, offset: int) -> int:
    address, length = symbol_of(symbol)
    if unsigned(offset) + unsigned(size) > length:
        raise DriverError(Result.INVALID_VALUE)
    return address + unsigned(offset)


@queued(entry, Kind.MEMCPY, "cudaMemcpyToSymbolAsync")
@entry("cudaMemcpyToSymbol")
def copy_to_symbol(symbol: int, source: int, size: int, offset: int, kind: int) -> None:
    copy(_part(symbol, size, offset), source, size, kind)


@queued(entry, Kind.MEMCPY, "cudaMemcpyFromSymbolAsync")
@entry("cudaMemcpyFromSymbol")
def copy_from_symbol(target: int, symbol: int, size: int, offset: int, kind: int) -> None:
    copy(target, _part(symbol, size, offset), size, kind)


@entry("cudaGetSymbolAddress")
def symbol_address(pointer: int, symbol: int) -> None:
    put(pointer, symbol_of(symbol)[0])


@entry("cudaGetSymbolSize")
def symbol_size(size: int, symbol: int) -> None:
    put(size, symbol_of(symbol)[1])


class _PointerAttributes(ctypes.Structure):
    """cudaPointerAttributes."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("device", ctypes.c_int),
        ("device_pointer", ctypes.c_uint64),
        ("host_pointer", ctypes.c_uint64),
    )


@entry("cudaPointerGetAttributes")
def pointer_attributes(attributes: int, address: int) -> None:
    """Addresses that were not allocated are of the host, and unregistered: type 0."""
    pointer = unsigned(address)
    found = state.device.memory.find(pointer)
    owned = state.allocations.get(found.address) if found else None
    kind = owned.kind if owned else ""
    fields = _PointerAttributes.from_address(attributes)
    fields.type = {"": 0, "host": 1, "registered": 1, "device": 2, "managed": 3}[kind]
    fields.device = 0 if owned else -2
    fields.device_pointer = pointer if owned else 0
    fields.host_pointer = 0 if kind == "device" else pointer
