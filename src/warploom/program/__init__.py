"""Builds the program that machines run: one kernel as one flat list of instructions.

In: a module of PTX (`ptx`) and the name of a kernel. Out: a `Program`: calls inlined or turned into
call frames, variables placed in memory, basic blocks with their live registers and reconvergence
points, and the memory accesses that are counted. What values mean is left to `analysis`.
"""
