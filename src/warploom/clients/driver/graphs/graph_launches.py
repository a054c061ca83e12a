"""Instantiated graphs: launched as often as wanted, and changed without building them anew."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field

from warploom.clients.driver.graphs.captures import capture_of
from warploom.clients.driver.graphs.conditionals import reset_conditions
from warploom.clients.driver.graphs.graph_tasks import (
    child_task,
    copy_task,
    fill_task,
    first_kernel_task,
    host_task_at,
    kernel_task_of,
    record_task,
    task_at,
    wait_task,
)
from warploom.clients.driver.graphs.graphs import Graph, Kind, Node, Task, graph_at, node_at
from warploom.clients.driver.graphs.user_objects import give_up, share
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.streams import do_in_order, stream_of
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import offer, put, put_int

Shape = list[tuple[Kind, list[int]]]

TOPOLOGY_CHANGED = 2
"""CUgraphExecUpdateResult."""

SWITCHED = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
"""What can be switched off."""


def _shape(graph: Graph) -> Shape:
    """Returns what two graphs have in common if one can take the place of the other."""
    numbers = {node: index for index, node in enumerate(graph.nodes)}
    return [(n.task.kind, sorted(numbers[d] for d in n.dependencies)) for n in graph.nodes]


@dataclass(eq=False)
class Executable:
    """The tasks of a graph in an order that fits, as they were when it was instantiated."""

    tasks: dict[Node, Task]
    nodes: list[Node]
    shape: Shape
    flags: int
    kept: dict[int, int]
    number: int = field(default_factory=lambda: next(state.numbers))
    off: set[Node] = field(default_factory=set[Node])

    def perform(self) -> None:
        """Runs the tasks of the enabled nodes in order. Stops after a task that put the context
        into an error state; the program's next driver call returns the error."""
        context = state.current()
        reset_conditions(self.tasks.values())
        for node, task in self.tasks.items():
            if node not in self.off:
                task.run()
            if context.error is not None:
                return

    def change(self, node: Node, task: Task) -> None:
        """Replaces the task of a node by another one of the same kind."""
        if node not in self.tasks or self.tasks[node].kind is not task.kind:
            raise DriverError(Result.INVALID_VALUE)
        self.tasks[node] = task


def executable_at(handle: int) -> Executable:
    """Returns the instantiated graph of a handle."""
    return state.handles.get(handle, Executable, Result.INVALID_VALUE)


@entry("cuGraphInstantiateWithFlags")
def instantiate(target: int, graph: int, flags: int) -> None:
    state.current()
    found = graph_at(graph)
    tasks = {node: node.task for node in found.ordered()}
    kept = share(found.kept)
    made = Executable(tasks, list(found.nodes), _shape(found), flags, kept)
    put(target, state.handles.add(made))


@entry("cuGraphInstantiate", "cuGraphInstantiate_v2")
def instantiate_plainly(target: int, graph: int, node: int) -> None:
    instantiate(target, graph, 0)
    offer(node, 0)


class _Instantiation(ctypes.Structure):
    """CUDA_GRAPH_INSTANTIATE_PARAMS."""

    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("stream", ctypes.c_uint64),
        ("node", ctypes.c_uint64),
        ("result", ctypes.c_int),
    )


@entry("cuGraphInstantiateWithParams")
def instantiate_with(target: int, graph: int, parameters: int) -> None:
    if not parameters:
        raise DriverError(Result.INVALID_VALUE)
    given = _Instantiation.from_address(parameters)
    instantiate(target, graph, given.flags)
    given.node, given.result = 0, 0


@entry("cuGraphExecDestroy")
def destroy(handle: int) -> None:
    found = executable_at(handle)
    state.handles.remove(handle)
    give_up(found.kept)


@entry("cuGraphExecGetFlags")
def flags_of(handle: int, flags: int) -> None:
    put(flags, executable_at(handle).flags)


@entry("cuGraphExecGetId")
def number_of(handle: int, number: int) -> None:
    put(number, executable_at(handle).number, ctypes.c_uint)


@entry("cuGraphUpload")
def upload(handle: int, stream: int) -> None:
    executable_at(handle)
    stream_of(stream)


@entry("cuGraphLaunch")
def launch(handle: int, stream: int) -> None:
    """Launches a graph; in a captured stream it becomes a child of the graph that is captured."""
    found = executable_at(handle)
    stream_of(stream)
    capture, task = capture_of(stream), Task(Kind.GRAPH, found.perform)
    if capture is None:
        do_in_order(stream, task)
    else:
        capture.add(stream, task)


# ---- changes -------------------------------------------------------------------------------------


@entry("cuGraphExecUpdate_v2")
def update(handle: int, graph: int, result_info: int) -> None:
    """Replaces the tasks by those of a graph of the same shape; else GRAPH_EXEC_UPDATE_FAILURE, and
    why."""
    if not result_info:
        raise DriverError(Result.INVALID_VALUE)
    _update(handle, graph, result=result_info, node=result_info + 8)


@entry("cuGraphExecUpdate")
def first_update(handle: int, graph: int, node: int, result: int) -> None:
    _update(handle, graph, result, node)


def _update(handle: int, graph: int, result: int, node: int) -> None:
    found, other = executable_at(handle), graph_at(graph)
    offer(node, 0)
    if _shape(other) != found.shape:
        put_int(result, TOPOLOGY_CHANGED)
        raise DriverError(Result.GRAPH_EXEC_UPDATE_FAILURE)
    put_int(result, 0)
    for mine, its in zip(found.nodes, other.nodes, strict=True):
        found.tasks[mine] = its.task
    kept, found.kept = found.kept, share(other.kept)
    give_up(kept)


def _changing(name: str, make: Callable[[int], Task]) -> None:
    """Registers the entry that gives a node of an executable other parameters."""

    @entry(name)
    def change(handle: int, node: int, given: int) -> None:
        executable_at(handle).change(node_at(node), make(given))


_changing("cuGraphExecKernelNodeSetParams_v2", kernel_task_of)
_changing("cuGraphExecKernelNodeSetParams", first_kernel_task)
_changing("cuGraphExecMemcpyNodeSetParams", copy_task)
_changing("cuGraphExecMemsetNodeSetParams", fill_task)
_changing("cuGraphExecHostNodeSetParams", host_task_at)
_changing("cuGraphExecChildGraphNodeSetParams", child_task)
_changing("cuGraphExecEventRecordNodeSetEvent", record_task)
_changing("cuGraphExecEventWaitNodeSetEvent", wait_task)
_changing("cuGraphExecNodeSetParams", task_at)


def _switch(handle: int, node: int) -> tuple[Executable, Node]:
    found, one = executable_at(handle), node_at(node)
    if one not in found.tasks or found.tasks[one].kind not in SWITCHED:
        raise DriverError(Result.INVALID_VALUE)
    return found, one


@entry("cuGraphNodeSetEnabled")
def set_enabled(handle: int, node: int, on: int) -> None:
    found, one = _switch(handle, node)
    (found.off.discard if on else found.off.add)(one)


@entry("cuGraphNodeGetEnabled")
def get_enabled(handle: int, node: int, on: int) -> None:
    found, one = _switch(handle, node)
    put(on, int(one not in found.off), ctypes.c_uint)
