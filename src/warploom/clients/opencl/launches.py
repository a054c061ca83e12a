"""Launches: ND-ranges as grids of blocks, and functions of the host in queues."""

from __future__ import annotations

import ctypes
from functools import partial

from warploom.clients.driver.attributes_of_functions import max_threads
from warploom.clients.driver.launches import run_kernel
from warploom.clients.driver.state import state
from warploom.clients.opencl.buffers import same_context
from warploom.clients.opencl.commands import Asked, enqueue
from warploom.clients.opencl.errors import Status, demand
from warploom.clients.opencl.info import list_at, sizes_at
from warploom.clients.opencl.kernel_info import REQUIRED
from warploom.clients.opencl.kernels import ClKernel
from warploom.clients.opencl.memory import MemObject
from warploom.clients.opencl.objects import get
from warploom.clients.opencl.platforms import opencl_number
from warploom.clients.opencl.queues import Queue
from warploom.clients.opencl.table import entry
from warploom.clients.session import session
from warploom.core.errors import Dim3
from warploom.host.launcher import Launcher

KERNEL, TASK, NATIVE = 0x11F0, 0x11F1, 0x11F2

PREFERRED = 256
"""The most work-items of a work-group whose size the program leaves open."""

NDRange = tuple[Dim3, Dim3, Dim3, int]
"""Global offset, global size, local size, and the number of dimensions."""


@entry("clEnqueueNDRangeKernel")
def launch(
    queue: int, kernel: int, dims: int, offset: int, sizes: int, local: int, *asked: int
) -> None:
    at, made = get(queue, Queue), get(kernel, ClKernel)
    same = made.program.context is at.context
    demand(same, Status.INVALID_CONTEXT, "the queue and the kernel belong to different contexts")
    wrong = f"the number of dimensions must be 1 to 3, not {dims}"
    demand(1 <= dims <= 3, Status.INVALID_WORK_DIMENSION, wrong)
    data, bytes_, objects = made.packed()
    made.name_memory()
    old = opencl_number(state.device.spec) < (2, 1)
    given = sizes_at(sizes, dims, Status.INVALID_GLOBAL_WORK_SIZE) if sizes or old else (0,) * dims
    empty = "a global size of 0 requires OpenCL 2.1 or later"
    demand(all(given) or not old, Status.INVALID_GLOBAL_WORK_SIZE, empty)
    wanted = _three(given)
    start = _three(sizes_at(offset, dims), 0) if offset else (0, 0, 0)
    demand(
        all(n < 1 << 32 for n in start),
        Status.INVALID_GLOBAL_OFFSET,
        "a global offset must be less than 2^32",
    )
    group = _three(sizes_at(local, dims)) if local else _chosen(made, wanted)
    if all(wanted):
        _check(made, wanted, group, bytes_)
    work = partial(_run, made, (start, wanted, group, dims), data, bytes_)
    enqueue(at, KERNEL, work, Asked(*asked), holds=[made, *objects])


@entry("clEnqueueTask")
def task(queue: int, kernel: int, *asked: int) -> None:
    at, made = get(queue, Queue), get(kernel, ClKernel)
    same = made.program.context is at.context
    demand(same, Status.INVALID_CONTEXT, "the queue and the kernel belong to different contexts")
    data, bytes_, objects = made.packed()
    made.name_memory()
    one = (1, 1, 1)
    _check(made, one, one, bytes_)
    work = partial(_run, made, ((0, 0, 0), one, one, 1), data, bytes_)
    enqueue(at, TASK, work, Asked(*asked), holds=[made, *objects])


def _three(values: tuple[int, ...], rest: int = 1) -> Dim3:
    x, y, z = (*values, rest, rest)[:3]
    return x, y, z


