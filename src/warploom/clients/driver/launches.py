"""Launches. What a kernel does wrong is told by the next call, as CUDA does, and explained here."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from warploom.clients.driver.programs import Function, function_at
from warploom.clients.driver.results import STICKY, DriverError, Result, result_of
from warploom.clients.driver.state import state
from warploom.clients.driver.streams import DEFAULT_STREAMS, stream_of
from warploom.clients.driver.structures import LaunchAttribute
from warploom.clients.driver.table import entry, explain, spoil
from warploom.clients.driver.words import word_at
from warploom.clients.registry import Entry
from warploom.clients.session import session
from warploom.core.errors import Dim3, WarploomError
from warploom.host.launcher import Launcher

BUFFER_POINTER, BUFFER_SIZE = 1, 2
COOPERATIVE, CLUSTER = 2, 4

CONFIG = struct.Struct("@7I2QI")
"""CUlaunchConfig: the grid's and the block's sizes, bytes of dynamic shared memory, the stream, the
attributes and how many they are."""


@dataclass(frozen=True)
class _Request:
    """A launch without its parameters."""

    grid: Dim3
    block: Dim3
    shared_bytes: int
    stream: int
    cooperative: bool = False


def _launching(*, cooperative: bool) -> Entry:
    """The entry of a launch whose dimensions are its arguments."""

    def launch(
        function: int,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        block_x: int,
        block_y: int,
        block_z: int,
        shared_bytes: int,
        stream: int,
        parameters: int,
        extra: int = 0,
    ) -> None:
        grid, block = (grid_x, grid_y, grid_z), (block_x, block_y, block_z)
        request = _Request(grid, block, shared_bytes, stream, cooperative)
        _launch(function_at(function), request, parameters, extra)

    return launch


launch = entry("cuLaunchKernel")(_launching(cooperative=False))
launch_cooperative = entry("cuLaunchCooperativeKernel")(_launching(cooperative=True))


@entry("cuLaunchKernelEx")
def launch_with(config: int, function: int, parameters: int, extra: int) -> None:
    if not config:
        raise DriverError(Result.INVALID_VALUE)
    *dims, shared_bytes, stream, attributes, count = CONFIG.unpack(
        ctypes.string_at(config, CONFIG.size)
    )
    cooperative = False
    if attributes and count:
        cooperative = _is_cooperative((LaunchAttribute * count).from_address(attributes))
    x, y, z, block_x, block_y, block_z = dims
    grid, block = (x, y, z), (block_x, block_y, block_z)
    request = _Request(grid, block, shared_bytes, stream, cooperative)
    _launch(function_at(function), request, parameters, extra)


def _is_cooperative(attributes: Iterable[LaunchAttribute]) -> bool:
    """Whether attributes ask for a cooperative launch; DriverError for what is not there."""
    cooperative = False
    for given in attributes:
        if given.id == COOPERATIVE:
            cooperative = bool(given.value[0])
        elif given.id == CLUSTER and tuple(given.value[:3]) not in ((1, 1, 1), (0, 0, 0)):
            raise DriverError(
                Result.NOT_SUPPORTED, "clusters of more than one block are not there yet"
            )
    return cooperative


def _launch(function: Function, request: _Request, parameters: int, extra: int) -> None:
    state.current()
    if request.stream not in DEFAULT_STREAMS:
        stream_of(request.stream)
    session().launched = True
    state.enter_launch()
    try:
        function.program.begin_launch()
        try:
            _run(function, request, parameters, extra)
        finally:
            function.program.end_launch()
    except WarploomError as error:
        explain(error)
        result = result_of(error)
        if result not in STICKY:
            raise DriverError(result) from None
        spoil(result)
    finally:
        state.leave_launch()


def _run(function: Function, request: _Request, parameters: int, extra: int) -> None:
    """Launch, and wait for the end. Raises WarploomError for what the kernel did."""
    kernel = function.kernel
    if request.shared_bytes > function.dynamic_limit:
        raise DriverError(
            Result.INVALID_VALUE,
            f"{kernel.name} may have {function.dynamic_limit} bytes of dynamic shared memory a"
            f" block, and the launch asks for {request.shared_bytes}: raise"
            f" MAX_DYNAMIC_SHARED_SIZE_BYTES of the kernel first",
        )
    data = _packed(function, parameters, extra)
    launcher = Launcher(kernel, request.grid, request.block, None, request.shared_bytes)
    launcher.packed(data, **session().launch_options(cooperative=request.cooperative))


def _packed(function: Function, parameters: int, extra: int) -> bytes:
    """The parameter block: from a pointer to each value, or from a buffer of all of them."""
    data = bytearray(function.kernel.program.parameter_bytes)
    if parameters:
        places = function.places
        sources = struct.unpack(f"{len(places)}Q", ctypes.string_at(parameters, 8 * len(places)))
        for (offset, size), source in zip(places, sources, strict=True):
            if not source:
                raise DriverError(Result.INVALID_VALUE)
            data[offset : offset + size] = ctypes.string_at(source, size)
    elif extra:
        given = _buffer(extra)
        if len(given) < _end(function):
            raise DriverError(Result.INVALID_VALUE)
        data[:] = given[: len(data)].ljust(len(data), b"\0")
    elif function.places:
        raise DriverError(Result.INVALID_VALUE)
    return bytes(data)


def _end(function: Function) -> int:
    return max((offset + size for offset, size in function.places), default=0)


def _buffer(extra: int) -> bytes:
    """The bytes that an `extra` list leads to."""
    at, size = 0, 0
    while (key := word_at(extra)) != 0:
        value = word_at(extra + 8)
        if key == BUFFER_POINTER:
            at = value
        elif key == BUFFER_SIZE:
            size = word_at(value)
        else:
            raise DriverError(Result.INVALID_VALUE)
        extra += 16
    return ctypes.string_at(at, size) if at else b""


# ---- the way of CUDA 3 ---------------------------------------------------------------------------


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
    request = _Request((width, height, 1), found.shape, found.shared_bytes, 0)
    _launch_buffer(found, request)


@entry("cuLaunch")
def launch_one(function: int) -> None:
    launch_grid(function, 1, 1)


def _launch_buffer(function: Function, request: _Request) -> None:
    data = ctypes.create_string_buffer(bytes(function.parameters), len(function.parameters) or 1)
    size = ctypes.c_uint64(len(function.parameters))
    words = (ctypes.c_uint64 * 5)(
        BUFFER_POINTER, ctypes.addressof(data), BUFFER_SIZE, ctypes.addressof(size), 0
    )
    _launch(function, request, 0, ctypes.addressof(words))
