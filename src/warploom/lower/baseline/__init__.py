"""Emits baseline code, which is compiled quickly. The code contains one copy of each basic block.
Most instructions in a block are entries in a call table (threaded code): calls to functions that
all kernels share, which operate on registers in the warp's context.

In: the same Warp IR as for optimized code. Out: a warp function, and the constants of its call
tables. Accesses, control flow and frames are emitted by the packages that optimized code uses.
"""
