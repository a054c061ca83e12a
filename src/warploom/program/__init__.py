"""Converts a kernel to a `Program`, a flat list of instructions that the compiled engine and the
reference machine execute.

Input: a PTX module (`ptx`) and the name of a kernel. Output: a `Program`: calls inlined or lowered
to frames on a stack, variables with their offsets in memory, basic blocks with live-in registers
and reconvergence points, natural loops, and the memory accesses that are counted. What registers
hold (uniform, affine, linear in thread indices) is left to `shapes` and `analysis`.
"""
