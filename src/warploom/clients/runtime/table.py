"""The registry of the runtime's entries; each thread's last error; the primary context."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence

from warploom.clients.driver.contexts import primary_retain
from warploom.clients.driver.devices import init
from warploom.clients.driver.results import Result
from warploom.clients.driver.state import state
from warploom.clients.driver.table import before as driver_before
from warploom.clients.driver.table import code_of, code_of_missing, finish
from warploom.clients.host_stack import calling_library
from warploom.clients.nvidia_libraries import machine_code_of
from warploom.clients.registry import Registry, nothing

_last: dict[int, int] = {}


def remember(code: int) -> int:
    """Records an error for cudaGetLastError; the runtime's codes are the driver's."""
    if code not in (0, Result.NOT_READY):
        _last[threading.get_ident()] = code
    return code


def last_error(*, forget: bool) -> int:
    """Returns the last error of this thread."""
    thread = threading.get_ident()
    return _last.pop(thread, 0) if forget else _last.get(thread, 0)


def forget_errors() -> None:
    """Forgets the last error of each thread."""
    _last.clear()


def begin() -> None:
    """Makes the primary context current, as the runtime does at its first call."""
    if not state.process:
        init(0)
    state.check()
    if not state.stack:
        if state.primary is None:
            handle = ctypes.c_uint64()
            primary_retain(ctypes.addressof(handle), 0)
        assert state.primary is not None
        state.stack.append(state.primary)


def _before(name: str) -> Callable[[], None]:
    """Returns what is done before each call of a function: the primary context is made current, and
    the driver's functions do what they do."""
    wait = driver_before(name)
    if wait is nothing:
        return begin

    def begin_and_wait() -> None:
        begin()
        wait()

    return begin_and_wait


def _failed(error: BaseException, name: str) -> int:
    code = code_of(error, name)
    # A library of NVIDIA's has errors of its own: left here, one would fail the program's launches.
    return code if machine_code_of(calling_library()) else remember(code)


def _missing(name: str, words: Sequence[int]) -> int:
    return remember(code_of_missing(name, words))


registry = Registry(_failed, _missing, finish, _before)
entry = registry.entry
