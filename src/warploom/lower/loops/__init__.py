"""Lowers loops over the warps of a block between barriers, and batches of iterations of strided
loops."""
