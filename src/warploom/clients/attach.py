"""Where a stand-in library comes in from C: finds who serves it and tells it the address.

`native/bridge.h` is the other side.
"""

from __future__ import annotations

import ctypes
from importlib import import_module

from warploom.clients.registry import Registry

SERVERS = {
    "libcuda.so.1": "warploom.clients.driver.entries",
    "libcudart.so.13": "warploom.clients.runtime.entries",
    "libnvJitLink.so.13": "warploom.clients.jitlink",
    "libnvrtc.so.13": "warploom.clients.nvrtc",
}
"""The module of each library; its `registry` has the entries."""

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))


class Control(ctypes.Structure):
    """`bridge_control` of `native/bridge.h`."""

    _fields_ = (
        ("serve", ctypes.c_void_p),
        ("started", ctypes.c_int),
        ("count", ctypes.c_int32),
        ("names", ctypes.POINTER(ctypes.c_char_p)),
        ("words", ctypes.POINTER(ctypes.c_int8)),
        ("library", ctypes.c_char_p),
    )


_kept: list[object] = []
"""What C has addresses of."""


def attach(address: int) -> None:
    """Serve the library whose control block is at `address`."""
    control = Control.from_address(address)
    if control.serve:
        return
    registry = import_module(SERVERS[control.library.decode()]).registry
    assert isinstance(registry, Registry)
    names = [(control.names[number] or b"").decode() for number in range(control.count)]
    function = _FUNCTION(registry.server(names, control.words[: control.count]))
    _kept.append(function)
    registry.started = ctypes.c_int.from_address(address + Control.started.offset)
    control.serve = ctypes.cast(function, ctypes.c_void_p).value
