"""Finds the path of a warp through machine code, given its path through the basic blocks of the
PTX.

It is the cheapest walk through the control-flow graph of the machine code that executes the tokens
of the PTX path in their order (Dijkstra's algorithm). A walk is searched window by window, as what
comes much later does not decide where a branch goes. Paths repeat, so windows do, and each is
searched once. For example, where ptxas unrolled a loop by two:

    PTX path      entry, loop, loop, loop, loop, exit
    machine code  N0, N1, N1, N2          N1 executes the token of `loop` twice
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np

from warploom.machinecode.counted import MachineCounts
from warploom.timing.machinecode.tokens import BlockTokens, Words, tokens_of

WINDOW = 48
"""Tokens of a window at first; only the first half of the path that a search finds is retained. A
window grows until one visit to its first node ends in it."""

MIN_EXECUTIONS = 1e-6
"""A node executed less often than this counts as not executed."""

STEP_COST, MOST_STEPS = 0.01, 50
"""The cost of a machine instruction, and how many of a node are charged: the longest node is
cheaper than an anchor that is left out."""

UNLIKELY_COST = 2.0
"""The cost of a node that is not executed in the match of all warps together, and of an edge that
is not taken there."""

MISSED_COST = 10.0
"""The cost of an anchor that is executed in the PTX or in the machine code only."""

DIVERGED_COST, LOST_COST = 1.0, 50.0
"""The costs of continuing at another node: where lanes of the warp diverged, and where they did
not."""

Key = tuple[int, bool, tuple[int, ...]]
"""A window: its first node, whether the path ends in it, and its tokens, times two, plus one where
the path does not follow an edge of the control-flow graph from the block before."""


@dataclass(frozen=True)
class Segment:
    """Holds the part of a walk that one window's search retains: its `nodes` in order, and for each
    the positions in the PTX path, from the window's start on, at which its tokens begin and end.
    `done`: the position up to which the path is done; `next_node`: the node that comes next, -1 at
    the end; `missed`: the cost of tokens that differ; `tokens`: those of the window."""

    nodes: tuple[int, ...]
    starts: tuple[int, ...]
    stops: tuple[int, ...]
    done: int
    next_node: int
    missed: float
    tokens: tuple[int, ...]


class _PathNode(NamedTuple):
    """Holds a node on a searched path: the node before it, the tokens that it executes, the cost of
    what differs up to it, and whether the visit ends in the window."""

    before: _PathNode | None
    node: int
    start: int
    stop: int
    missed: float
    is_whole: bool


_Path = _PathNode | None
_SearchEntry = tuple[float, int, int, int, _Path, float]
"""An entry of the priority queue: cost, tie-breaker, position, node, path, cost of what differs."""


@dataclass(frozen=True)
class Walk:
    """Holds the segments of a walk, and the position in the PTX path at which each begins."""

    segments: tuple[Segment, ...]
    positions: tuple[int, ...]

    @property
    def missed(self) -> float:
        """Returns the weight of the tokens that only the PTX path or the machine code's executes: 1
        for an anchor (the surest evidence), less for others."""
        return sum(segment.missed for segment in self.segments) / MISSED_COST


class Walker:
    """Finds the walks of a launch (paths of warps through the machine code), and caches the
    segments that they are made of. Nodes are basic blocks of the machine code, tokens stand for
    those of the PTX (`BlockTokens`)."""

    def __init__(self, counts: MachineCounts) -> None:
        """Prepares the tokens, the edges of the PTX's control-flow graph, and the costs of nodes of
        the machine code: each costs by its size, and UNLIKELY_COST more if it was not executed in
        `counts`, the match of all warps. Edges that were not taken in `counts` are stored in
        `_rare`."""
        self.tokens: BlockTokens = tokens_of(counts)
        self._nodes = counts.matching.nodes
        executed = counts.executed
        self._costs = [
            STEP_COST * min(node.size, MOST_STEPS)
            + (0.0 if executions > MIN_EXECUTIONS else UNLIKELY_COST)
            for node, executions in zip(self._nodes, executed.tolist(), strict=True)
        ]
        self._blocks = counts.matching.program.blocks
        self._segments_by_key: dict[Key, Segment | None] = {}
        self._rare = {
            edge for edge, executions in counts.flow.edges.items() if executions <= MIN_EXECUTIONS
        }
        edges = [(block.index, to) for block in self._blocks for to in block.successors]
        self._edges = {at << 32 | to for at, to in edges}

    def walk(self, path: Words) -> Walk:
        """Returns the walk of a warp whose PTX path has these basic blocks (by number), searched
        window by window (WINDOW tokens) from node 0 until a segment ends the path; searched windows
        are cached."""
        coded = self._encode_path(path)
        segments: list[Segment] = []
        positions: list[int] = []
        position = node = 0
        while node >= 0:
            segment = self._next_segment(coded, position, node)
            segments.append(segment)
            positions.append(position)
            position, node = position + segment.done, segment.next_node
        return Walk(tuple(segments), tuple(positions))

    def _next_segment(self, coded: Sequence[int], position: int, node: int) -> Segment:
        """Returns the segment of a coded path from a position and a node on, with the smallest
        window in which the visit to the node ends."""
        size = WINDOW
        while True:
            ends = position + size >= len(coded)
            key = node, ends, tuple(coded[position : position + size])
            if key not in self._segments_by_key:
                self._segments_by_key[key] = self._search(*key)
            segment = self._segments_by_key[key]
            if segment is not None:
                return segment
            size *= 2

    def _encode_path(self, path: Words) -> list[int]:
        """Returns the tokens of a path of PTX blocks, each as `token << 1 | bit`. The bit is 1 if
        the step from the block before is no edge of the control-flow graph, as another part of a
        diverged warp continues; it is 0 for the first block."""
        steps = path[:-1] << 32 | path[1:]
        distinct, index = np.unique(steps, return_inverse=True)
        is_edge = np.array([kind in self._edges for kind in distinct.tolist()], bool)
        follows = np.concatenate([[True], is_edge[index.reshape(-1)]]) if len(path) > 1 else [True]
        return (2 * self.tokens.of_block[path] + ~np.asarray(follows, bool)).tolist()

    def _search(self, first: int, ends: bool, window: Sequence[int]) -> Segment | None:
        """Returns the cheapest segment from node `first` on that executes the tokens of a window
        (`token << 1 | bit`, `_encode_path`), by Dijkstra's algorithm over pairs of a position in
        the window and a node. Costs have: instructions, unlikely nodes and edges, tokens that only
        one path executes, and jumps to another node, which are cheaper where the warp diverged.
        `ends`: the path ends in this window, so the segment does, too; else about its first half is
        retained (`_segment`). None if the visit to the first node does not end in the window."""
        stop = len(window)
        order = count()
        open_: list[_SearchEntry] = [(0.0, next(order), 0, first, None, 0.0)]
        seen: set[tuple[int, int]] = set()
        while open_:
            cost, _, position, node, before, missed = heapq.heappop(open_)
            # `open_` is a heap by cost: the first path that is complete is the cheapest.
            if node < 0 or (position >= stop and not ends):
                half = stop if ends else stop // 2
                return _segment(before, position, node, missed, tuple(c >> 1 for c in window), half)
            if (position, node) in seen:
                continue
            seen.add((position, node))
            after, missed_here, is_whole = self._do_tokens(node, position, window, ends)
            path = _PathNode(before, node, position, after, missed, is_whole)
            current = self._nodes[node]
            total = cost + self._costs[node] + missed_here
            for to in current.successors:
                cost_then = total + (UNLIKELY_COST if (node, to) in self._rare else 0.0)
                heapq.heappush(
                    open_, (cost_then, next(order), after, to, path, missed + missed_here)
                )
            if current.leaves or not current.successors:
                # Leaving before the end of the path costs an anchor for each token that is left.
                leave_cost = 0.0 if ends and after == stop else MISSED_COST * (stop - after + 1)
                heapq.heappush(
                    open_, (total + leave_cost, next(order), after, -1, path, missed + missed_here)
                )
            # Alternatives: continue at another node that executes the next token, as after
            # divergence, or leave the token out.
            if position < stop:
                token, diverged = divmod(window[position], 2)
                cost_then = DIVERGED_COST if diverged else LOST_COST
                for other in self.tokens.nodes_of.get(token, ()):
                    heapq.heappush(
                        open_, (cost + cost_then, next(order), position, other, before, missed)
                    )
                skipped = MISSED_COST * self.tokens.weights.get(token, 0.0)
                entry = (cost + skipped, next(order), position + 1, node, before, missed + skipped)
                heapq.heappush(open_, entry)
        raise AssertionError("every path can be omitted")

    def _do_tokens(
        self, node: int, position: int, window: Sequence[int], ends: bool
    ) -> tuple[int, float, bool]:
        """Executes, in one visit to `node`, the tokens of a window from index `position` on.
        Returns the index of the first token that the visit does not execute (the window's length if
        it executes all), a penalty, and whether the visit cannot execute tokens of the next window.
        An element of `window` is `token << 1 | bit`
        (`_encode_path`); the bit is not used here.

        A visit executes each token as often as `needs[node]` has it; tokens that no node executes
        are passed over. The penalty is MISSED_COST times the weight of each token that the visit
        should have executed, but for optional ones. It is 0.0 if the window is used up and the path
        continues after it (`ends` false): the next window may have the missing tokens."""
        remaining = dict(self.tokens.needs[node])
        while position < len(window):
            token = window[position] >> 1
            if token in self.tokens.nodes_of:
                if not remaining.get(token):
                    break
                remaining[token] -= 1
            position += 1
        if position == len(window) and not ends:
            return position, 0.0, not any(remaining.values())
        weights, optional = self.tokens.weights, self.tokens.optional
        missing = (n * weights[token] for token, n in remaining.items() if token not in optional)
        return position, MISSED_COST * sum(missing), True


def _segment(
    last: _Path, position: int, next_node: int, missed: float, tokens: tuple[int, ...], most: int
) -> Segment | None:
    """Returns a searched path, whose last node is `last`, as a segment, up to its first node, but
    not the first of all, that begins after the position `most` or whose visit does not end in the
    window; the next window begins with that node. None if the visit to the first node does not.
    `position`, `next_node` and `missed` are those of a segment that retains the whole path;
    `tokens` are the window's, uncoded."""
    path: list[_PathNode] = []
    while last is not None:
        path.append(last)
        last = last.before
    path.reverse()
    if path and not path[0].is_whole:
        return None
    cuts = (i for i, node in enumerate(path) if i and (node.start > most or not node.is_whole))
    retained = next(cuts, len(path))
    if retained < len(path):
        position, next_node, missed = (
            path[retained].start,
            path[retained].node,
            path[retained].missed,
        )
    visited = path[:retained]  # empty where all tokens were left out
    return Segment(
        tuple(node.node for node in visited),
        tuple(node.start for node in visited),
        tuple(node.stop for node in visited),
        position,
        next_node,
        missed,
        tokens,
    )
