"""Lowers two kinds of loops that run code without per-access checks: loops over the warps of a
thread block between barriers, and batches of iterations of a strided loop."""
