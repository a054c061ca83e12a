"""Hash tables, checksums and hashes."""

from __future__ import annotations

import hashlib
import zlib

import numpy as np

from families import loops
from families.base import LINE, Array, Case, LaunchShape, Problem, cover, integers

EMPTY = np.uint32(0xFFFFFFFF)


def _mixed(keys: Array) -> Array:
    keys = keys ^ keys >> 16
    keys = keys * np.uint32(0x7FEB352D)
    keys = keys ^ keys >> 15
    keys = keys * np.uint32(0x846CA68B)
    return keys ^ keys >> 16


def insert(shape: LaunchShape) -> Problem:
    n, capacity = 100_000 + shape.excess, 1 << 17
    keys = integers(np.uint32, 0, 70_000, n)
    table = np.full(capacity, EMPTY)
    distinct = np.unique(keys)
    filled = np.concatenate([distinct, table[len(distinct) :]])
    return Problem(cover(shape.block, n), (keys, table, n, capacity), {1: filled})


def lookup(shape: LaunchShape) -> Problem:
    """Half of the keys are in the table."""
    n, capacity = 100_000 + shape.excess, 1 << 16
    stored = np.unique(integers(np.uint32, 0, 1 << 32, 40_000))[:-1]
    table, values = np.full(capacity, EMPTY), np.zeros(capacity, np.uint32)
    for key, home in zip(stored, _mixed(stored) & np.uint32(capacity - 1), strict=True):
        slot = int(home)
        while table[slot] != EMPTY:
            slot = (slot + 1) % capacity
        table[slot], values[slot] = key, key // np.uint32(3)
    keys = integers(np.uint32, 0, 1 << 32, n, seed=1)
    keys[::2] = stored[integers(np.int64, 0, len(stored), len(keys[::2]), seed=2)]
    expected = np.where(np.isin(keys, stored), keys // np.uint32(3), EMPTY)
    arguments = (table, values, keys, np.zeros(n, np.uint32), n, capacity)
    return Problem(cover(shape.block, n), arguments, {3: expected})


def crc32(shape: LaunchShape) -> Problem:
    n, length = 24_000 + shape.excess, 90
    records = integers(np.uint8, 0, 256, n, length)
    sums = np.array([zlib.crc32(record.tobytes()) for record in records], np.uint32)
    return Problem(cover(shape.block, n), (records, np.zeros_like(sums), n, length), {1: sums})


def sha256(shape: LaunchShape) -> Problem:
    n = 20_000 + shape.excess
    messages = integers(np.uint32, 0, 1 << 32, n, 8)
    digests = b"".join(hashlib.sha256(message.tobytes()).digest() for message in messages)
    expected = np.frombuffer(digests, np.uint32).reshape(n, 8)
    return Problem(cover(shape.block, n), (messages, np.zeros_like(expected), n), {1: expected})


CASES = (
    Case("hash table, insertion", "hashing.cu", "insert", LINE, insert, in_place=True,
           unordered=True),
    Case("hash table, look-up", "hashing.cu", "lookup", LINE, lookup),
    Case("CRC-32", "hashing.cu", "crc32", LINE, crc32, native=loops.crc32),
    Case("SHA-256", "hashing.cu", "sha256", LINE, sha256),
)  # fmt: skip
