"""Analyses a `Program` without changing it: uniformity and divergence of registers, loops and
barrier regions, masked loops, schedules of barrier regions.

In: a `Program`, and how the threads of a block lie in its warps. Out: frozen facts that `passes`
put into the Warp IR. Nothing here knows LLVM.
"""
