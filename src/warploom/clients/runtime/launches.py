"""Launches by `<<<>>>` and by calls, and what the runtime reports of kernels."""

from __future__ import annotations

import ctypes
import threading

from warploom.clients.driver.attributes_of_functions import set_attribute, value_of
from warploom.clients.driver.launches import launch, launch_cooperative, launch_with
from warploom.clients.driver.libraries import get_name
from warploom.clients.driver.libraries import parameter_info as driver_parameter_info
from warploom.clients.driver.occupancy import available_shared, best_block, max_active_blocks
from warploom.clients.driver.programs import function_at
from warploom.clients.driver.state import check_device
from warploom.clients.driver.structures import LaunchConfig
from warploom.clients.driver.words import put
from warploom.clients.runtime.registration import function_of
from warploom.clients.runtime.table import entry

_Dim3 = ctypes.c_uint * 3

_configurations: dict[int, list[tuple[tuple[int, ...], tuple[int, ...], int, int]]] = {}
"""What `<<<>>>` pushes, by thread, until the stub of the kernel pops it."""


def _dims(address: int) -> tuple[int, int, int]:
    x, y, z = _Dim3.from_address(address)
    return x, y, z


@entry("__cudaPushCallConfiguration")
def push(grid: int, block: int, shared_bytes: int, stream: int) -> None:
    stack = _configurations.setdefault(threading.get_ident(), [])
    stack.append((_dims(grid), _dims(block), shared_bytes, stream))


@entry("__cudaPopCallConfiguration")
def pop(grid: int, block: int, shared_bytes: int, stream: int) -> None:
    dims, threads, size, queue = _configurations[threading.get_ident()].pop()
    _Dim3.from_address(grid)[:] = list(dims)
    _Dim3.from_address(block)[:] = list(threads)
    put(shared_bytes, size)
    put(stream, queue)


@entry("__cudaGetKernel", "cudaGetKernel", "cudaGetFuncBySymbol")
def get_kernel(kernel: int, host: int) -> None:
    put(kernel, function_of(host))


@entry("__cudaLaunchKernel")
def _launch(
    kernel: int, grid: int, block: int, arguments: int, shared_bytes: int, stream: int
) -> int | None:
    given = (*_dims(grid), *_dims(block), shared_bytes, stream, arguments, 0)
    launch(kernel, *given)


@entry("cudaLaunchKernel")
def launch_function(
    host: int, grid: int, block: int, arguments: int, shared_bytes: int, stream: int
) -> int | None:
    return _launch(function_of(host), grid, block, arguments, shared_bytes, stream)


@entry("cudaLaunchCooperativeKernel")
def launch_all(
    host: int, grid: int, block: int, arguments: int, shared_bytes: int, stream: int
) -> None:
    kernel = function_of(host)
    launch_cooperative(kernel, *_dims(grid), *_dims(block), shared_bytes, stream, arguments)


class _Config(ctypes.Structure):
    """cudaLaunchConfig_t."""

    _fields_ = (
        ("grid", _Dim3),
        ("block", _Dim3),
        ("shared_bytes", ctypes.c_size_t),
        ("stream", ctypes.c_uint64),
        ("attributes", ctypes.c_uint64),
        ("count", ctypes.c_uint),
    )


@entry("cudaLaunchKernelExC")
def launch_ex(config: int, host: int, arguments: int) -> None:
    """Launches by the driver's structure, which differs in the width of one field."""
    given = _Config.from_address(config)
    made = LaunchConfig(
        given.grid, given.block, given.shared_bytes, given.stream, given.attributes, given.count
    )
    launch_with(ctypes.addressof(made), function_of(host), arguments, 0)


class _FunctionAttributes(ctypes.Structure):
    """cudaFuncAttributes; what follows are fields of newer devices, left as they are."""

    _fields_ = (
        ("shared", ctypes.c_size_t),
        ("const", ctypes.c_size_t),
        ("local", ctypes.c_size_t),
        ("max_threads", ctypes.c_int),
        ("registers", ctypes.c_int),
        ("ptx_version", ctypes.c_int),
        ("binary_version", ctypes.c_int),
        ("cache_mode", ctypes.c_int),
        ("max_dynamic_shared", ctypes.c_int),
        ("carveout", ctypes.c_int),
    )


@entry("cudaFuncGetAttributes")
def function_attributes(attributes: int, host: int) -> None:
    function = function_at(function_of(host))
    fields = _FunctionAttributes.from_address(attributes)
    fields.shared, fields.const, fields.local = (value_of(function, number) for number in (1, 2, 3))
    fields.max_threads, fields.registers = value_of(function, 0), value_of(function, 4)
    fields.ptx_version, fields.binary_version = value_of(function, 5), value_of(function, 6)
    fields.max_dynamic_shared, fields.carveout = value_of(function, 8), value_of(function, 9)


@entry("cudaFuncSetAttribute")
def set_function_attribute(host: int, number: int, value: int) -> None:
    set_attribute(function_of(host), number, value)


@entry("cudaKernelSetAttributeForDevice")
def set_kernel_attribute(kernel: int, number: int, value: int, device: int) -> None:
    check_device(device)
    set_attribute(function_of(kernel), number, value)


@entry("cudaFuncSetCacheConfig", "cudaFuncSetSharedMemConfig")
def set_preference(host: int, _config: int) -> None:
    function_of(host)


@entry(
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
)
def active_blocks(count: int, host: int, threads: int, dynamic: int) -> None:
    max_active_blocks(count, function_of(host), threads, dynamic)


@entry("cudaOccupancyMaxPotentialBlockSize")
def potential_block(grid: int, block: int, host: int, dynamic: int, limit: int) -> None:
    best_block(grid, block, function_of(host), 0, dynamic, limit)


@entry("cudaOccupancyAvailableDynamicSMemPerBlock")
def available_shared_bytes(size: int, host: int, blocks: int, threads: int) -> None:
    available_shared(size, function_of(host), blocks, threads)


@entry("cudaFuncGetParamInfo")
def parameter_info(host: int, number: int, offset: int, size: int) -> None:
    driver_parameter_info(function_of(host), number, offset, size)


@entry("cudaFuncGetName")
def function_name(name: int, host: int) -> None:
    get_name(name, function_of(host))
