"""Connects a stand-in library in C to the module that serves it.

`native/bridge.h` is the other side.
"""

from __future__ import annotations

import atexit
import ctypes
from importlib import import_module
from time import monotonic, sleep

from warploom.clients.registry import Registry

SERVERS = {
    "libcuda.so.1": "warploom.clients.driver.entries",
    "libcudart.so.13": "warploom.clients.runtime.entries",
    "libnvJitLink.so.13": "warploom.clients.jitlink",
    "libnvrtc.so.13": "warploom.clients.nvrtc",
    "libwarploom_opencl.so": "warploom.clients.opencl.entries",
}
"""The module of each library; its `registry` has the entries."""

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))


class Control(ctypes.Structure):
    """`bridge_control` of `native/bridge.h`."""

    _fields_ = (
        ("serve", ctypes.c_void_p),
        ("started", ctypes.c_int),
        ("ending", ctypes.c_int),
        ("calls", ctypes.c_int),
        ("interrupted", ctypes.c_int),
        ("count", ctypes.c_int32),
        ("names", ctypes.POINTER(ctypes.c_char_p)),
        ("words", ctypes.POINTER(ctypes.c_int8)),
        ("library", ctypes.c_char_p),
    )


_kept: list[object] = []
"""What C has addresses of."""

_controls: list[Control] = []

LONGEST_WAIT = 1.0
"""So many seconds are other threads waited for at the end."""


def attach(address: int) -> None:
    """Serves the library whose control block is at `address`."""
    control = Control.from_address(address)
    if control.serve:
        return
    registry = import_module(SERVERS[control.library.decode()]).registry
    assert isinstance(registry, Registry)
    names = [(control.names[number] or b"").decode() for number in range(control.count)]
    function = _FUNCTION(registry.server(names, control.words[: control.count]))
    _kept.append(function)
    if not _controls:
        atexit.register(_turn_threads_away)
    _controls.append(control)
    registry.started = ctypes.c_int.from_address(address + Control.started.offset)
    registry.interrupted = ctypes.c_int.from_address(address + Control.interrupted.offset)
    control.serve = ctypes.cast(function, ctypes.c_void_p).value


def _turn_threads_away() -> None:
    """Refuses calls of all other threads from now on, and waits for threads that are in a call."""
    for control in _controls:
        control.ending = 1
    end = monotonic() + LONGEST_WAIT
    while any(control.calls for control in _controls) and monotonic() < end:
        sleep(0.001)
