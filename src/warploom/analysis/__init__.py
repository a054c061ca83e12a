"""Analyzes a `Program`: uniformity and divergence, scattered registers, predicated blocks, strided
loops, paths between barriers (warp loops) and their schedules, barriers that all threads execute,
and the addresses of a launch as linear forms.

Input: a `Program`, and how the threads of a block lie in its warps. Output: frozen data, from
which `passes` decide. Nothing here changes the program or depends on LLVM.
"""
