"""User objects: what a program wants to keep for as long as a graph may use it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from warploom.clients.driver.graphs.graphs import graph_at
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import put, unsigned

_DESTROY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
NO_SYNC, MOVE = 1, 1


@dataclass(eq=False)
class UserObject:
    """Data of the program's, what destroys it, and how many references there are."""

    data: int
    destroy: int
    references: int


def _at(handle: int) -> UserObject:
    return state.handles.get(handle, UserObject, Result.INVALID_VALUE)


@entry("cuUserObjectCreate")
def create(target: int, data: int, destroy: int, references: int, flags: int) -> None:
    if not destroy or references <= 0 or flags != NO_SYNC:
        raise DriverError(Result.INVALID_VALUE)
    put(target, state.handles.add(UserObject(data, destroy, references)))


@entry("cuUserObjectRetain")
def retain(handle: int, count: int) -> None:
    _at(handle).references += count


@entry("cuUserObjectRelease")
def release(handle: int, count: int) -> None:
    """With the last reference the object goes."""
    found = _at(handle)
    if count > found.references:
        raise DriverError(Result.INVALID_VALUE)
    found.references -= count
    if not found.references:
        state.handles.remove(handle)
        _DESTROY(found.destroy)(found.data or None)


@entry("cuGraphRetainUserObject")
def keep(graph: int, handle: int, count: int, flags: int) -> None:
    """Adds references of the graph: new ones, or (MOVE) those of the caller."""
    found = graph_at(graph)
    if not flags & MOVE:
        retain(handle, count)
    elif count > _at(handle).references:
        raise DriverError(Result.INVALID_VALUE)
    found.kept[handle] = found.kept.get(handle, 0) + unsigned(count)


@entry("cuGraphReleaseUserObject")
def let_go(graph: int, handle: int, count: int) -> None:
    found = graph_at(graph)
    if count > found.kept.get(handle, 0):
        raise DriverError(Result.INVALID_VALUE)
    found.kept[handle] -= count
    release(handle, count)


def share(kept: dict[int, int]) -> dict[int, int]:
    """Returns the same references once more, for a copy of a graph."""
    held = {handle: count for handle, count in kept.items() if count}
    for handle, count in held.items():
        retain(handle, count)
    return held


def give_up(kept: dict[int, int]) -> None:
    """Drops the references of a graph that ends."""
    for handle, count in kept.items():
        if count:
            release(handle, count)
    kept.clear()
