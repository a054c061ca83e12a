"""The objects of OpenCL and their handles: addresses of two words, the first of which leads to the
library's functions (cl_khr_icd).

An object ends when the program has released it as often as it retained it, and nothing else needs
it: contexts stay for what was made in them. Only then is its handle invalid.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar, TypeVar

from warploom.clients.driver.state import Handles, frames_if_wanted
from warploom.clients.opencl.errors import ClError, Status, demand

LIBRARY = Path(__file__).parents[1] / "lib" / "libwarploom_opencl.so"

SLAB = 1024
"""Handles that are made at once."""

RESTING = 1 << 16
"""A handle is not given again before so many others were released: its memory is read by loaders
even when a program uses it wrongly."""

lock = threading.RLock()
"""Held while objects and the order of commands change; never while a program's function runs."""

handles = Handles()


class Addresses:
    """Gives addresses that begin with the table of functions, and with the loader's own where there
    is one (cl_khr_icd 2.0)."""

    def __init__(self) -> None:
        self._slabs: list[ctypes.Array[ctypes.c_uint64]] = []
        self._unused: deque[int] = deque()
        self._resting: deque[int] = deque()
        self.released: dict[int, str] = {}
        """What resting handles were."""

    def take(self) -> int:
        """Returns an address that is nobody's."""
        if len(self._resting) > RESTING:
            self._unused.append(self._resting.popleft())
            self.released.pop(self._unused[-1], None)
        if not self._unused:
            slab = (ctypes.c_uint64 * (2 * SLAB))(*((dispatch_table(), 0) * SLAB))
            self._slabs.append(slab)
            start = ctypes.addressof(slab)
            self._unused.extend(range(start, start + 16 * SLAB, 16))
        address = self._unused.popleft()
        ctypes.c_uint64.from_address(address + 8).value = dispatch_data().value or 0
        return address

    def rest(self, address: int, what: str) -> None:
        """Takes an address back."""
        self._resting.append(address)
        self.released[address] = what


@cache
def dispatch_table() -> int:
    """Returns the address of the library's table of functions."""
    table = (ctypes.c_void_p * 1).in_dll(ctypes.CDLL(str(LIBRARY)), "warploom_opencl_dispatch")
    return ctypes.addressof(table)


@cache
def dispatch_data() -> ctypes.c_void_p:
    """Returns where the library keeps the address of the loader's table."""
    return ctypes.c_void_p.in_dll(ctypes.CDLL(str(LIBRARY)), "warploom_opencl_data")


addresses = Addresses()


class ClObject:
    """An object with a handle. `references` are the program's, `uses` those of other objects and of
    commands that are not done."""

    what: ClassVar[str] = "object"
    invalid: ClassVar[Status] = Status.INVALID_VALUE

    def __init__(self) -> None:
        with lock:
            self.references, self.uses = 1, 0
            self.handle = addresses.take()
            handles.put(self.handle, self)
        self.made = frames_if_wanted()
        self.destructors: list[Callable[[], object]] = []

    def retain(self) -> None:
        """Counts one more reference of the program."""
        with lock:
            self.references += 1

    def release(self) -> None:
        """Counts one less; INVALID where the program has none left."""
        with lock:
            none = f"the {self.what} has been released too many times"
            demand(self.references > 0, self.invalid, none)
            self.references -= 1
            over = self._is_over()
        if over:
            self._finish()

    def hold(self) -> None:
        """Notes that something needs the object."""
        with lock:
            self.uses += 1

    def drop(self) -> None:
        """Notes that something needs it no more."""
        with lock:
            self.uses -= 1
            over = self._is_over()
        if over:
            self._finish()

    def _is_over(self) -> bool:
        if self.references > 0 or self.uses > 0 or not handles.has(self.handle, ClObject):
            return False
        handles.remove(self.handle)
        addresses.rest(self.handle, self.what)
        return True

    def _finish(self) -> None:
        for destructor in reversed(self.destructors):
            destructor()
        self.end()

    def end(self) -> None:
        """Gives back what the object has."""


T = TypeVar("T", bound=ClObject)


def get(handle: int, kind: type[T], invalid: Status | None = None) -> T:
    """Returns the object of a handle; ClError, with the kind's own code, where it is of none."""
    found = handles.find(handle, kind)
    if found is not None:
        return found
    if not handle:
        why = f"the {kind.what} is null"
    elif handle in addresses.released:
        why = f"the {addresses.released[handle]} was released"
    else:
        why = f"{handle:#x} is not a valid {kind.what}"
    raise ClError(kind.invalid if invalid is None else invalid, why)


def get_all(given: Sequence[int], kind: type[T], invalid: Status | None = None) -> list[T]:
    """Returns the objects of several handles."""
    return [get(handle, kind, invalid) for handle in given]


def register_counting(
    entry: Callable[..., Callable[..., object]], name: str, kind: type[ClObject]
) -> None:
    """Registers the functions that retain and release objects of a kind."""

    def retain(handle: int) -> None:
        get(handle, kind).retain()

    def release(handle: int) -> None:
        get(handle, kind).release()

    entry(f"clRetain{name}")(retain)
    entry(f"clRelease{name}")(release)
