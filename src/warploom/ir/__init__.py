"""Defines the Warp IR: a kernel's program under one compilation variant, with what passes have
decided about its blocks, registers, accesses and loops; its textual form and parser; and the table
that chooses how memory accesses are emitted.

All of it is frozen data, which `passes` make and `lower` reads.

In: a `Program` and a `KernelVariant`, or the text of an IR. Out: a `WarpIR`, its text, or the plan
of an access. What is decided of a kernel is left to `passes`, LLVM IR to `lower`.
"""
