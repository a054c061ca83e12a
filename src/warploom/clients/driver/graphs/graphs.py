"""Graphs: what is to be done, as tasks in nodes, and which wait for which.

A node's task is done when an instantiated graph is launched (`graph_launches`). Nodes come from
calls (`graph_nodes`) or from work that a stream captures (`captures`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from graphlib import CycleError, TopologicalSorter
from itertools import count
from typing import Any

from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state


class Kind(IntEnum):
    """CUgraphNodeType."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    HOST = 3
    GRAPH = 4
    EMPTY = 5
    WAIT_EVENT = 6
    EVENT_RECORD = 7
    MEM_ALLOC = 10
    MEM_FREE = 11
    CONDITIONAL = 13


@dataclass(frozen=True)
class Task:
    """The task of a node. `about` is what it was made of: a structure of cuda.h, a handle or a
    child graph; None where work was captured that no structure describes."""

    kind: Kind
    run: Callable[[], object]
    about: Any = None


@dataclass(eq=False)
class Node:
    """A task, and the nodes whose tasks come before it. `original` is what it is a clone of."""

    graph: Graph
    task: Task
    number: int
    dependencies: list[Node] = field(default_factory=list["Node"])
    original: Node | None = None
    handle: int = 0

    @property
    def dependents(self) -> list[Node]:
        """Returns the nodes that come right after it."""
        return [node for node in self.graph.nodes if self in node.dependencies]


@dataclass(eq=False)
class Graph:
    """Nodes, in the order in which they were added."""

    nodes: list[Node] = field(default_factory=list[Node])
    original: Graph | None = None
    number: int = field(default_factory=lambda: next(state.numbers))
    handle: int = 0
    kept: dict[int, int] = field(default_factory=dict[int, int])
    """How often the graph holds each user object (`user_objects`)."""
    conditions: dict[int, Any] = field(default_factory=dict[int, Any])
    """The conditions of its conditional nodes, by handle (`conditionals`); bodies share them."""
    _numbers: Any = field(default_factory=count)

    def add(self, task: Task, dependencies: Iterable[Node] = ()) -> Node:
        """Returns a new node. INVALID_VALUE for dependencies of another graph, or named twice."""
        before = list(dependencies)
        if any(node.graph is not self for node in before) or len(set(before)) != len(before):
            raise DriverError(Result.INVALID_VALUE)
        node = Node(self, task, next(self._numbers), before)
        node.handle = state.handles.add(node)
        self.nodes.append(node)
        return node

    def connect(self, pairs: list[tuple[Node, Node]]) -> None:
        """Makes the second of each pair wait for the first. INVALID_VALUE, and nothing happens,
        where it does already, or nodes would wait for themselves."""
        if any(a.graph is not self or b.graph is not self for a, b in pairs):
            raise DriverError(Result.INVALID_VALUE)
        if len(set(pairs)) != len(pairs) or any(a in b.dependencies for a, b in pairs):
            raise DriverError(Result.INVALID_VALUE)
        for before, after in pairs:
            after.dependencies.append(before)
        try:
            self.ordered()
        except CycleError:
            self.disconnect(pairs)
            raise DriverError(Result.INVALID_VALUE) from None

    def disconnect(self, pairs: list[tuple[Node, Node]]) -> None:
        """Removes an edge; INVALID_VALUE where one node does not wait for the other."""
        if any(before not in after.dependencies for before, after in pairs):
            raise DriverError(Result.INVALID_VALUE)
        for before, after in pairs:
            after.dependencies.remove(before)

    def ordered(self) -> list[Node]:
        """Returns the nodes, each after those that it waits for; else as they were added."""
        return list(TopologicalSorter({n: n.dependencies for n in self.nodes}).static_order())

    def edges(self) -> list[tuple[Node, Node]]:
        """Returns each pair of a node and one that waits for it."""
        return [(before, node) for node in self.nodes for before in node.dependencies]

    def remove(self, node: Node) -> None:
        """Removes a node; no other node waits for it any more."""
        for after in node.dependents:
            after.dependencies.remove(node)
        self.nodes.remove(node)
        state.handles.remove(node.handle)

    def clone(self) -> Graph:
        """Returns the same once more: later changes of either leave the other as it is."""
        made = Graph(original=self, conditions=self.conditions)
        twins: dict[Node, Node] = {}
        for node in self.nodes:
            twins[node] = made.add(node.task)
            twins[node].original = node
        for node, twin in twins.items():
            twin.dependencies.extend(twins[before] for before in node.dependencies)
        return made

    def close(self) -> None:
        """Releases the handles of the graph and its nodes."""
        for node in self.nodes:
            state.handles.remove(node.handle)
        state.handles.remove(self.handle)
        self.nodes.clear()  # they refer to the graph: memory of theirs would wait for a collection


def graph_at(handle: int) -> Graph:
    """Returns the graph of a handle."""
    return state.handles.get(handle, Graph, Result.INVALID_VALUE)


def node_at(handle: int) -> Node:
    """Returns the node of a handle."""
    return state.handles.get(handle, Node, Result.INVALID_VALUE)


def own(graph: Graph) -> int:
    """Returns the handle of a graph that a program has, made when it is first asked for."""
    if not graph.handle:
        graph.handle = state.handles.add(graph)
    return graph.handle


def perform(graph: Graph) -> None:
    """Executes a child graph, as far as a kernel that ends the context."""
    context = state.current()
    for node in graph.ordered():
        node.task.run()
        if context.error is not None:
            return
