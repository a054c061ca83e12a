"""Graphs and captures: the driver's own, under the runtime's names."""

from __future__ import annotations

from collections.abc import Callable

from warploom.clients.driver.graphs import (
    capturing,
    conditionals,
    graph_launches,
    graph_nodes,
    graph_structure,
    user_objects,
)
from warploom.clients.driver.graphs.graph_tasks import (
    COPY_AT,
    FIRST_KERNEL_NODE,
    PARAMETERS_AT,
    copied,
)
from warploom.clients.driver.graphs.graph_tasks import task_at as driver_task_at
from warploom.clients.driver.graphs.graphs import Graph, Kind, Task, graph_at, node_at
from warploom.clients.driver.launches import kernel_task_at
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.structures import KernelNode
from warploom.clients.driver.words import int_at
from warploom.clients.runtime.graph_copies import box_copy_task
from warploom.clients.runtime.registration import function_of
from warploom.clients.runtime.table import entry

SAME: dict[str, Callable[..., int | None]] = {
    "cudaStreamBeginCapture": capturing.begin,
    "cudaStreamBeginCaptureToGraph": capturing.begin_in,
    "cudaStreamEndCapture": capturing.end,
    "cudaStreamIsCapturing": capturing.is_capturing,
    "cudaStreamGetCaptureInfo": capturing.info_with_edges,
    "cudaThreadExchangeStreamCaptureMode": capturing.exchange_mode,
    "cudaGraphCreate": graph_structure.create,
    "cudaGraphDestroy": graph_structure.destroy,
    "cudaGraphClone": graph_structure.clone,
    "cudaGraphNodeFindInClone": graph_structure.find_in_clone,
    "cudaGraphDestroyNode": graph_structure.destroy_node,
    "cudaGraphNodeGetType": graph_structure.node_type,
    "cudaGraphGetNodes": graph_structure.nodes,
    "cudaGraphGetRootNodes": graph_structure.roots,
    "cudaGraphGetEdges": graph_structure.edges_with,
    "cudaGraphNodeGetDependencies": graph_structure.dependencies_with,
    "cudaGraphNodeGetDependentNodes": graph_structure.dependents_with,
    "cudaGraphAddDependencies": graph_structure.connect_with,
    "cudaGraphRemoveDependencies": graph_structure.disconnect_with,
    "cudaGraphDebugDotPrint": graph_structure.draw,
    "cudaGraphAddMemsetNode": graph_nodes.add_fill,
    "cudaGraphAddHostNode": graph_nodes.add_host,
    "cudaGraphAddEmptyNode": graph_nodes.add_empty,
    "cudaGraphAddChildGraphNode": graph_nodes.add_child,
    "cudaGraphAddEventRecordNode": graph_nodes.add_record,
    "cudaGraphAddEventWaitNode": graph_nodes.add_wait,
    "cudaGraphInstantiate": graph_launches.instantiate,
    "cudaGraphInstantiateWithFlags": graph_launches.instantiate,
    "cudaGraphInstantiateWithParams": graph_launches.instantiate_with,
    "cudaGraphExecDestroy": graph_launches.destroy,
    "cudaGraphExecUpdate": graph_launches.update,
    "cudaGraphUpload": graph_launches.upload,
    "cudaGraphLaunch": graph_launches.launch,
    "cudaUserObjectCreate": user_objects.create,
    "cudaUserObjectRetain": user_objects.retain,
    "cudaUserObjectRelease": user_objects.release,
    "cudaGraphRetainUserObject": user_objects.keep,
    "cudaGraphReleaseUserObject": user_objects.let_go,
}
"""What takes the same arguments."""

for _name, _function in SAME.items():
    entry(_name)(_function)


# ---- kernels and nodes of any kind, which the runtime describes in its own way ------------------


def _kernel_task(parameters: int) -> Task:
    """Returns a launch; its structure is the driver's, but for the function, which is one of the
    host."""
    node = copied(KernelNode, parameters, FIRST_KERNEL_NODE)
    node.function = function_of(node.function)
    return kernel_task_at(node)


@entry("cudaGraphAddKernelNode")
def add_kernel(node: int, graph: int, dependencies: int, count: int, parameters: int) -> None:
    graph_nodes.add_task(node, graph, dependencies, count, _kernel_task(parameters))


@entry("cudaGraphKernelNodeSetParams")
def set_kernel(node: int, parameters: int) -> None:
    graph_nodes.change_task(node, _kernel_task(parameters))


@entry("cudaGraphExecKernelNodeSetParams")
def change_kernel(handle: int, node: int, parameters: int) -> None:
    graph_launches.executable_at(handle).change(node_at(node), _kernel_task(parameters))


def task_at(parameters: int, graph: Graph | None = None) -> Task:
    """Returns the task of a cudaGraphNodeParams, which is the driver's structure but for kernels
    and copies."""
    if not parameters:
        raise DriverError(Result.INVALID_VALUE)
    kind = int_at(parameters)
    if kind == Kind.KERNEL:
        node = copied(KernelNode, parameters + PARAMETERS_AT)
        node.function = function_of(node.function)
        return kernel_task_at(node)
    if kind == Kind.MEMCPY:
        return box_copy_task(parameters + PARAMETERS_AT + COPY_AT)
    return driver_task_at(parameters, graph)


@entry("cudaGraphAddNode")
def add_node(
    node: int, graph: int, dependencies: int, _edges: int, count: int, parameters: int
) -> None:
    task = task_at(parameters, graph_at(graph))
    graph_nodes.add_task(node, graph, dependencies, count, task)


@entry("cudaGraphNodeSetParams")
def set_any(node: int, parameters: int) -> None:
    graph_nodes.change_task(node, task_at(parameters))


@entry("cudaGraphExecNodeSetParams")
def change_any(handle: int, node: int, parameters: int) -> None:
    graph_launches.executable_at(handle).change(node_at(node), task_at(parameters))


@entry("cudaGraphConditionalHandleCreate")
def create_condition(handle: int, graph: int, default: int, flags: int) -> None:
    conditionals.create(handle, graph, 0, default, flags)
