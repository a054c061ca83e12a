"""The lock that one kernel of a device at a time holds."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from warploom.machine.turn import LaunchLock


class Held:
    """An object that only the function below refers to."""


def hold(lock: LaunchLock) -> weakref.ref[Held]:
    """Holds the lock, with an object in a variable; returns a weak reference to that."""
    held = Held()
    with lock:
        return weakref.ref(held)


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_the_lock_keeps_no_object_of_a_function_that_held_it() -> None:
    """A frame that refers to itself keeps the variables of all its callers, buffers among them,
    until a garbage collection."""
    assert hold(LaunchLock())() is None
