"""Kernels in Triton, as its users write them."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def softmax(x, y, columns, block: tl.constexpr):
    """Normalizes a row for each program."""
    row, at = tl.program_id(0), tl.arange(0, block)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    exponentials = tl.exp(values - tl.max(values, 0))
    result = exponentials / tl.sum(exponentials, 0)
    tl.store(y + row * columns + at, result, mask=at < columns)


@triton.jit
def matmul(a, b, c, m, n, k, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr):
    """Multiplies matrices, a tile of the result for each program."""
    rows = tl.program_id(0) * bm + tl.arange(0, bm)
    columns = tl.program_id(1) * bn + tl.arange(0, bn)
    inner = tl.arange(0, bk)
    total = tl.zeros((bm, bn), tl.float32)
    for start in range(0, k, bk):
        at = start + inner
        left_mask = (rows[:, None] < m) & (at[None, :] < k)
        right_mask = (at[:, None] < k) & (columns[None, :] < n)
        left = tl.load(a + rows[:, None] * k + at[None, :], mask=left_mask, other=0.0)
        right = tl.load(b + at[:, None] * n + columns[None, :], mask=right_mask, other=0.0)
        total = tl.dot(left, right, total)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=mask)


@triton.jit
def layer_norm(x, y, weight, bias, columns, epsilon, block: tl.constexpr):
    """Normalizes a row for each program to a mean of 0 and a variance of 1."""
    row, at = tl.program_id(0), tl.arange(0, block)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=0.0)
    mean = tl.sum(values, 0) / columns
    centred = tl.where(mask, values - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + epsilon)
    result = centred * scale * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
    tl.store(y + row * columns + at, result, mask=mask)


@triton.jit
def attention(q, k, v, o, scale, length, width: tl.constexpr, bm: tl.constexpr, bn: tl.constexpr):
    """Attends causally from a block of queries of a head, with a running softmax."""
    head = tl.program_id(1) * length * width
    rows, lanes = tl.program_id(0) * bm + tl.arange(0, bm), tl.arange(0, width)
    place = head + rows[:, None] * width + lanes[None, :]
    query = tl.load(q + place)
    total = tl.zeros((bm, width), tl.float32)
    largest = tl.full((bm,), -float("inf"), tl.float32)
    sums = tl.zeros((bm,), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * bm, bn):
        at = start + tl.arange(0, bn)
        key = tl.load(k + head + at[None, :] * width + lanes[:, None])
        scores = tl.dot(query, key) * scale
        scores = tl.where(rows[:, None] >= at[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, 1))
        weights, shrink = tl.exp(scores - new[:, None]), tl.exp(largest - new)
        value = tl.load(v + head + at[:, None] * width + lanes[None, :])
        total = total * shrink[:, None] + tl.dot(weights.to(value.dtype), value)
        sums, largest = sums * shrink + tl.sum(weights, 1), new
    tl.store(o + place, (total / sums[:, None]).to(o.dtype.element_ty))


@triton.autotune([triton.Config({"block": 64}), triton.Config({"block": 128})], key=["n"])
@triton.jit
def add(x, y, z, n, block: tl.constexpr):
    """Adds vectors, whose block is tuned."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    mask = at < n
    tl.store(z + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.autotune([triton.Config({"block": size}) for size in (256, 64, 128)], key=["n"])
@triton.jit
def double(x, y, n, block: tl.constexpr):
    """Doubles a vector; its first configuration does not compile."""
    tl.static_assert(block < 256)
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def double_unguarded(x, y, block: tl.constexpr):
    """Reads and writes whole blocks, whatever the length of the vectors."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(y + at, tl.load(x + at) * 2)


@triton.jit
def sum_unordered(x, total, block: tl.constexpr):
    """Adds up a tensor, a part for each program, without an atomic."""
    part = tl.sum(tl.load(x + tl.program_id(0) * block + tl.arange(0, block)), 0)
    before = tl.load(total)
    tl.store(total, before + part)


@triton.jit
def transpose_by_descriptors(x, y, m, n, bm: tl.constexpr, bn: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[m, n], strides=[n, 1], block_shape=[bm, bn])
    target = tl.make_tensor_descriptor(y, shape=[n, m], strides=[m, 1], block_shape=[bn, bm])
    row, column = tl.program_id(0) * bm, tl.program_id(1) * bn
    target.store([column, row], source.load([row, column]).T)


@triton.jit
def add_rows(source, target, bm: tl.constexpr, bn: tl.constexpr):
    row, column = tl.program_id(0) * bm, tl.program_id(1) * bn
    tile = source.load([row, column]) + source.load([row + bm, column])
    target.atomic_add([row, column], tile)
