"""Lowers instructions that compute or communicate within a warp: shuffles, votes, affine
arithmetic, moves, calls of the host.
"""
