"""Makes the tasks of graph nodes from the structures of cuda.h that describe them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from warploom.clients.driver.copies import boxes
from warploom.clients.driver.graphs.conditionals import conditional_task
from warploom.clients.driver.graphs.graph_memory import give_back
from warploom.clients.driver.graphs.graphs import Graph, Kind, Task, graph_at, perform
from warploom.clients.driver.launches import kernel_task_at
from warploom.clients.driver.memory import fill_rows
from warploom.clients.driver.pools import alloc_task
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.streams import Event, host_task
from warploom.clients.driver.structures import Copy3D, FillNode, HostFunction, KernelNode
from warploom.clients.driver.words import int_at, put, word_at

S = TypeVar("S", bound=ctypes.Structure)

FIRST_KERNEL_NODE = KernelNode.kernel.offset
"""Bytes of the first version of a kernel's structure."""

PARAMETERS_AT, COPY_AT, POOL_SIZE_AT, POOL_ADDRESS_AT = 16, 16, 104, 112
"""In CUgraphNodeParams: where a kind's own begin; in these, where a copy's and an allocation's."""


def nothing() -> None:
    """Does nothing: the task of a node that is there for its edges."""


def copied(kind: type[S], address: int, size: int = 0) -> S:
    """Returns a copy of the caller's structure, or of the `size` bytes that its version has."""
    if not address:
        raise DriverError(Result.INVALID_VALUE)
    whole = ctypes.sizeof(kind)
    return kind.from_buffer_copy(ctypes.string_at(address, size or whole).ljust(whole, b"\0"))


def kernel_task_of(address: int) -> Task:
    return kernel_task_at(copied(KernelNode, address))


def first_kernel_task(address: int) -> Task:
    return kernel_task_at(copied(KernelNode, address, FIRST_KERNEL_NODE))


def copy_task(address: int) -> Task:
    return copy_task_of(copied(Copy3D, address))


def copy_task_of(about: Copy3D) -> Task:
    """Returns the copy that a structure describes, which the task keeps."""
    return Task(Kind.MEMCPY, partial(boxes, ctypes.addressof(about)), about)


def fill_task(address: int) -> Task:
    about = copied(FillNode, address)
    if about.element not in (1, 2, 4):
        raise DriverError(Result.INVALID_VALUE)
    sizes = about.width, about.height, about.element
    run = partial(fill_rows, about.address, about.pitch, about.value, *sizes)
    return Task(Kind.MEMSET, run, about)


def host_task_at(address: int) -> Task:
    return host_task(copied(HostFunction, address))


def child_task(graph: int) -> Task:
    made = graph_at(graph).clone()
    return Task(Kind.GRAPH, partial(perform, made), made)


def record_task(event: int) -> Task:
    return Task(Kind.EVENT_RECORD, state.handles.get(event, Event).record, event)


def wait_task(event: int) -> Task:
    state.handles.get(event, Event)
    return Task(Kind.WAIT_EVENT, nothing, event)


def allocation_task(address: int) -> Task:
    task = alloc_task(word_at(address + POOL_SIZE_AT))
    put(address + POOL_ADDRESS_AT, task.about.address)
    return task


def release_task(address: int) -> Task:
    return Task(Kind.MEM_FREE, partial(give_back, address), address)


_GENERIC: dict[int, Callable[[int], Task]] = {
    Kind.KERNEL: kernel_task_of,
    Kind.MEMCPY: lambda at: copy_task(at + COPY_AT),
    Kind.MEMSET: fill_task,
    Kind.HOST: host_task_at,
    Kind.GRAPH: lambda at: child_task(word_at(at)),
    Kind.EMPTY: lambda at: Task(Kind.EMPTY, nothing),
    Kind.WAIT_EVENT: lambda at: wait_task(word_at(at)),
    Kind.EVENT_RECORD: lambda at: record_task(word_at(at)),
    Kind.MEM_ALLOC: allocation_task,
    Kind.MEM_FREE: lambda at: release_task(word_at(at)),
}
"""The task that CUgraphNodeParams describes, by its kind and the address of the kind's part."""


def task_at(parameters: int, graph: Graph | None = None) -> Task:
    """Returns the task of a CUgraphNodeParams; of a conditional node where that is added to
    `graph`."""
    if not parameters:
        raise DriverError(Result.INVALID_VALUE)
    kind = int_at(parameters)
    if kind == Kind.CONDITIONAL and graph is not None:
        return conditional_task(graph, parameters + PARAMETERS_AT)
    if kind not in _GENERIC:
        raise DriverError(
            Result.NOT_SUPPORTED, f"graph nodes with CUgraphNodeType {kind} are not supported"
        )
    return _GENERIC[kind](parameters + PARAMETERS_AT)
