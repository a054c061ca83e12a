"""Launches in the way of CUDA 3: shapes and parameters are set one by one."""

from __future__ import annotations

import ctypes

from warploom.clients.driver.launches import BUFFER_POINTER, BUFFER_SIZE, Request, launch_now
from warploom.clients.driver.programs import Function, function_at
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.table import entry


@entry("cuFuncSetBlockShape")
def set_block(function: int, x: int, y: int, z: int) -> None:
    function_at(function).shape = (x, y, z)


@entry("cuFuncSetSharedSize")
def set_shared(function: int, size: int) -> None:
    function_at(function).shared_bytes = size


@entry("cuParamSetSize")
def set_size(function: int, size: int) -> None:
    found = function_at(function)
    found.parameters = found.parameters[:size].ljust(size, b"\0")


@entry("cuParamSeti", "cuParamSetf")
def set_word(function: int, offset: int, value: int) -> None:
    _put(function_at(function), offset, (value & 0xFFFFFFFF).to_bytes(4, "little"))


@entry("cuParamSetv")
def set_bytes(function: int, offset: int, pointer: int, size: int) -> None:
    if not pointer:
        raise DriverError(Result.INVALID_VALUE)
    _put(function_at(function), offset, ctypes.string_at(pointer, size))


def _put(function: Function, offset: int, data: bytes) -> None:
    end = offset + len(data)
    if not offset >= 0 or end > 4096:
        raise DriverError(Result.INVALID_VALUE)
    if len(function.parameters) < end:
        function.parameters = function.parameters.ljust(end, b"\0")
    function.parameters[offset:end] = data


@entry("cuLaunchGrid", "cuLaunchGridAsync")
def launch_grid(function: int, width: int, height: int) -> None:
    found = function_at(function)
    request = Request((width, height, 1), found.shape, found.shared_bytes, 0)
    _launch_buffer(found, request)


@entry("cuLaunch")
def launch_one(function: int) -> None:
    launch_grid(function, 1, 1)


def _launch_buffer(function: Function, request: Request) -> None:
    data = ctypes.create_string_buffer(bytes(function.parameters), len(function.parameters) or 1)
    size = ctypes.c_uint64(len(function.parameters))
    words = (ctypes.c_uint64 * 5)(
        BUFFER_POINTER, ctypes.addressof(data), BUFFER_SIZE, ctypes.addressof(size), 0
    )
    launch_now(function, request, 0, ctypes.addressof(words))
