"""Tests immediate dominators and post-dominators of graphs worked out by hand, and of random ones.

A graph is the list of each node's successors; the exit is the number after the last node.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from warploom.program.dominance import does_dominate, dominators, post_dominators


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        pytest.param([(1,)], (1,), id="one block"),
        pytest.param([], (), id="empty"),
        pytest.param([(1,), (2,), (3,)], (1, 2, 3), id="a line"),
        pytest.param([(1, 2), (3,), (3,), (4,)], (3, 3, 3, 4), id="diamond"),
        pytest.param([(2, 1), (2,), (3,)], (2, 2, 3), id="if without else"),
        pytest.param([(0, 1), (2,)], (1, 2), id="do-while"),
        # 0 -> head 1; 1 -> body 2 or out 4; 2 -> break to 4 or 3; 3 -> 1
        pytest.param([(1,), (2, 4), (4, 3), (1,), (5,)], (1, 4, 4, 1, 5), id="loop with a break"),
        # 0 -> 1 or 2; 1 -> 3 or 4; 2, 3 and 4 exit
        pytest.param([(1, 2), (3, 4), (5,), (5,), (5,)], (5, 5, 5, 5, 5), id="several exits"),
        # if (a) { if (b) return; x } y: lanes that do not return meet at y, but y comes on no path
        # of those that do
        pytest.param([(3, 1), (4, 2), (3,), (4,)], (4, 4, 3, 4), id="return in divergent code"),
        # 0 jumps to 1 or 2, which form a loop of two entries; 2 leaves it
        pytest.param([(1, 2), (2,), (1, 3), (4,)], (2, 2, 3, 4), id="goto into a loop"),
        # for (;;) { if (a) 2 else 3; 4 }: paths that part at 1 meet at 4
        pytest.param(
            [(1,), (2, 3), (4,), (4,), (1,)], (1, 4, 4, 4, 5), id="endless loop with an if"
        ),
        # 0 may end in 3 or in an endless loop of 1 and 2
        pytest.param([(1, 3), (2,), (1,), (4,)], (4, 2, 4, 4), id="endless loop on one side"),
        # 1 loops on itself for ever; 2 leads into it: only the loop gets a way out
        pytest.param([(2, 3), (1,), (1,), (4,)], (4, 4, 1, 4), id="a way into an endless loop"),
        pytest.param([(0,)], (1,), id="a block that loops on itself"),
        pytest.param([(1,), (2,), (2, 1)], (1, 2, 3), id="nested endless loops"),
        # nothing leads to 1
        pytest.param([(2,), (2,), (3,)], (2, 2, 3), id="unreachable block"),
    ],
)
def test_by_hand(graph: list[tuple[int, ...]], expected: tuple[int, ...]) -> None:
    assert post_dominators(graph) == expected


def has_path(graph: list[tuple[int, ...]], start: int, goal: int, without: int) -> bool:
    """Returns whether some path from `start` to `goal` does not pass `without`."""
    if start == without:
        return False
    seen, pending = {start}, [start]
    while pending:
        node = pending.pop()
        if node == goal:
            return True
        for successor in graph[node] if node < len(graph) else ():
            if successor != without and successor not in seen:
                seen.add(successor)
                pending.append(successor)
    return False


@st.composite
def graphs(draw: st.DrawFn) -> list[tuple[int, ...]]:
    size = draw(st.integers(1, 9))
    edges = st.lists(st.integers(0, size), min_size=1, max_size=2).map(tuple)
    return draw(st.lists(edges, min_size=size, max_size=size))


@given(graphs())
@example([(1, 2), (2, 3), (1, 3)])
def test_against_the_definition(graph: list[tuple[int, ...]]) -> None:
    """d post-dominates b when no path from b to the exit is left without d; the immediate one is
    the one that all others post-dominate in turn."""
    exit = len(graph)
    never = exit + 1
    found = post_dominators(graph)
    if not all(has_path(graph, b, exit, never) for b in range(exit)):
        return
    for block in range(exit):
        above = {
            d for d in range(exit) if d != block and not has_path(graph, block, exit, without=d)
        } | {exit}
        nearest = {
            d
            for d in above
            if all(o in (exit, d) or not has_path(graph, d, exit, o) for o in above)
        }
        assert {found[block]} == nearest


@given(graphs())
def test_following_post_dominators_ends_at_the_exit(graph: list[tuple[int, ...]]) -> None:
    """Even in endless loops, following post-dominators from any block ends at the exit."""
    found = post_dominators(graph)
    for block in range(len(graph)):
        steps = 0
        while block != len(graph):
            block = found[block]
            steps += 1
            assert steps <= len(graph)


@given(graphs())
def test_endless_loops_do_not_affect_other_blocks(graph: list[tuple[int, ...]]) -> None:
    """A block from which no endless loop can be entered has its plain post-dominator."""
    exit = len(graph)
    endless = {b for b in range(exit) if not has_path(graph, b, exit, exit + 1)}
    found = post_dominators(graph)
    for block in set(range(exit)) - endless:
        if not any(has_path(graph, block, e, exit + 1) for e in endless):
            assert not has_path(graph, block, exit, without=found[block]) or found[block] == exit


@given(graphs())
@example([(1, 2), (2, 3), (1, 3)])
def test_dominators_against_the_definition(graph: list[tuple[int, ...]]) -> None:
    """d dominates b when no path from the entry to b is left without d."""
    immediate, exit = dominators([*graph, ()]), len(graph)
    for block in range(exit + 1):
        assert (block in immediate) == has_path(graph, 0, block, exit + 1)
        for other in immediate if block in immediate else ():
            is_on_all_paths = other == block or not has_path(graph, 0, block, without=other)
            assert does_dominate(immediate, other, block) == is_on_all_paths
