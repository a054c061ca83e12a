"""Analyses of a `Program`: uniformity and divergence, loops and barrier regions, masked loops,
strided loops, and schedules of barrier regions.

Input: a `Program`, and how the threads of a block lie in its warps. Output: frozen facts that
`passes` add to the Warp IR. Nothing here changes the program or depends on LLVM.
"""
