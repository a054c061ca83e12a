"""Attributes of a kernel: its registers, its memory, its limits."""

from __future__ import annotations

from warploom.clients.driver.programs import Function, function_at
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import put_int
from warploom.devices.occupancy import Demand, occupancy_of
from warploom.host.programs.targets import target_of

DYNAMIC_SHARED, CARVEOUT = 8, 9
SETTABLE = (8, 9, 10, 11, 12, 13, 14, 15)


def max_threads(function: Function) -> int:
    """Returns the largest block that fits: by registers, and by what the kernel declares."""
    spec, kernel = state.device.spec, function.kernel
    most = spec.max_threads_per_block
    for directive, values in kernel.function.directives:
        if directive in ("maxntid", "reqntid"):
            size = 1
            for value in values:
                size *= int(value)
            most = min(most, size)
    registers = kernel.resources.registers
    while most > spec.warp_size and not occupancy_of(spec, Demand(most, registers)).active_blocks:
        most -= spec.warp_size
    return most


def value_of(function: Function, number: int) -> int:
    """Returns an attribute by CUDA's number; INVALID_VALUE where there is none."""
    kernel, spec = function.kernel, state.device.spec
    target, _ = target_of(function.program.module.ir)
    match number:
        case 0:
            return max_threads(function)
        case 1:
            return kernel.program.shared_bytes
        case 2:
            return function.const_bytes
        case 3:
            return kernel.program.local_bytes
        case 4:
            return kernel.resources.registers
        case 5:
            return target[0] * 10 + target[1]
        case 6:
            return spec.compute_capability[0] * 10 + spec.compute_capability[1]
        case 8:
            return function.dynamic_limit
        case 9:
            return function.attributes.get(CARVEOUT, -1)
        case 7 | 10 | 11 | 12 | 13 | 14 | 15 | 16:
            return function.attributes.get(number, 0)
        case _:
            raise DriverError(Result.INVALID_VALUE)


@entry("cuFuncGetAttribute")
def function_attribute(value: int, number: int, function: int) -> None:
    state.check()
    put_int(value, value_of(function_at(function), number))


@entry("cuFuncSetAttribute")
def set_attribute(function: int, number: int, value: int) -> None:
    state.check()
    found = function_at(function)
    if number not in SETTABLE:
        raise DriverError(Result.INVALID_VALUE)
    if number == DYNAMIC_SHARED:
        most = state.device.spec.shared_bytes_per_block_optin - found.kernel.program.shared_bytes
        if not 0 <= value <= most:
            raise DriverError(Result.INVALID_VALUE)
    found.attributes[number] = value


@entry("cuFuncSetCacheConfig", "cuFuncSetSharedMemConfig")
def set_config(function: int, _config: int) -> None:
    """Preferences, which change no result."""
    function_at(function)
