"""Creates, destroys and draws graphs, and adds, removes and lists their nodes and edges."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from warploom.clients.driver.graphs.capturing import nodes_at
from warploom.clients.driver.graphs.graphs import Graph, Node, graph_at, node_at, own
from warploom.clients.driver.graphs.user_objects import give_up, share
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import offer, put, put_int, text_at, word_at


@entry("cuGraphCreate")
def create(graph: int, flags: int) -> None:
    state.current()
    if flags:
        raise DriverError(Result.INVALID_VALUE)
    put(graph, own(Graph()))


@entry("cuGraphDestroy")
def destroy(graph: int) -> None:
    found = graph_at(graph)
    found.close()
    give_up(found.kept)


@entry("cuGraphClone")
def clone(made: int, graph: int) -> None:
    found = graph_at(graph)
    twin = found.clone()
    twin.kept = share(found.kept)
    put(made, own(twin))


@entry("cuGraphNodeFindInClone")
def find_in_clone(node: int, original: int, graph: int) -> None:
    found, wanted = graph_at(graph), node_at(original)
    twin = next((one for one in found.nodes if one.original is wanted), None)
    if twin is None:
        raise DriverError(Result.INVALID_VALUE)
    put(node, twin.handle)


@entry("cuGraphDestroyNode")
def destroy_node(node: int) -> None:
    found = node_at(node)
    found.graph.remove(found)


@entry("cuGraphGetId")
def graph_number(graph: int, number: int) -> None:
    put(number, graph_at(graph).number, ctypes.c_uint)


@entry("cuGraphNodeGetLocalId")
def node_number(node: int, number: int) -> None:
    put(number, node_at(node).number, ctypes.c_uint)


@entry("cuGraphNodeGetToolsId")
def node_name(node: int, number: int) -> None:
    put(number, node_at(node).handle)


@entry("cuGraphNodeGetType")
def node_type(node: int, kind: int) -> None:
    put_int(kind, node_at(node).task.kind)


@entry("cuGraphNodeGetContainingGraph")
def graph_of(node: int, graph: int) -> None:
    put(graph, own(node_at(node).graph))


# ---- lists of nodes ------------------------------------------------------------------------------


def _write_lists(lists: Sequence[tuple[int, Sequence[Node]]], count: int) -> None:
    """Writes lists of nodes into arrays of `count` handles; where these are null, only how many
    there are. What is left of the arrays becomes null."""
    if not count:
        raise DriverError(Result.INVALID_VALUE)
    capacity, length = word_at(count), len(lists[0][1])
    for target, nodes in lists:
        if target:
            for index in range(capacity):
                put(target + 8 * index, nodes[index].handle if index < length else 0)
    wanted = any(target for target, _ in lists)
    put(count, min(capacity, length) if wanted else length)


@entry("cuGraphGetNodes")
def nodes(graph: int, target: int, count: int) -> None:
    _write_lists([(target, graph_at(graph).nodes)], count)


@entry("cuGraphGetRootNodes")
def roots(graph: int, target: int, count: int) -> None:
    _write_lists(
        [(target, [node for node in graph_at(graph).nodes if not node.dependencies])], count
    )


@entry("cuGraphGetEdges")
def edges(graph: int, before: int, after: int, count: int) -> None:
    edges_with(graph, before, after, 0, count)


@entry("cuGraphGetEdges_v2")
def edges_with(graph: int, before: int, after: int, data: int, count: int) -> None:
    found = graph_at(graph).edges()
    _plain(data, count)
    _write_lists([(before, [a for a, _ in found]), (after, [b for _, b in found])], count)


@entry("cuGraphNodeGetDependencies")
def dependencies(node: int, target: int, count: int) -> None:
    _write_lists([(target, node_at(node).dependencies)], count)


@entry("cuGraphNodeGetDependencies_v2")
def dependencies_with(node: int, target: int, data: int, count: int) -> None:
    _plain(data, count)
    dependencies(node, target, count)


@entry("cuGraphNodeGetDependentNodes")
def dependents(node: int, target: int, count: int) -> None:
    _write_lists([(target, node_at(node).dependents)], count)


@entry("cuGraphNodeGetDependentNodes_v2")
def dependents_with(node: int, target: int, data: int, count: int) -> None:
    _plain(data, count)
    dependents(node, target, count)


def _plain(data: int, count: int) -> None:
    """Data of edges that say no more than that one node waits for another: eight bytes of zeros."""
    if data and count:
        ctypes.memset(data, 0, 8 * word_at(count))


@entry("cuGraphAddDependencies")
def connect(graph: int, before: int, after: int, count: int) -> None:
    pairs = zip(nodes_at(before, count), nodes_at(after, count), strict=True)
    graph_at(graph).connect(list(pairs))


@entry("cuGraphAddDependencies_v2")
def connect_with(graph: int, before: int, after: int, _data: int, count: int) -> None:
    connect(graph, before, after, count)


@entry("cuGraphRemoveDependencies")
def disconnect(graph: int, before: int, after: int, count: int) -> None:
    pairs = zip(nodes_at(before, count), nodes_at(after, count), strict=True)
    graph_at(graph).disconnect(list(pairs))


@entry("cuGraphRemoveDependencies_v2")
def disconnect_with(graph: int, before: int, after: int, _data: int, count: int) -> None:
    disconnect(graph, before, after, count)


@entry("cuGraphDebugDotPrint")
def draw(graph: int, path: int, _flags: int) -> None:
    """Writes a drawing of the graph in the language of Graphviz."""
    found = graph_at(graph)
    names = {node: f"node{node.number}" for node in found.nodes}
    lines = [f'  {name} [label="{node.task.kind.name}"];' for node, name in names.items()]
    lines += [f"  {names[before]} -> {names[after]};" for before, after in found.edges()]
    try:
        with open(text_at(path), "w", encoding="utf-8") as file:
            file.write("\n".join(["digraph {", *lines, "}", ""]))
    except OSError as error:
        raise DriverError(Result.OPERATING_SYSTEM, str(error)) from None


@entry("cuGraphChildGraphNodeGetGraph")
def child_of(node: int, graph: int) -> None:
    child = node_at(node).task.about
    if not isinstance(child, Graph):
        raise DriverError(Result.INVALID_VALUE)
    offer(graph, own(child))
