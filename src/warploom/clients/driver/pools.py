"""Memory pools and stream-ordered allocation. All pools share the device's memory."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from functools import partial

from warploom.clients.driver import ordering
from warploom.clients.driver.graphs.captures import capture_of
from warploom.clients.driver.graphs.graph_memory import GraphMemory, give_back
from warploom.clients.driver.graphs.graphs import Kind, Task
from warploom.clients.driver.memory import free_in_order
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import check_device, state
from warploom.clients.driver.streams import do_in_order, stream_of
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import int_at, put, unsigned, word_at

REUSE = (1, 2, 3)
"""Attributes that are an `int`; the others are 64 bits wide."""

ON_DEVICE = 1
"""The only type of CUmemLocation that has a pool."""

RELEASE_THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH = 4, 5, 6, 7, 8


@dataclass
class Pool:
    """A pool: its attributes, and how much of it is in use."""

    attributes: dict[int, int] = field(default_factory=lambda: {1: 1, 2: 1, 3: 1, 4: 0})
    high: int = 0


_default: list[int] = []


def _default_pool() -> int:
    if not _default:
        _default.append(state.handles.add(Pool()))
    return _default[0]


@entry("cuDeviceGetDefaultMemPool", "cuDeviceGetMemPool")
def default_pool(pool: int, device: int) -> None:
    check_device(device)
    put(pool, _default_pool())


@entry("cuMemGetDefaultMemPool", "cuMemGetMemPool")
def default_pool_at(pool: int, location: int, _kind: int) -> None:
    """CUmemLocation begins with its type and the device's number."""
    if not location or int_at(location) != ON_DEVICE:
        raise DriverError(Result.NOT_SUPPORTED)
    default_pool(pool, int_at(location + 4))


@entry("cuDeviceSetMemPool")
def set_pool(device: int, pool: int) -> None:
    check_device(device)
    state.handles.get(pool, Pool)


@entry("cuMemPoolCreate")
def create(pool: int, _properties: int) -> None:
    state.check()
    put(pool, state.handles.add(Pool()))


@entry("cuMemPoolDestroy")
def destroy(pool: int) -> None:
    state.handles.get(pool, Pool)
    if pool == _default_pool():
        raise DriverError(Result.INVALID_VALUE)
    state.handles.remove(pool)


@entry("cuMemPoolTrimTo", "cuMemPoolSetAccess")
def no_effect(pool: int) -> None:
    """Does nothing: pools return freed memory at once, and there is one device that may access
    it."""
    state.handles.get(pool, Pool)


@entry("cuMemPoolGetAccess")
def access(flags: int, pool: int, _location: int) -> None:
    state.handles.get(pool, Pool)
    put(flags, 3, ctypes.c_int)


@entry("cuMemPoolGetAttribute")
def get_attribute(pool: int, number: int, value: int) -> None:
    found = state.handles.get(pool, Pool)
    used = sum(owned.size for owned in state.allocations.values() if owned.pool == pool)
    counted = {RESERVED: used, RESERVED_HIGH: found.high, USED: used, USED_HIGH: found.high}
    known = {**found.attributes, **counted}
    if number not in known:
        raise DriverError(Result.INVALID_VALUE)
    put(value, known[number], ctypes.c_int if number in REUSE else ctypes.c_uint64)


@entry("cuMemPoolSetAttribute")
def set_attribute(pool: int, number: int, value: int) -> None:
    found = state.handles.get(pool, Pool)
    if number in (RESERVED_HIGH, USED_HIGH):
        found.high = 0
    elif number in found.attributes:
        found.attributes[number] = int_at(value) if number in REUSE else word_at(value)
    else:
        raise DriverError(Result.INVALID_VALUE)


@entry("cuMemAllocAsync")
def alloc(pointer: int, size: int, stream: int) -> None:
    alloc_from(pointer, size, _default_pool(), stream)


@entry("cuMemAllocFromPoolAsync")
def alloc_from(pointer: int, size: int, pool: int, stream: int) -> None:
    stream_of(stream)
    capture = capture_of(stream)
    task = alloc_task(unsigned(size), pool)
    if capture is not None:
        capture.add(stream, task)
    else:
        task.about.keep()
        with ordering.within(stream):
            ordering.allocated(task.about.address, unsigned(size))
    put(pointer, task.about.address)


@entry("cuMemFreeAsync")
def free_async(address: int, stream: int) -> None:
    stream_of(stream)
    capture = capture_of(stream)
    if capture is None:
        owned = state.allocations.get(unsigned(address))
        if owned is not None:
            with ordering.within(stream):
                ordering.freed(unsigned(address), owned.size)
        task = Task(Kind.MEM_FREE, partial(free_in_order, address), unsigned(address))
        do_in_order(stream, task)
    else:
        freed = unsigned(address)
        capture.add(stream, Task(Kind.MEM_FREE, partial(give_back, freed), freed))


def alloc_task(size: int, pool: int = 0) -> Task:
    """Returns an allocation as a task; INVALID_HANDLE where there is no such pool."""
    pool = pool or _default_pool()
    found = state.handles.get(pool, Pool)
    made = GraphMemory(size, pool)
    used = sum(owned.size for owned in state.allocations.values() if owned.pool == pool)
    found.high = max(found.high, used)
    return Task(Kind.MEM_ALLOC, made.begin, made)
