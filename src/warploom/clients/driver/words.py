"""Values in the caller's memory: pointers to results, and strings."""

from __future__ import annotations

import ctypes
from typing import Any

from warploom.clients.driver.results import DriverError, Result

MASK = (1 << 64) - 1


def put(address: int, value: int, kind: Any = ctypes.c_uint64) -> None:
    """Writes a number to where the caller wants it; a null pointer is an invalid value."""
    if not address:
        raise DriverError(Result.INVALID_VALUE)
    kind.from_address(address).value = value


def put_int(address: int, value: int) -> None:
    """Writes an `int`."""
    put(address, value, ctypes.c_int)


def offer(address: int, value: int, kind: Any = ctypes.c_uint64) -> None:
    """Writes a number, if the caller wants it."""
    if address:
        put(address, value, kind)


def put_text(address: int, capacity: int, text: str) -> None:
    """Writes a string and a final zero into a buffer of `capacity` bytes, truncated to fit."""
    if not address or capacity <= 0:
        raise DriverError(Result.INVALID_VALUE)
    data = text.encode()[: capacity - 1] + b"\0"
    ctypes.memmove(address, data, len(data))


def text_at(address: int) -> str:
    """Returns the string at an address."""
    if not address:
        raise DriverError(Result.INVALID_VALUE)
    return ctypes.string_at(address).decode(errors="replace")


def word_at(address: int) -> int:
    """Returns the 64-bit word at an address."""
    return ctypes.c_uint64.from_address(address).value


def int_at(address: int) -> int:
    """Returns the `int` at an address."""
    return ctypes.c_int.from_address(address).value


def unsigned(word: int) -> int:
    """Returns a word as C handed it over, as the `size_t` or address that it was."""
    return word & MASK
