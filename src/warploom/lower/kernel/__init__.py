"""Emits the two functions of a kernel: `warp`, which runs one warp, and `run`, which runs a
launch.

In: the Warp IR. Out: an LLVM module. Instructions are emitted by `lower.instructions`, the order of
blocks and warps is `simt.scheduling`'s.
"""
