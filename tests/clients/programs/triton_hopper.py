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
