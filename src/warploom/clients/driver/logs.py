"""Entries of the driver's log of errors."""

from __future__ import annotations

import ctypes
from pathlib import Path

from warploom.clients.driver.error_log import MEMORY_DUMP_BYTES, error_log
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import offer, put, text_at, word_at


@entry("cuLogsRegisterCallback")
def register_callback(function: int, data: int, handle: int) -> None:
    """Works before cuInit."""
    if not function:
        raise DriverError(Result.INVALID_VALUE)
    offer(handle, error_log.register(function, data))


@entry("cuLogsUnregisterCallback")
def unregister_callback(handle: int) -> None:
    error_log.unregister(handle)


@entry("cuLogsCurrent")
def current(iterator: int, flags: int) -> None:
    _check(flags)
    put(iterator, error_log.end, ctypes.c_uint)


@entry("cuLogsDumpToFile")
def dump_to_file(iterator: int, path: int, flags: int) -> None:
    _check(flags)
    try:
        Path(text_at(path)).write_bytes(error_log.lines(_first(iterator), 1 << 62))
    except OSError as error:
        raise DriverError(Result.INVALID_VALUE, str(error)) from None
    offer(iterator, error_log.end, ctypes.c_uint)


@entry("cuLogsDumpToMemory")
def dump_to_memory(iterator: int, buffer: int, size: int, flags: int) -> None:
    """Writes the log to a buffer. `size` points to the buffer's capacity in bytes, and afterwards
    to the bytes written without the final zero."""
    _check(flags)
    if not buffer or not size:
        raise DriverError(Result.INVALID_VALUE)
    capacity, first = min(word_at(size), MEMORY_DUMP_BYTES), _first(iterator)
    lines = error_log.lines(first, capacity - 1)
    put(size, len(lines))
    if capacity:
        ctypes.memmove(buffer, lines + b"\0", len(lines) + 1)
    if not lines and first < error_log.end:
        raise DriverError(Result.INVALID_VALUE)
    offer(iterator, error_log.end, ctypes.c_uint)


def _check(flags: int) -> None:
    if flags:
        raise DriverError(Result.INVALID_VALUE)


def _first(iterator: int) -> int:
    """Returns the number of the first message to dump."""
    return ctypes.c_uint.from_address(iterator).value if iterator else 0
