"""Lowers two kinds of loops that run code without per-access checks: loops over the warps of a
thread block between barriers, and strided loops that run in batches of iterations.

In: the loops that `passes.warp_loops` and `passes.strided_loops` have chosen. Out: the checks
before a loop, its code, and its counts. Where a check fails, the code of each warp follows, which
is not emitted here.
"""
