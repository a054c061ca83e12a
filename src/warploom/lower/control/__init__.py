"""Lowers the control flow of lanes: branches, divergence, reconvergence, barriers, suspension, and
the order in which a thread block's warps run.

In: how each branch ends (`passes.branches`), where lanes reconverge, and the frame. Out: LLVM
blocks and jumps. Scheduling decisions are left to helpers of `simt`, which the code calls.
"""
