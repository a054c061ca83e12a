"""Defines the Warp IR: a kernel's program under one compilation variant, with what passes have
decided about its blocks, registers, accesses and loops; its textual form and parser; and the table
that chooses how memory accesses are emitted.

All of it is frozen data, which `passes` make and `lower` reads.
"""
