"""Nodes of graphs that copy: along a line, boxes, to and from variables of the program.

Of each there are three functions: one adds a node, one changes a node, one changes it in a graph
that is instantiated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from warploom.clients.driver.graphs import graph_launches, graph_nodes
from warploom.clients.driver.graphs.graph_tasks import copied, copy_task_of
from warploom.clients.driver.graphs.graphs import Kind, Task, node_at
from warploom.clients.registry import Entry
from warploom.clients.runtime.arrays import driver_copy
from warploom.clients.runtime.memory import copy, copy_from_symbol, copy_to_symbol
from warploom.clients.runtime.structures import BoxCopy
from warploom.clients.runtime.table import entry


def box_copy_task(parameters: int) -> Task:
    """Returns the copy that a cudaMemcpy3DParms describes."""
    return copy_task_of(driver_copy(copied(BoxCopy, parameters)))


def _copying(kind: str, make: Callable[..., Task]) -> None:
    """Registers the functions of one kind of copies; `make` gets what describes the copy."""

    @entry(f"cudaGraphAddMemcpyNode{kind}")
    def add(node: int, graph: int, dependencies: int, count: int, *given: int) -> None:
        graph_nodes.add_task(node, graph, dependencies, count, make(*given))

    @entry(f"cudaGraphMemcpyNodeSetParams{kind}")
    def set_parameters(node: int, *given: int) -> None:
        graph_nodes.change_task(node, make(*given))

    @entry(f"cudaGraphExecMemcpyNodeSetParams{kind}")
    def change(handle: int, node: int, *given: int) -> None:
        graph_launches.executable_at(handle).change(node_at(node), make(*given))


def _calling(function: Entry) -> Callable[..., Task]:
    """Returns what makes a task of the arguments of a copy."""
    return lambda *given: Task(Kind.MEMCPY, partial(function, *given))


_copying("", box_copy_task)
_copying("1D", _calling(copy))
_copying("ToSymbol", _calling(copy_to_symbol))
_copying("FromSymbol", _calling(copy_from_symbol))