def _check(kernel: ClKernel, sizes: Dim3, group: Dim3, local_bytes: int) -> None:
    """Checks the sizes of a launch, in the order of the specification."""
    spec = state.device.spec
    required = kernel.declared.sizes.get(REQUIRED)
    fits = required is None or required == group
    why = (
        f"{kernel.name} requires work-groups of size {required}, but the launch has work-groups of "
        f"size {group}"
    )
    demand(fits, Status.INVALID_WORK_GROUP_SIZE, why)
    demand(all(group), Status.INVALID_WORK_GROUP_SIZE, f"the work-group size {group} contains a 0")
    inside = all(n <= most for n, most in zip(group, spec.max_block_dims, strict=True))
    why = f"the work-group size {group} exceeds the maximum of {spec.max_block_dims}"
    demand(inside, Status.INVALID_WORK_ITEM_SIZE, why)
    items, most = group[0] * group[1] * group[2], spec.max_threads_per_block
    why = f"a work-group of {items} work-items exceeds the maximum of {most}"
    demand(items <= most, Status.INVALID_WORK_GROUP_SIZE, why)
    whole = all(n % size == 0 for n, size in zip(sizes, group, strict=True))
    why = f"the global size {sizes} is not a multiple of the work-group size {group}"
    demand(whole, Status.INVALID_WORK_GROUP_SIZE, why)
    groups = [n // size for n, size in zip(sizes, group, strict=True)]
    few = all(n <= most for n, most in zip(groups, spec.max_grid_dims, strict=True))
    why = f"{tuple(groups)} work-groups exceed the maximum of {spec.max_grid_dims}"
    demand(few, Status.INVALID_GLOBAL_WORK_SIZE, why)
    all_bytes = kernel.function.kernel.program.shared_bytes + local_bytes
    why = f"{all_bytes} bytes of local memory exceed the maximum of {spec.shared_bytes_per_block}"
    demand(all_bytes <= spec.shared_bytes_per_block, Status.OUT_OF_RESOURCES, why)


def _chosen(kernel: ClKernel, sizes: Dim3) -> Dim3:
    """Returns the work-group of a launch that leaves it open: what the kernel requires, else the
    largest that divides the global size, with whole warps along x where that can be."""
    if REQUIRED in kernel.declared.sizes:
        return kernel.declared.sizes[REQUIRED]
    spec = state.device.spec
    left = min(PREFERRED, max_threads(kernel.function))
    chosen: list[int] = []
    for size, most in zip(sizes, spec.max_block_dims, strict=True):
        fitting = [n for n in range(1, min(left, most, max(size, 1)) + 1) if size % n == 0]
        whole = [n for n in fitting if n % spec.warp_size == 0]
        best = max(whole or fitting) if not chosen else max(fitting)
        chosen.append(best)
        left //= best
    x, y, z = chosen
    return x, y, z


def _run(kernel: ClKernel, range_: NDRange, data: bytes, local_bytes: int) -> None:
    """Launches, and waits for the end. Raises WarploomError for what the kernel did."""
    offset, sizes, group, dims = range_
    if not all(sizes):
        return
    x, y, z = (n // size for n, size in zip(sizes, group, strict=True))
    launcher = Launcher(kernel.function.kernel, (x, y, z), group, None, local_bytes)
    options = session().launch_options(cooperative=False)
    options["nd_range"] = (*offset, dims)
    run_kernel(kernel.function, partial(launcher.packed, data, **options))


# ---- functions of the host -----------------------------------------------------------------------

_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@entry("clEnqueueNativeKernel")
def native(
    queue: int,
    function: int,
    arguments: int,
    size: int,
    count: int,
    objects: int,
    places: int,
    *asked: int,
) -> None:
    """Has a function of the host called with a copy of its arguments, in which addresses stand for
    memory objects."""
    at = get(queue, Queue)
    demand(function, Status.INVALID_VALUE, "the pointer to the function is null")
    together = bool(arguments) == bool(size) and (arguments or not count)
    demand(
        together,
        Status.INVALID_VALUE,
        "arguments and their size must be given together",
    )
    made = [get(one, MemObject) for one in list_at(objects, count, Status.INVALID_VALUE)]
    same_context(at, *made)
    offsets = [place - arguments for place in list_at(places, count, Status.INVALID_VALUE)]
    block = ctypes.create_string_buffer(
        ctypes.string_at(arguments, size) if size else b"", size or 1
    )
    for offset, one in zip(offsets, made, strict=True):
        ctypes.c_uint64.from_buffer(block, offset).value = one.address
    work = partial(_call, function, block if size else None)
    enqueue(at, NATIVE, work, Asked(*asked), holds=made)


def _call(function: int, block: ctypes.Array[ctypes.c_char] | None) -> None:
    _FUNCTION(function)(None if block is None else ctypes.addressof(block))
