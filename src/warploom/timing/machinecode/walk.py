"""The way of a warp through machine code, from its way through the basic blocks of the PTX.

It is the cheapest walk through the graph of the machine code that does the tokens of the PTX's way
in their order. A walk is found window by window: what comes far behind does not tell where a branch
goes. Ways repeat, so windows do, and each is searched once."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np

from warploom.machinecode.counted import MachineCounts
from warploom.timing.machinecode.tokens import Tokens, Words, tokens_of

WINDOW = 48
"""Tokens that a search looks ahead; the first half of what it finds is kept."""

LEAST = 1e-6
"""Less often than this, a node is not executed."""

STEP, MOST_STEPS = 0.01, 50
"""The cost of a machine instruction, and how many of a node have one: the longest node is cheaper
than an anchor that is left out."""

UNLIKELY = 2.0
"""The cost of a node that is not executed where all warps are looked at together, and of an edge
that is not taken."""

MISSED = 10.0
"""The cost of an anchor that was done here and not there."""

DIVERGED_STATUS, LOST = 1.0, 50.0
"""The cost of going on at another block, where lanes of the warp parted, and where they did not."""

Key = tuple[int, bool, tuple[int, ...]]
"""The node that comes next, whether the way ends in the window, and its tokens, times two and one
more where the way does not follow from the block before."""


@dataclass(frozen=True)
class Segment:
    """A part of a walk: `nodes` one after the other, for each where the tokens begin that it does
    and where they stop (positions in the way, from the window's first), how far the way is done,
    the node that comes next, and what differed, as a cost; `tokens` are those of the window."""

    nodes: tuple[int, ...]
    starts: tuple[int, ...]
    stops: tuple[int, ...]
    done: int
    then: int
    missed: float
    tokens: tuple[int, ...]


class _Way(NamedTuple):
    """A node on a path: what came before it, the tokens that it does, and what differed until
    there."""

    before: _Way | None
    node: int
    start: int
    stop: int
    missed: float


_Before = _Way | None
_Open = tuple[float, int, int, int, _Before, float]
"""An entry of the search: cost, order among equal ones, position, node, path, what differed."""


@dataclass(frozen=True)
class Walk:
    """The segments of a walk, and the position in the way at which each begins."""

    segments: tuple[Segment, ...]
    places: tuple[int, ...]

    @property
    def missed(self) -> float:
        """Tokens that were done in one of both alone, by their weights."""
        return sum(one.missed for one in self.segments) / MISSED


class Walker:
    """Finds the walks of a launch."""

    def __init__(self, counts: MachineCounts) -> None:
        self.tokens: Tokens = tokens_of(counts)
        self._nodes = counts.matching.nodes
        executed = counts.executed
        self._costs = [
            STEP * min(node.size, MOST_STEPS) + (0.0 if often > LEAST else UNLIKELY)
            for node, often in zip(self._nodes, executed.tolist(), strict=True)
        ]
        self._blocks = counts.matching.program.blocks
        self._known: dict[Key, Segment] = {}
        self._rare = {edge for edge, often in counts.flow.edges.items() if often <= LEAST}
        edges = [(block.index, to) for block in self._blocks for to in block.successors]
        self._edges = {at << 32 | to for at, to in edges}

    def walk(self, way: Words) -> Walk:
        """Return the walk of a warp whose way is these basic blocks of the PTX."""
        coded = self._coded(way)
        segments: list[Segment] = []
        places: list[int] = []
        at = node = 0
        while node >= 0:
            ends = at + WINDOW >= len(coded)
            key = node, ends, tuple(coded[at : at + WINDOW])
            if key not in self._known:
                self._known[key] = self._search(*key)
            found = self._known[key]
            segments.append(found)
            places.append(at)
            at, node = at + found.done, found.then
        return Walk(tuple(segments), tuple(places))

    def _coded(self, way: Words) -> list[int]:
        """Return the tokens of a way, times two, and one more where lanes have parted before."""
        steps = way[:-1] << 32 | way[1:]
        kinds, which = np.unique(steps, return_inverse=True)
        known = np.array([kind in self._edges for kind in kinds.tolist()], bool)
        follows = np.concatenate([[True], known[which.reshape(-1)]]) if len(way) > 1 else [True]
        return (2 * self.tokens.of_block[way] + ~np.asarray(follows, bool)).tolist()

    def _search(self, first: int, ends: bool, window: Sequence[int]) -> Segment:
        """Return the best segment from a node on."""
        stop = len(window)
        order = count()
        open_: list[_Open] = [(0.0, next(order), 0, first, None, 0.0)]
        seen: set[tuple[int, int]] = set()
        while open_:
            cost, _, at, node, before, missed = heapq.heappop(open_)
            if node < 0 or (at >= stop and not ends):
                half = stop if ends else stop // 2
                return _segment(before, at, node, missed, tuple(c >> 1 for c in window), half)
            if (at, node) in seen:
                continue
            seen.add((at, node))
            after, off = self._do(node, at, window, ends)
            way = _Way(before, node, at, after, missed)
            made = self._nodes[node]
            spent = cost + self._costs[node] + off
            for to in made.successors:
                price = spent + (UNLIKELY if (node, to) in self._rare else 0.0)
                heapq.heappush(open_, (price, next(order), after, to, way, missed + off))
            if made.leaves or not made.successors:
                left = 0.0 if ends and after == stop else MISSED * (stop - after + 1)
                heapq.heappush(open_, (spent + left, next(order), after, -1, way, missed + off))
            if at < stop:
                token, diverged = divmod(window[at], 2)
                price = DIVERGED_STATUS if diverged else LOST
                for other in self.tokens.having.get(token, ()):
                    heapq.heappush(open_, (cost + price, next(order), at, other, before, missed))
                skipped = MISSED * self.tokens.weights.get(token, 0.0)
                entry = (cost + skipped, next(order), at + 1, node, before, missed + skipped)
                heapq.heappush(open_, entry)
        raise AssertionError("every way can be left out")

    def _do(self, node: int, at: int, window: Sequence[int], ends: bool) -> tuple[int, float]:
        """Returns where the tokens stop that a node does from a position on, and the cost of those
        that it does and the way does not."""
        left = dict(self.tokens.needs[node])
        while at < len(window):
            token = window[at] >> 1
            if token in self.tokens.having:
                if not left.get(token):
                    break
                left[token] -= 1
            at += 1
        if at == len(window) and not ends:
            return at, 0.0
        weights, optional = self.tokens.weights, self.tokens.optional
        more = (n * weights[token] for token, n in left.items() if token not in optional)
        return at, MISSED * sum(more)


def _segment(
    before: _Before, at: int, then: int, missed: float, tokens: tuple[int, ...], most: int
) -> Segment:
    """Return the path that a search has come by, up to its first node that begins behind `most`."""
    path: list[_Way] = []
    while before is not None:
        path.append(before)
        before = before.before
    path.reverse()
    kept = next((i for i, way in enumerate(path) if i and way.start > most), len(path))
    if kept < len(path):
        at, then, missed = path[kept].start, path[kept].node, path[kept].missed
    nodes, starts, stops = zip(*((w.node, w.start, w.stop) for w in path[:kept]), strict=True)
    return Segment(nodes, starts, stops, at, then, missed, tokens)
