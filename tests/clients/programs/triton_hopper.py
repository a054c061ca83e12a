"""Kernels of Triton for Hopper: products of matrices by pointers, and by tensor descriptors."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def by_pointers(a, b, c, m, n, k, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr):
    tile = tl.program_id(0)
    rows = tile // tl.cdiv(n, bn) * bm + tl.arange(0, bm)
    columns = tile % tl.cdiv(n, bn) * bn + tl.arange(0, bn)
    depth = tl.arange(0, bk)
    at_a = a + rows[:, None] * k + depth[None, :]
    at_b = b + depth[:, None] * n + columns[None, :]
    total = tl.zeros((bm, bn), tl.float32)
    for _ in range(tl.cdiv(k, bk)):
        total = tl.dot(tl.load(at_a), tl.load(at_b), total)
        at_a += bk
        at_b += bk * n
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16))


@triton.jit
def by_descriptors(a, b, c, m, n, k, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr):
    tile = tl.program_id(0)
    row = tile // tl.cdiv(n, bn) * bm
    column = tile % tl.cdiv(n, bn) * bn
    total = tl.zeros((bm, bn), tl.float32)
    for step in range(tl.cdiv(k, bk)):
        total = tl.dot(a.load([row, step * bk]), b.load([step * bk, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def persistent(a, b, c, m, n, k, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr):
    """Each program computes tiles whose distance is the number of programs."""
    across = tl.cdiv(n, bn)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, bm) * across, tl.num_programs(0)):
        row, column = tile // across * bm, tile % across * bn
        total = tl.zeros((bm, bn), tl.float32)
        for step in range(tl.cdiv(k, bk)):
            total = tl.dot(a.load([row, step * bk]), b.load([step * bk, column]), total)
        c.store([row, column], total.to(tl.float16))


@triton.jit
def attention(q, k, v, out, scale, keys, rows: tl.constexpr, step: tl.constexpr, d: tl.constexpr):
    """One head: softmax(Q K^T) V, with the softmax made tile by tile of K and V. `scale` is for
    powers of 2."""
    row = tl.program_id(0) * rows
    mine = q.load([row, 0])
    greatest = tl.full((rows,), float("-inf"), tl.float32)
    sums = tl.zeros((rows,), tl.float32)
    total = tl.zeros((rows, d), tl.float32)
    for key in range(0, keys, step):
        scores = tl.dot(mine, k.load([key, 0]).T) * scale
        most = tl.maximum(greatest, tl.max(scores, 1))
        weights = tl.exp2(scores - most[:, None])
        factor = tl.exp2(greatest - most)
        sums = sums * factor + tl.sum(weights, 1)
        total = tl.dot(weights.to(tl.float16), v.load([key, 0]), total * factor[:, None])
        greatest = most
    out.store([row, 0], (total / sums[:, None]).to(tl.float16))
