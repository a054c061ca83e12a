"""Lowers instructions that compute or communicate within a warp: affine arithmetic, comparisons
that give prefix masks, moves, shuffles, votes, calls of the host; and the checks of their operands.

In: an instruction and the frame. Out: its results, in the frame's registers. Elementwise terms are
left to `lower.terms`, memory to `lower.access`.
"""
