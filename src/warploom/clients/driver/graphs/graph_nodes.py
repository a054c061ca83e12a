"""Nodes of graphs: added, described and changed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from weakref import WeakKeyDictionary

from warploom.clients.driver.graphs.capturing import nodes_at
from warploom.clients.driver.graphs.graph_tasks import (
    FIRST_KERNEL_NODE,
    allocation_task,
    child_task,
    copy_task,
    fill_task,
    first_kernel_task,
    host_task_at,
    kernel_task_of,
    nothing,
    record_task,
    release_task,
    task_at,
    wait_task,
)
from warploom.clients.driver.graphs.graphs import Kind, Task, graph_at, node_at
from warploom.clients.driver.launches import KernelLaunch, kernel_task
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.structures import Copy3D, FillNode, HostFunction, KernelNode
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import int_at, put, put_int, unsigned
from warploom.clients.registry import Entry

COOPERATIVE = 2
"""CU_LAUNCH_ATTRIBUTE_COOPERATIVE."""


def _described(node: int, kind: type[ctypes.Structure]) -> ctypes.Structure:
    """Returns what a node was made of, as a structure."""
    about = node_at(node).task.about
    if isinstance(about, KernelLaunch):
        about = _kernel_structure(about)
    if not isinstance(about, kind):
        raise DriverError(Result.INVALID_VALUE)
    return about


_kernel_structures: WeakKeyDictionary[KernelLaunch, tuple[KernelNode, object]] = WeakKeyDictionary()
"""Structures of kernels whose parameters callers have pointers to."""


def _kernel_structure(launch: KernelLaunch) -> KernelNode:
    if launch not in _kernel_structures:
        function, request = launch.function, launch.request
        data = ctypes.create_string_buffer(launch.data, len(launch.data) or 1)
        start, places = ctypes.addressof(data), function.places
        pointers = (ctypes.c_uint64 * max(1, len(places)))(*(start + at for at, _ in places))
        handle = function.program.function(function.kernel.name)
        node = KernelNode(
            handle, request.grid, request.block, request.shared_bytes, ctypes.addressof(pointers)
        )
        _kernel_structures[launch] = node, (data, pointers)
    return _kernel_structures[launch][0]


# ---- the entries of each kind --------------------------------------------------------------------


def _entries(kind: str, version: str, make: Callable[[int], Task], size: int, about: type) -> Entry:
    """Returns what calls of one kind have in common: add a node (this one is given back), return
    its parameters, change them."""

    @entry(f"cuGraphAdd{kind}Node{version}")
    def add(node: int, graph: int, dependencies: int, count: int, given: int) -> None:
        add_task(node, graph, dependencies, count, make(given))

    @entry(f"cuGraph{kind}NodeGetParams{version}")
    def get(node: int, target: int) -> None:
        if not target:
            raise DriverError(Result.INVALID_VALUE)
        ctypes.memmove(target, bytes(_described(node, about)), size)

    @entry(f"cuGraph{kind}NodeSetParams{version}")
    def set_parameters(node: int, given: int) -> None:
        change_task(node, make(given))

    return add


_entries("Kernel", "_v2", kernel_task_of, ctypes.sizeof(KernelNode), KernelNode)
_entries("Kernel", "", first_kernel_task, FIRST_KERNEL_NODE, KernelNode)
_entries("Memcpy", "", copy_task, ctypes.sizeof(Copy3D), Copy3D)
add_fill = _entries("Memset", "", fill_task, ctypes.sizeof(FillNode), FillNode)
add_host = _entries("Host", "", host_task_at, ctypes.sizeof(HostFunction), HostFunction)


def change_task(handle: int, task: Task) -> None:
    """Replaces the task of a node by one of the same kind."""
    node = node_at(handle)
    if node.task.kind is not task.kind:
        raise DriverError(Result.INVALID_VALUE)
    node.task = task


def add_task(node: int, graph: int, dependencies: int, count: int, task: Task) -> None:
    """Adds a node with a task after others, and writes its handle."""
    put(node, graph_at(graph).add(task, nodes_at(dependencies, count)).handle)


@entry("cuGraphAddNode")
def add_node(node: int, graph: int, dependencies: int, count: int, parameters: int) -> None:
    add_task(node, graph, dependencies, count, task_at(parameters, graph_at(graph)))


@entry("cuGraphAddNode_v2", "cuGraphAddNode_v3")
def add_node_with(
    node: int, graph: int, dependencies: int, _edges: int, count: int, parameters: int
) -> None:
    add_node(node, graph, dependencies, count, parameters)


@entry("cuGraphNodeSetParams", "cuGraphNodeSetParams_v2")
def set_any(node: int, parameters: int) -> None:
    change_task(node, task_at(parameters))


@entry("cuGraphAddEmptyNode")
def add_empty(node: int, graph: int, dependencies: int, count: int) -> None:
    add_task(node, graph, dependencies, count, Task(Kind.EMPTY, nothing))


@entry("cuGraphAddChildGraphNode")
def add_child(node: int, graph: int, dependencies: int, count: int, child: int) -> None:
    add_task(node, graph, dependencies, count, child_task(child))


@entry("cuGraphAddEventRecordNode")
def add_record(node: int, graph: int, dependencies: int, count: int, event: int) -> None:
    add_task(node, graph, dependencies, count, record_task(event))


@entry("cuGraphAddEventWaitNode")
def add_wait(node: int, graph: int, dependencies: int, count: int, event: int) -> None:
    add_task(node, graph, dependencies, count, wait_task(event))


@entry("cuGraphEventRecordNodeGetEvent", "cuGraphEventWaitNodeGetEvent")
def event_of(node: int, event: int) -> None:
    task = node_at(node).task
    if task.kind not in (Kind.EVENT_RECORD, Kind.WAIT_EVENT):
        raise DriverError(Result.INVALID_VALUE)
    put(event, task.about)


@entry("cuGraphEventRecordNodeSetEvent")
def set_recorded(node: int, event: int) -> None:
    change_task(node, record_task(event))


@entry("cuGraphEventWaitNodeSetEvent")
def set_awaited(node: int, event: int) -> None:
    change_task(node, wait_task(event))


@entry("cuGraphAddMemAllocNode")
def add_allocation(node: int, graph: int, dependencies: int, count: int, parameters: int) -> None:
    if not parameters:
        raise DriverError(Result.INVALID_VALUE)
    add_task(node, graph, dependencies, count, allocation_task(parameters))


@entry("cuGraphAddMemFreeNode")
def add_release(node: int, graph: int, dependencies: int, count: int, address: int) -> None:
    add_task(node, graph, dependencies, count, release_task(unsigned(address)))


@entry("cuGraphMemFreeNodeGetParams")
def released_by(node: int, address: int) -> None:
    task = node_at(node).task
    if task.kind is not Kind.MEM_FREE:
        raise DriverError(Result.INVALID_VALUE)
    put(address, task.about)


# ---- attributes of kernels -----------------------------------------------------------------------


def _launch_of(node: int) -> KernelLaunch:
    about = node_at(node).task.about
    if not isinstance(about, KernelLaunch):
        raise DriverError(Result.INVALID_VALUE)
    return about


@entry("cuGraphKernelNodeGetAttribute")
def get_attribute(node: int, number: int, value: int) -> None:
    launch = _launch_of(node)
    if number != COOPERATIVE:
        raise DriverError(Result.NOT_SUPPORTED)
    put_int(value, int(launch.request.attributes.cooperative))


@entry("cuGraphKernelNodeSetAttribute")
def set_attribute(node: int, number: int, value: int) -> None:
    """Cooperative launches; what else there is changes no result."""
    launch = _launch_of(node)
    if number == COOPERATIVE:
        _set_cooperative(node, launch, cooperative=bool(int_at(value)))


@entry("cuGraphKernelNodeCopyAttributes")
def copy_attributes(target: int, source: int) -> None:
    cooperative = _launch_of(source).request.attributes.cooperative
    _set_cooperative(target, _launch_of(target), cooperative=cooperative)


def _set_cooperative(node: int, launch: KernelLaunch, *, cooperative: bool) -> None:
    attributes = replace(launch.request.attributes, cooperative=cooperative)
    request = replace(launch.request, attributes=attributes)
    node_at(node).task = kernel_task(launch.function, request, launch.data)
