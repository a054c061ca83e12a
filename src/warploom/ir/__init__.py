"""Defines the Warp IR: a kernel's basic blocks under one compilation variant, annotated by the
passes; its textual form and parser; and the table that chooses how memory accesses are emitted.

All of it is frozen data, which `passes` make and `lower` reads.
"""
