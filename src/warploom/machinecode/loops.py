"""Finds the loops of a control-flow graph, reducible or not: strongly connected components, and
those that are left in each without the edges to the nodes where it is entered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warploom.program.program import Program


@dataclass(frozen=True)
class Loop:
    """A loop: its nodes, those of inner loops included, and those where it is entered."""

    nodes: frozenset[int]
    heads: frozenset[int]


def loops_of(successors: Sequence[Sequence[int]]) -> list[Loop]:
    """Returns the loops of a graph, whose entry is node 0, outer ones before inner ones."""
    found: list[Loop] = []
    waiting = [set(range(len(successors)))]
    cut: set[int] = set()
    while waiting:
        within = waiting.pop()
        for part in _components(successors, within, cut):
            heads = _heads(successors, part)
            found.append(Loop(frozenset(part), frozenset(heads)))
            cut |= heads
            waiting.append(part)
    return sorted(found, key=lambda loop: -len(loop.nodes))


def outer_loops(successors: Sequence[Sequence[int]]) -> list[set[int]]:
    """Returns the nodes of the loops of a graph that are in no other loop."""
    return _components(successors, set(range(len(successors))), set())


def ptx_loops(program: Program) -> list[Loop]:
    """Returns the loops of a program that are entered at one basic block, outer ones before inner
    ones; their nodes are its basic blocks."""
    last = len(program.blocks)
    graph = [tuple(to for to in block.successors if to < last) for block in program.blocks]
    return [loop for loop in loops_of(graph) if len(loop.heads) == 1]


def _heads(successors: Sequence[Sequence[int]], part: set[int]) -> set[int]:
    """Returns the nodes of a part where it is entered."""
    outside = (to for node, onward in enumerate(successors) if node not in part for to in onward)
    heads = {0, *outside} & part
    return heads or {min(part)}


def _components(
    successors: Sequence[Sequence[int]], within: set[int], cut: set[int]
) -> list[set[int]]:
    """Returns the strongly connected components with an edge inside of the nodes `within`, without
    the edges that lead to `cut` (Tarjan 1972)."""
    found: list[set[int]] = []
    numbers: dict[int, int] = {}
    lowest: dict[int, int] = {}
    stack: list[int] = []
    inside: set[int] = set()

    def onward(node: int) -> Iterable[int]:
        return (to for to in successors[node] if to in within and to not in cut)

    for root in sorted(within):
        if root in numbers:
            continue
        path = [(root, iter(onward(root)))]
        numbers[root] = lowest[root] = len(numbers)
        stack.append(root)
        inside.add(root)
        while path:
            node, rest = path[-1]
            step = next(rest, None)
            if step is None:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
                if lowest[node] == numbers[node]:
                    part = set(stack[stack.index(node) :])
                    del stack[-len(part) :]
                    inside -= part
                    if len(part) > 1 or node in onward(node):
                        found.append(part)
            elif step not in numbers:
                numbers[step] = lowest[step] = len(numbers)
                stack.append(step)
                inside.add(step)
                path.append((step, iter(onward(step))))
            elif step in inside:
                lowest[node] = min(lowest[node], numbers[step])
    return found
