"""Launches kernels. The driver call after a kernel error returns it, as in CUDA; this module
explains it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from warploom.clients.driver import ordering
from warploom.clients.driver.graphs.captures import capture_of
from warploom.clients.driver.graphs.graphs import Kind, Task
from warploom.clients.driver.overlap import works
from warploom.clients.driver.programs import Function, function_at
from warploom.clients.driver.results import STICKY, DriverError, Result, result_of
from warploom.clients.driver.state import state
from warploom.clients.driver.streams import DEFAULT, DEFAULT_STREAMS, queue_of, stream_of
from warploom.clients.driver.structures import KernelNode, LaunchAttribute
from warploom.clients.driver.table import entry, explain, spoil
from warploom.clients.driver.words import word_at
from warploom.clients.registry import Entry
from warploom.clients.session import session
from warploom.core.errors import DeadlockError, Dim3, KernelFault, LaunchCancelled, WarploomError
from warploom.host.launcher import Launcher
from warploom.machine.polling import may_wait_for_memory
from warploom.machine.turn import Cancellation

BUFFER_POINTER, BUFFER_SIZE = 1, 2
"""The keys of an `extra` list."""

COOPERATIVE, CLUSTER, PROGRAMMATIC = 2, 4, 6
"""Numbers of CUlaunchAttributeID."""

CONFIG = struct.Struct("@7I2QI")
"""CUlaunchConfig: the grid's and the block's sizes, bytes of dynamic shared memory, the stream, the
attributes and how many they are."""


@dataclass(frozen=True)
class Attributes:
    """Holds what the attributes of a launch ask for; a `programmatic` one may begin before the
    launch before it has ended."""

    cooperative: bool = False
    cluster: Dim3 | None = None
    programmatic: bool = False


@dataclass(frozen=True)
class Request:
    """A launch without its parameters."""

    grid: Dim3
    block: Dim3
    shared_bytes: int
    stream: int
    attributes: Attributes = Attributes()


def _launching(*, cooperative: bool) -> Entry:
    """Returns the entry of a launch whose dimensions are its arguments."""

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
        request = Request(grid, block, shared_bytes, stream, Attributes(cooperative))
        launch_now(function_at(function), request, parameters, extra)

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
    x, y, z, block_x, block_y, block_z = dims
    grid, block = (x, y, z), (block_x, block_y, block_z)
    request = Request(grid, block, shared_bytes, stream, _attributes_at(attributes, count))
    launch_now(function_at(function), request, parameters, extra)


def configuration_of(config: int) -> tuple[Dim3, int, Dim3 | None]:
    """Returns the block of a CUlaunchConfig, its dynamic shared memory, and the cluster it asks
    for."""
    *dims, shared_bytes, _, attributes, count = CONFIG.unpack(ctypes.string_at(config, CONFIG.size))
    x, y, z = dims[3:6]
    return (x, y, z), shared_bytes, _attributes_at(attributes, count).cluster


def _attributes_at(address: int, count: int) -> Attributes:
    """Returns what an array of attributes asks for."""
    cooperative, cluster, programmatic = False, None, False
    for given in (LaunchAttribute * count).from_address(address) if address and count else ():
        if given.id == COOPERATIVE:
            cooperative = bool(given.value[0])
        elif given.id == PROGRAMMATIC:
            programmatic = bool(given.value[0])
        elif given.id == CLUSTER and any(given.value[:3]):
            x, y, z = (max(int(size), 1) for size in given.value[:3])
            cluster = (x, y, z)
    return Attributes(cooperative, cluster, programmatic)


def launch_now(function: Function, request: Request, parameters: int, extra: int) -> None:
    """Launches, or lets the graph that captures the stream do so later."""
    state.current()
    if request.stream not in DEFAULT_STREAMS:
        stream_of(request.stream)
    capture = capture_of(request.stream)
    if capture is None:
        _launch_or_add(function, request, _packed(function, parameters, extra))
    else:
        task = kernel_task(function, request, _packed(function, parameters, extra))
        capture.add(request.stream, task)


def _launch_or_add(function: Function, request: Request, data: bytes) -> None:
    """Launches now; in a thread where the kernel may wait for memory that later work writes, or has
    to follow such a kernel: then the call returns while that waits."""
    queue = queue_of(request.stream)
    with ordering.within(request.stream):
        overlaps = state.may_change_memory and may_wait_for_memory(function.kernel.program)
        if not overlaps and not works.has_any() and not works.defers(queue):
            perform(function, request, data)
            return
        cancellation, run = _issued(function, request, data)
        ends = partial(_give_up, run)
        work = works.add(queue, partial(_perform, function, run), cancellation, give_up=ends)
    works.let_begin(work)


def _give_up(run: Callable[[], object]) -> None:
    """Ends a cancelled launch that has not begun, which returns what it retains of memory."""
    with suppress(LaunchCancelled):
        run()


def perform(function: Function, request: Request, data: bytes) -> None:
    """Launches with packed parameters. What the kernel does wrong ends the context, and no more."""
    state.current()
    _perform(function, lambda: _issued(function, request, data)[1]())


def _perform(function: Function, run: Callable[[], object]) -> None:
    """Runs a launch of a function. What the kernel does wrong ends the context, and no more."""
    try:
        run_kernel(function, run)
    except WarploomError as error:
        explain(f"{error}{_about_lines(function, error)}")
        result = result_of(error)
        if result not in STICKY:
            raise DriverError(result) from None
        spoil(result)


def run_kernel(function: Function, run: Callable[[], object]) -> None:
    """Launches by calling `run`, with the program of the function kept in memory. Raises
    WarploomError for what the kernel did, DriverError where this thread is launching already."""
    session().launched = True
    state.enter_launch()
    try:
        function.program.begin_launch()
        try:
            run()
        finally:
            function.program.end_launch()
    finally:
        state.leave_launch()


def _about_lines(function: Function, error: WarploomError) -> str:
    """Returns how to have lines of the source where an error can name those of the PTX alone."""
    if function.program.module.ir.files or not isinstance(error, KernelFault | DeadlockError):
        return ""
    return (
        "\n    The line numbers refer to the PTX, because the PTX has no line information. For "
        "source lines, compile with -lineinfo (nvcc and NVRTC; lineinfo=True for Numba)."
    )


def _issued(
    function: Function, request: Request, data: bytes
) -> tuple[Cancellation, Callable[[], object]]:
    """Issues a launch: returns what cancels it, and what runs it. Raises WarploomError for what
    does not fit."""
    kernel = function.kernel
    if request.shared_bytes > function.dynamic_limit:
        raise DriverError(
            Result.INVALID_VALUE,
            f"{kernel.name} is limited to {function.dynamic_limit} bytes of dynamic shared "
            f"memory per block, but the launch requests {request.shared_bytes}: raise the kernel's "
            "MAX_DYNAMIC_SHARED_SIZE_BYTES attribute before the launch",
        )
    launcher = Launcher(kernel, request.grid, request.block, None, request.shared_bytes)
    asked = request.attributes
    options = session().launch_options(
        cooperative=asked.cooperative, cluster=asked.cluster, programmatic=asked.programmatic
    )
    return launcher.issued(data, **options)


@dataclass(frozen=True, eq=False)
class KernelLaunch:
    """The parameters of a kernel node."""

    function: Function
    request: Request
    data: bytes


def kernel_task(function: Function, request: Request, data: bytes) -> Task:
    """Returns a launch as a task; its parameters are those of now."""
    about = KernelLaunch(function, request, data)
    return Task(Kind.KERNEL, partial(perform, function, request, data), about)


def kernel_task_at(node: KernelNode) -> Task:
    """Returns the launch that a structure of cuda.h describes."""
    function = function_at(node.function or node.kernel)
    grid, block = tuple(node.grid), tuple(node.block)
    request = Request(grid, block, node.shared_bytes, DEFAULT)
    return kernel_task(function, request, _packed(function, node.parameters, node.extra))


def _packed(function: Function, parameters: int, extra: int) -> bytes:
    """Returns the parameter block: from a pointer to each value, or from a buffer of all of
    them."""
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
    """Returns the bytes that an `extra` list leads to."""
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
