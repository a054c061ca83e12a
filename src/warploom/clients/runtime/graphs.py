"""Graphs and captures: the driver's own, under the runtime's names."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

from warploom.clients.driver import (
    capturing,
    graph_launches,
    graph_nodes,
    graph_structure,
    user_objects,
)
from warploom.clients.driver.graph_tasks import FIRST_KERNEL_NODE, copied, copy_task
from warploom.clients.driver.graphs import Kind, Task, node_at
from warploom.clients.driver.launches import kernel_task_at
from warploom.clients.driver.structures import KernelNode
from warploom.clients.runtime.arrays import driver_copy
from warploom.clients.runtime.memory import copy
from warploom.clients.runtime.registration import function_of
from warploom.clients.runtime.structures import BoxCopy
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


# ---- kernels and copies, which the runtime describes in its own way ------------------------------


def _kernel_task(parameters: int) -> Task:
    """A launch; its structure is the driver's, but for the function, which is one of the host."""
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


@entry("cudaGraphAddMemcpyNode1D")
def add_copy(
    node: int,
    graph: int,
    dependencies: int,
    count: int,
    target: int,
    source: int,
    size: int,
    kind: int,
) -> None:
    task = Task(Kind.MEMCPY, partial(copy, target, source, size, kind))
    graph_nodes.add_task(node, graph, dependencies, count, task)


@entry("cudaGraphAddMemcpyNode")
def add_box_copy(node: int, graph: int, dependencies: int, count: int, parameters: int) -> None:
    made = driver_copy(copied(BoxCopy, parameters))
    graph_nodes.add_task(node, graph, dependencies, count, copy_task(ctypes.addressof(made)))
