"""Launches machine code on a real GPU by the CUDA driver (package cuda-bindings)."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class DeviceArray:
    """Holds the address of an array in device memory, its shape and type."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Counts the bytes of the array."""
        return int(np.prod(self.shape)) * self.dtype.itemsize


@dataclass(frozen=True)
class Function:
    """Holds a loaded kernel and the sizes of its parameters in bytes."""

    handle: Any
    sizes: tuple[int, ...]
    registers: int
    most_threads: int
    """More threads of a block do not fit, by the registers that they take."""


class Gpu:
    """The first GPU of this computer, by its primary context.

    Every method raises RuntimeError with the driver's error where a call fails.
    """

    def __init__(self) -> None:
        _checked(driver.cuInit(0))
        self._device = _checked(driver.cuDeviceGet(0))
        _checked(driver.cuCtxSetCurrent(_checked(driver.cuDevicePrimaryCtxRetain(self._device))))
        self.name: str = _checked(driver.cuDeviceGetName(128, self._device)).decode().strip("\0")
        self.driver: int = _checked(driver.cuDriverGetVersion())

    def close(self) -> None:
        """Wait for all work, and leave the context: tools that watch a process report then."""
        _checked(driver.cuCtxSynchronize())
        _checked(driver.cuDevicePrimaryCtxRelease(self._device))

    def load(self, code: bytes, kernel: str) -> Function:
        """Returns a kernel of a .cubin."""
        module = _checked(driver.cuModuleLoadData(np.frombuffer(code, np.uint8).ctypes.data))
        handle = _checked(driver.cuModuleGetFunction(module, kernel.encode()))
        named = driver.CUfunction_attribute
        registers, threads = (
            int(_checked(driver.cuFuncGetAttribute(one, handle)))
            for one in (
                named.CU_FUNC_ATTRIBUTE_NUM_REGS,
                named.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
            )
        )
        return Function(handle, _parameter_sizes(handle), registers, threads)

    def to_device(self, array: Array) -> DeviceArray:
        """Copies an array to new device memory."""
        array = np.ascontiguousarray(array)
        there = self.allocate(array.shape, array.dtype)
        _checked(driver.cuMemcpyHtoD(there.address, array.ctypes.data, array.nbytes))
        return there

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        """Returns an array in new device memory that nobody has written."""
        nbytes = int(np.prod(shape)) * dtype.itemsize
        return DeviceArray(int(_checked(driver.cuMemAlloc(max(nbytes, 1)))), shape, dtype)

    def to_host(self, array: DeviceArray) -> Array:
        """Copies an array from device memory."""
        found = np.empty(array.shape, array.dtype)
        _checked(driver.cuMemcpyDtoH(found.ctypes.data, array.address, array.nbytes))
        return found

    def copy(self, to: DeviceArray, source: DeviceArray) -> None:
        """Copies an array within device memory."""
        _checked(driver.cuMemcpyDtoD(to.address, source.address, source.nbytes))

    def free(self, array: DeviceArray) -> None:
        """Frees an array's memory."""
        _checked(driver.cuMemFree(array.address))

    def launch(
        self,
        function: Function,
        grid: Sequence[int],
        block: Sequence[int],
        shared_bytes: int,
        arguments: Sequence[DeviceArray | int | float],
        cooperative: bool = False,
    ) -> float:
        """Launches a kernel and waits for its end; returns seconds between two events around it."""
        packed = [
            ctypes.create_string_buffer(_packed(one, size), size)
            for one, size in zip(arguments, function.sizes, strict=True)
        ]
        pointers = (ctypes.c_void_p * len(packed))(*map(ctypes.addressof, packed))
        sides = (*_three(grid), *_three(block))
        begin, end = (_checked(driver.cuEventCreate(0)) for _ in range(2))
        if shared_bytes > 48 << 10:
            most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _checked(driver.cuFuncSetAttribute(function.handle, most, shared_bytes))
        _checked(driver.cuEventRecord(begin, 0))
        at = ctypes.addressof(pointers)
        if cooperative:
            launch = function.handle, *sides, shared_bytes, 0, at
            _checked(driver.cuLaunchCooperativeKernel(*launch))
        else:
            _checked(driver.cuLaunchKernel(function.handle, *sides, shared_bytes, 0, at, 0))
        _checked(driver.cuEventRecord(end, 0))
        _checked(driver.cuCtxSynchronize())
        seconds = _checked(driver.cuEventElapsedTime(begin, end)) / 1e3
        _checked(driver.cuEventDestroy(begin))
        _checked(driver.cuEventDestroy(end))
        return seconds


def _checked(answer: tuple[Any, ...]) -> Any:
    """Returns what a call of the driver gave; raises RuntimeError with the name of its error."""
    status, *values = answer
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the CUDA driver answered {status.name}")
    return values[0] if values else None


def _parameter_sizes(handle: Any) -> tuple[int, ...]:
    sizes: list[int] = []
    while True:
        status, _, size = driver.cuFuncGetParamInfo(handle, len(sizes))
        if status != driver.CUresult.CUDA_SUCCESS:
            return tuple(sizes)
        sizes.append(int(size))


def _packed(value: DeviceArray | int | float, size: int) -> bytes:
    """Returns the bytes of an argument of a parameter of so many bytes."""
    if isinstance(value, DeviceArray):
        return struct.pack("<Q", value.address)
    if isinstance(value, float | np.floating):
        return struct.pack({2: "<e", 4: "<f", 8: "<d"}[size], value)
    return (int(value) % (1 << 8 * size)).to_bytes(size, "little")


def _three(sides: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*sides, 1, 1)[:3]
    return x, y, z
