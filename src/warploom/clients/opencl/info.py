"""Answers to questions about objects: values as bytes, written where the caller has capacity."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from warploom.clients.opencl.errors import Status, demand

T = TypeVar("T")
Answers = Mapping[int, Callable[[T], bytes]]
"""What an object answers, by the number of the question."""


def uint(value: int) -> bytes:
    """Encodes cl_uint, cl_bool and enumerations."""
    return struct.pack("<I", value & 0xFFFFFFFF)


def word(value: int) -> bytes:
    """Encodes a size_t, a cl_ulong, a bit field or a handle."""
    return struct.pack("<Q", value & ((1 << 64) - 1))


def words(values: Iterable[int]) -> bytes:
    """Encodes an array of 64-bit values."""
    return b"".join(map(word, values))


def text(value: str) -> bytes:
    """Encodes a string."""
    return value.encode() + b"\0"


def put_uint(address: int, value: int) -> None:
    """Writes a cl_uint."""
    ctypes.c_uint32.from_address(address).value = value


def answer(
    known: Answers[T], about: T, question: int, capacity: int, target: int, size: int
) -> None:
    """Answers a question about an object: writes the value to `target`, which has `capacity` bytes,
    and how many it takes to `size`, each unless it is null. INVALID_VALUE for what is not known,
    and where the capacity is too small."""
    demand(question in known, Status.INVALID_VALUE, f"{question:#x} is not a valid query")
    give(known[question](about), capacity, target, size)


def give(value: bytes, capacity: int, target: int, size: int) -> None:
    """Writes a value of any size, as `answer` does."""
    if target:
        short = f"the value has {len(value)} bytes, but the destination has only {capacity} bytes"
        demand(capacity >= len(value), Status.INVALID_VALUE, short)
        ctypes.memmove(target, value, len(value))
    if size:
        ctypes.c_size_t.from_address(size).value = len(value)


def sizes_at(address: int, count: int, status: Status = Status.INVALID_VALUE) -> tuple[int, ...]:
    """Returns an array of size_t or of handles; `status` for a null pointer."""
    demand(address, status, "an array argument is null")
    return tuple((ctypes.c_size_t * count).from_address(address))


def list_at(address: int, count: int, status: Status) -> tuple[int, ...]:
    """Returns an array that may be absent: no values and no address. `status` where only one of
    them is given."""
    demand(
        bool(address) == bool(count),
        status,
        "an array and its length must be given together",
    )
    return sizes_at(address, count) if count else ()


def properties_at(address: int, status: Status = Status.INVALID_PROPERTY) -> dict[int, int]:
    """Returns a list of names and values that a 0 ends; `status` for a name that stands twice."""
    found: dict[int, int] = {}
    while address and (name := ctypes.c_uint64.from_address(address).value):
        demand(name not in found, status, f"the property {name:#x} is given twice")
        found[name] = ctypes.c_uint64.from_address(address + 8).value
        address += 16
    return found


def property_words(properties: Mapping[int, int]) -> bytes:
    """Encodes such a list, with the 0 that ends it."""
    return words([each for item in properties.items() for each in item] + [0])
