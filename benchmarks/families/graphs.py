"""Graphs, trees, searches."""

from __future__ import annotations

import numpy as np

from families import loops
from families.base import (
    LINE,
    PLANE,
    Case,
    LaunchShape,
    Problem,
    cover,
    integers,
    uniform,
)


def bfs_level(shape: LaunchShape) -> Problem:
    """A third of the nodes have the level, a third have none yet."""
    nodes = 80_000 + shape.excess
    degrees = integers(np.int32, 0, 20, nodes)
    starts = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32)
    neighbours = integers(np.int32, 0, nodes, starts[-1], seed=1)
    levels = integers(np.int32, 0, 3, nodes, seed=2)
    levels = np.array([-1, 2, 3], np.int32)[levels]
    visited = np.zeros(nodes, bool)
    visited[neighbours[np.repeat(levels == 3, degrees)]] = True
    expected = np.where(visited & (levels < 0), np.int32(4), levels)
    arguments = (starts, neighbours, levels, np.zeros(1, np.int32), nodes, 3)
    return Problem(cover(shape.block, nodes), arguments, {2: expected, 3: np.ones(1, np.int32)})


def find_roots(shape: LaunchShape) -> Problem:
    n = 100_000 + shape.excess
    draws = uniform(np.float64, n)
    parents = (draws * np.arange(n)).astype(np.int32)  # a random earlier element
    parents[:100] = np.arange(100)
    roots = parents
    while (roots != parents[roots]).any():
        roots = parents[roots]
    return Problem(cover(shape.block, n), (parents, np.zeros_like(roots), n), {1: roots})


def lower_bound(shape: LaunchShape) -> Problem:
    n, size = 150_000 + shape.excess, 50_000
    ordered, wanted = np.sort(uniform(np.float32, size)), uniform(np.float32, n, seed=1)
    places = np.searchsorted(ordered, wanted).astype(np.int32)
    arguments = (ordered, size, wanted, np.zeros_like(places), n)
    return Problem(cover(shape.block, n), arguments, {3: places})


NODE = np.dtype([("feature", "i4"), ("threshold", "f4"), ("left", "i4"), ("right", "i4")])


def decide(shape: LaunchShape) -> Problem:
    """A tree of 255 nodes with random thresholds: some leaves are likelier than others."""
    n, features, inner = 100_000 + shape.excess, 8, 255
    rows = uniform(np.float32, n, features)
    tree = np.zeros(
        inner, [("feature", "i4"), ("threshold", "f4"), ("left", "i4"), ("right", "i4")]
    )
    tree["feature"] = integers(np.int32, 0, features, inner, seed=1)
    tree["threshold"] = uniform(np.float32, inner, seed=2)
    children = np.arange(1, 2 * inner + 1).reshape(inner, 2)
    children = np.where(children < inner, children, -children)
    tree["left"], tree["right"] = children.T
    at = np.zeros(n, np.int32)
    while (at >= 0).any():
        node = tree[at.clip(0)]
        left = rows[np.arange(n), node["feature"]] < node["threshold"]
        at = np.where(at < 0, at, np.where(left, node["left"], node["right"]))
    arguments = (tree.view(np.uint8), rows, np.zeros_like(at), n, features)
    return Problem(cover(shape.block, n), arguments, {2: at})


def through(shape: LaunchShape) -> Problem:
    n, k = 700 + shape.excess, 40
    distances = integers(np.int32, 1, 1000, n, n)
    np.fill_diagonal(distances, 0)
    expected = np.minimum(distances, distances[:, k : k + 1] + distances[k])
    return Problem(cover(shape.block, n, n), (distances, n, k), {0: expected})


CASES = (
    Case("BFS, one level", "graphs.cu", "bfs_level", LINE, bfs_level, in_place=True),
    Case("roots of a forest", "graphs.cu", "find_roots", LINE, find_roots),
    Case("binary search", "graphs.cu", "lower_bound", LINE, lower_bound,
           native=loops.lower_bound),
    Case("decision tree", "graphs.cu", "decide", LINE, decide),
    Case("Floyd-Warshall step", "graphs.cu", "through", PLANE, through, in_place=True),
)  # fmt: skip
