"""Emits baseline code, which is compiled fast: one copy of each basic block, in which most
instructions are entries of a call table (threaded code): calls of functions that all kernels share,
on registers in the warp's context.

In: the same Warp IR as for optimised code. Out: a warp function, and the constants of its call
tables. Accesses, control flow and frames are emitted by the packages that optimised code uses.
"""
