"""Compiles programs for devices that are older than the oldest target of NVIDIA's compilers.

Such a program is compiled for the oldest target: the machines run any PTX whose instructions the
device has, and refuse others by name. `frontends.cuda_cpp` does the same for CUDA C++.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from warploom.clients.nvidia_libraries import real_library
from warploom.clients.session import session
from warploom.frontends.cuda_cpp import FIRST_WITH_FMA

FIRST = (1, 0)


@cache
def oldest_target() -> int:
    """Returns the oldest architecture that NVRTC compiles for, such as 75."""
    real, number = real_library("libnvrtc.so.13"), ctypes.c_int()
    real.nvrtcGetNumSupportedArchs(ctypes.byref(number))
    targets = (ctypes.c_int * number.value)()
    real.nvrtcGetSupportedArchs(targets)
    return min(targets)


def target_for(architecture: str) -> str:
    """Returns the target that code for an architecture such as "90a" is compiled for: the oldest
    where the device of this session is of that architecture and older; else as it is."""
    major, minor = session().device.spec.compute_capability
    is_own = architecture == f"{major}{minor}"
    return str(max(int(architecture), oldest_target())) if is_own else architecture


def lacks_fma() -> bool:
    """Returns whether the device of this session has no fused multiply-add of `float`."""
    return session().device.spec.compute_capability < FIRST_WITH_FMA


def accept_old_devices(driver: Any) -> None:
    """Makes Numba, by its module `cudadrv.driver`, take a device of any compute capability."""
    driver.MIN_REQUIRED_CC = FIRST


def compile_for_old_devices(nvrtc: Any) -> None:
    """Makes Numba, by its module `cudadrv.nvrtc`, choose the oldest target for older devices."""
    nvrtc.find_closest_arch = closest_target(nvrtc.find_closest_arch, nvrtc.get_supported_ccs)


def closest_target(
    find: Callable[[tuple[int, int]], tuple[int, int]],
    supported: Callable[[], list[tuple[int, int]]],
) -> Callable[[tuple[int, int]], tuple[int, int]]:
    """Returns `find`, which raises an error for a device that is older than all `supported`
    targets, such that it returns the oldest target for one."""

    @wraps(find)
    def closest(cc: tuple[int, int]) -> tuple[int, int]:
        return find(max(cc, min(supported())))

    return closest


def multiply_then_add(nvvm: Any) -> None:
    """Makes Numba, by its module `cudadrv.nvvm`, fuse no products and sums if the device has no
    instruction that does."""
    nvvm.compile_ir = without_fma(nvvm.compile_ir)


def without_fma(compile_ir: Callable[..., bytes]) -> Callable[..., bytes]:
    """Returns NVVM's `compile_ir` with fusion off where the device of this session lacks it."""

    @wraps(compile_ir)
    def compile_separately(ir: Any, **options: Any) -> bytes:
        if lacks_fma():
            options = {"fma": False, **options}
        return compile_ir(ir, **options)

    return compile_separately
