"""Analyses of a `Program`: uniformity and divergence, strided loops, paths between barriers and
schedules of these, and the addresses of a launch as linear forms.

Input: a `Program`, and how the threads of a block lie in its warps. Output: frozen data, from
which `passes` decide. Nothing here changes the program or depends on LLVM.
"""
