"""Strings and bytes: encoding, substitution, search, edit distance."""

from __future__ import annotations

import base64 as codec

import numpy as np

from families.base import (
    LINE,
    LINEAR,
    Array,
    Case,
    LaunchShape,
    Problem,
    cover,
    integers,
)


def base64(shape: LaunchShape) -> Problem:
    triples = 500_000 + shape.excess
    data = integers(np.uint8, 0, 256, 3 * triples)
    letters = np.frombuffer(codec.b64encode(data.tobytes()), np.int8)
    arguments = (data, np.zeros_like(letters), triples)
    return Problem(cover(shape.block, triples), arguments, {1: letters})


def substitute(shape: LaunchShape) -> Problem:
    n = 2_000_000 + shape.excess
    data = integers(np.uint8, 0, 256, n)
    table = np.random.default_rng(1).permutation(256).astype(np.uint8)
    return Problem((100,), (data, np.zeros_like(data), table, n), {1: table[data]})


def search(shape: LaunchShape) -> Problem:
    n = 500_000 + shape.excess
    text, pattern = integers(np.int8, 97, 100, n), np.frombuffer(b"abcacb", np.int8)
    windows = np.lib.stride_tricks.sliding_window_view(text, len(pattern))
    begins = np.zeros(n, np.uint8)
    begins[: len(windows)] = (windows == pattern).all(1)
    arguments = (text, n, pattern, len(pattern), np.zeros_like(begins))
    return Problem(cover(shape.block, n), arguments, {4: begins})


def _distances(first: Array, second: Array) -> Array:
    """Returns the edit distance of each pair of rows (Wagner and Fischer)."""
    pairs, length = first.shape
    row = np.tile(np.arange(length + 1), (pairs, 1))
    for i in range(length):
        above, row = row, np.empty_like(row)
        row[:, 0] = i + 1
        for j in range(length):
            cost = above[:, j] + (first[:, i] != second[:, j])
            row[:, j + 1] = np.minimum(np.minimum(above[:, j + 1], row[:, j]) + 1, cost)
    return row[:, -1].astype(np.int32)


def edit_distance(shape: LaunchShape) -> Problem:
    pairs, length = 24, 150 + shape.excess
    first = integers(np.int8, 97, 101, pairs, length)
    second = integers(np.int8, 97, 101, pairs, length, seed=1)
    expected = _distances(first, second)
    arguments = (first, second, np.zeros_like(expected), length)
    return Problem((pairs,), arguments, {2: expected}, 12 * (length + 1))


CASES = (
    Case("base64", "text.cu", "base64", LINE, base64),
    Case("look-up of bytes", "text.cu", "substitute", LINE, substitute),
    Case("search for a string", "text.cu", "search", LINE, search),
    Case("edit distance", "text.cu", "edit_distance", LINEAR, edit_distance),
)
