"""Implements the `numba.cuda` API on Warploom's software GPU. To run a Numba program on Warploom,
change one import.

    from warploom import cuda

    @cuda.jit
    def saxpy(a, x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = a * x[i] + y[i]

Needs numba-cuda, which compiles; no CUDA driver and no C library. The device and its schedule are
those of the environment (`WARPLOOM_DEVICE`, as `warploom run` sets them) or of `use`. What a kernel
does wrong is raised where it is launched. What is used inside of kernels is numba-cuda's own.

In: Python kernels and arrays, as numba.cuda takes them. Out: the same results as on a GPU.
Everything is left to `clients.numba`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

try:
    from numba import cuda as _numba
except ImportError as missing:
    raise ImportError(
        '`from warploom import cuda` requires numba-cuda: run `pip install "warploom[numba]"`'
    ) from missing

from warploom.clients.numba.arrays import (
    In,
    InOut,
    Out,
    as_cuda_array,
    device_array,
    device_array_like,
    is_cuda_array,
    managed_array,
    mapped_array,
    mapped_array_like,
    pinned,
    pinned_array,
    pinned_array_like,
    to_device,
)
from warploom.clients.numba.devices import (
    close,
    current_context,
    defer_cleanup,
    detect,
    get_current_device,
    gpus,
    is_available,
    list_devices,
    profile_start,
    profile_stop,
    profiling,
    select_device,
)
from warploom.clients.numba.kernels import jit, quiet
from warploom.clients.numba.naming import stand_for_numba
from warploom.clients.numba.streams import (
    default_stream,
    event,
    event_elapsed_time,
    stream,
    synchronize,
)
from warploom.clients.session import use

__all__ = [
    "In",
    "InOut",
    "Out",
    "as_cuda_array",
    "close",
    "current_context",
    "default_stream",
    "defer_cleanup",
    "detect",
    "device_array",
    "device_array_like",
    "event",
    "event_elapsed_time",
    "get_current_device",
    "gpus",
    "is_available",
    "is_cuda_array",
    "jit",
    "list_devices",
    "managed_array",
    "mapped_array",
    "mapped_array_like",
    "pinned",
    "pinned_array",
    "pinned_array_like",
    "profile_start",
    "profile_stop",
    "profiling",
    "select_device",
    "stream",
    "synchronize",
    "to_device",
    "use",
]

_DRIVERS_OWN = ("external_stream", "open_ipc_array", "reduce", "Reduce", "set_memory_manager")
"""What numba-cuda does with a driver alone."""

stand_for_numba(sys.modules[__name__])
quiet()


def __getattr__(name: str) -> Any:
    """Returns what kernels use (`grid`, `threadIdx`, `shared`, `atomic`, `cg`, ...): Numba's
    own."""
    if name in _DRIVERS_OWN:
        raise AttributeError(
            f"cuda.{name} requires a CUDA driver: import numba.cuda instead of warploom.cuda, and "
            "run the program with `warploom run PROGRAM`"
        )
    if name == "random":
        return import_module(f"{__name__}.random")
    return getattr(_numba, name)
