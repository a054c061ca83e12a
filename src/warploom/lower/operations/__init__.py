"""Lowers instructions that compute or communicate within a warp: affine arithmetic, comparisons
that give prefix masks, moves, shuffles, votes, calls of the host; and the checks of their operands.
"""
