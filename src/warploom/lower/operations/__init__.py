"""Lowers instructions that compute values or communicate within a warp: affine arithmetic,
comparisons that produce prefix masks, moves, shuffles, votes, and calls to the host. Also emits
checks of the instructions' operands.

In: an instruction and the frame. Out: its results, in the frame's registers. Elementwise terms are
left to `lower.terms`, memory to `lower.access`.
"""
