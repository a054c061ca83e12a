"""Attributes of an address."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

from warploom.clients.driver.memory import device_bytes
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import Owned, state
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import int_at, offer, put, unsigned, word_at
from warploom.core.errors import Allocation

HOST, DEVICE = 1, 2


@dataclass(frozen=True)
class _Place:
    """An address in an allocation."""

    address: int
    allocation: Allocation
    owned: Owned

    @property
    def on_host(self) -> bool:
        return self.owned.kind in ("host", "registered")


def _place(address: int) -> _Place | None:
    found = state.device.memory.find(address)
    owned = state.allocations.get(found.address) if found else None
    return _Place(address, found, owned) if found and owned else None


_ATTRIBUTES: dict[int, tuple[type, Callable[[_Place], int]]] = {
    1: (ctypes.c_uint64, lambda at: at.owned.context.handle),
    2: (ctypes.c_uint, lambda at: HOST if at.on_host else DEVICE),
    3: (ctypes.c_uint64, lambda at: at.address),
    4: (ctypes.c_uint64, lambda at: at.address),
    6: (ctypes.c_int, lambda at: 0),
    7: (ctypes.c_uint64, lambda at: at.allocation.address),
    8: (ctypes.c_int, lambda at: int(at.owned.kind == "managed")),
    9: (ctypes.c_int, lambda at: 0),
    10: (ctypes.c_int, lambda at: 0),
    11: (ctypes.c_uint64, lambda at: at.allocation.address),
    12: (ctypes.c_uint64, lambda at: at.allocation.size),
    13: (ctypes.c_int, lambda at: 1),
    14: (ctypes.c_uint64, lambda at: 0),
    15: (ctypes.c_int, lambda at: 0),
    16: (ctypes.c_int, lambda at: 3),  # readable and writable
    17: (ctypes.c_uint64, lambda at: at.owned.pool),
}
"""The type of an attribute, and what it is."""


@entry("cuPointerGetAttribute")
def attribute(value: int, number: int, pointer: int) -> None:
    state.check()
    place = _place(unsigned(pointer))
    if place is None or number not in _ATTRIBUTES:
        raise DriverError(Result.INVALID_VALUE)
    _check_host(number, place)
    kind, of = _ATTRIBUTES[number]
    put(value, of(place), kind)


def _check_host(number: int, place: _Place) -> None:
    """Plain device memory has no address on the host, as far as programs can see."""
    if number == 4 and place.owned.kind == "device":
        raise DriverError(Result.INVALID_VALUE)


@entry("cuPointerGetAttributes")
def attributes(count: int, numbers: int, values: int, pointer: int) -> None:
    """Writes all attributes that are known; others are 0, and no error."""
    state.check()
    place = _place(unsigned(pointer))
    for index in range(count):
        number, target = int_at(numbers + 4 * index), word_at(values + 8 * index)
        if number not in _ATTRIBUTES:
            raise DriverError(Result.INVALID_VALUE)
        kind, of = _ATTRIBUTES[number]
        absent = place is None or (number == 4 and place.owned.kind == "device")
        ordinal = -2 if number == 9 else 0
        put(target, ordinal if absent or place is None else of(place), kind)


@entry("cuPointerSetAttribute")
def set_attribute(_value: int, number: int, pointer: int) -> None:
    """Copies always wait: SYNC_MEMOPS changes nothing."""
    if number != 6 or _place(unsigned(pointer)) is None:
        raise DriverError(Result.INVALID_VALUE)


@entry("cuMemGetAddressRange_v2")
def address_range(base: int, size: int, pointer: int) -> None:
    state.current()
    found = state.device.memory.find(unsigned(pointer))
    if found is None:
        raise DriverError(Result.NOT_FOUND)
    offer(base, found.address)
    offer(size, found.size)


@entry("cuMemRangeGetAttribute")
def range_attribute(data: int, data_size: int, _number: int, pointer: int, count: int) -> None:
    """Writes where managed memory is: wherever it is wanted."""
    device_bytes(unsigned(pointer), unsigned(count))
    if not data or data_size < 4:
        raise DriverError(Result.INVALID_VALUE)
    ctypes.memset(data, 0, unsigned(data_size))
