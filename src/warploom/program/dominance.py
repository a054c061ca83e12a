"""Computes immediate dominators, the nearest block on all paths from the entry to a block, and
immediate post-dominators, the nearest block on all paths from a block to the exit: the
reconvergence points of branches.

The algorithm is that of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001),
for post-dominators on the reversed graph. It needs no reducible graph. Blocks in an endless loop
have no path to the exit; each such loop gets an edge to the exit from its last block, so that paths
that diverge inside the loop still reconverge inside it.

    0 -> 1, 2;  1 -> 3;  2 -> 3;  3 -> exit       post-dominators: 3, 3, 3, exit
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Graph = Sequence[Sequence[int]]
"""The successors of each node."""


def post_dominators(successors: Graph) -> tuple[int, ...]:
    """Returns the immediate post-dominator of each node; the exit is `len(successors)`. An endless
    loop counts as having an edge to the exit, from its node with the highest number."""
    exit = len(successors)
    immediate = dominators(_reversed(_with_exit_edges(successors)), exit)
    return tuple(immediate[node] for node in range(exit))


def dominators(successors: Graph, root: int = 0) -> Mapping[int, int]:
    """Returns the immediate dominator of each node to which a path leads from `root`: the
    nearest other node on all paths to it from there; of `root`, itself."""
    before = _reversed(successors)
    order = _post_order(successors, root)  # the root comes last
    rank = {node: i for i, node in enumerate(order)}
    idom: dict[int, int] = {root: root}

    def intersect(a: int, b: int) -> int:
        """Returns the nearest common ancestor of two nodes in the tree of dominators so far."""
        while a != b:
            if rank[a] < rank[b]:
                a = idom[a]
            else:
                b = idom[b]
        return a

    changed = True
    while changed:
        changed = False
        for node in reversed(order[:-1]):
            processed = [other for other in before[node] if other in idom]
            # In reverse post-order, some predecessor of each node comes before it.
            nearest = processed[0]
            for predecessor in processed[1:]:
                nearest = intersect(nearest, predecessor)
            if idom.get(node) != nearest:
                idom[node] = nearest
                changed = True
    return idom


def does_dominate(immediate: Mapping[int, int], node: int, other: int) -> bool:
    """Returns whether a node lies on all paths to another one, which may be itself."""
    while other != node and immediate[other] != other:
        other = immediate[other]
    return other == node


def _with_exit_edges(successors: Graph) -> list[list[int]]:
    """Returns the graph with the exit as its last node. Nodes without a path to the exit get one:
    each endless loop (a terminal strongly connected component) has an edge to the exit from its
    node with the highest number."""
    exit = len(successors)
    forward = [*(list(targets) for targets in successors), []]
    backward = _reversed(forward)
    escaping = _reachable(backward, exit)
    for node in range(exit):
        if node in escaping:
            continue
        # One edge a component is enough: all of its nodes then have a path to the exit, and the
        # node with the highest number is mostly the end of the loop's body, as for a loop that
        # ends.
        last = max(_terminal_component(forward, backward, node))
        forward[last].append(exit)
        backward[exit].append(last)
        escaping |= _reachable(backward, last)
    return forward


def _terminal_component(forward: Graph, backward: Graph, node: int) -> set[int]:
    """Returns the nodes of an endless loop: a strongly connected component that is reachable from
    `node` and that no edge leaves."""
    while True:
        reachable = _reachable(forward, node)
        beyond = reachable - _reachable(backward, node)
        if not beyond:
            return reachable
        # Such a node cannot lead back here: each step leaves a component, so the search ends.
        node = min(beyond)


def _reachable(graph: Graph, start: int) -> set[int]:
    """Returns the nodes on paths from `start`, itself included."""
    visited = {start}
    pending = [start]
    while pending:
        for node in graph[pending.pop()]:
            if node not in visited:
                visited.add(node)
                pending.append(node)
    return visited


def _reversed(graph: Graph) -> list[list[int]]:
    """Returns the graph with all edges reversed."""
    back: list[list[int]] = [[] for _ in graph]
    for node, successors in enumerate(graph):
        for successor in successors:
            back[successor].append(node)
    return back


def _post_order(graph: Graph, root: int) -> list[int]:
    """Returns the nodes reachable from `root` in post-order of a depth-first search."""
    order: list[int] = []
    seen = {root}
    stack = [(root, iter(graph[root]))]
    while stack:
        node, children = stack[-1]
        child = next((c for c in children if c not in seen), None)
        if child is None:
            order.append(node)
            stack.pop()
        else:
            seen.add(child)
            stack.append((child, iter(graph[child])))
    return order
