"""Defines the Warp IR: a kernel's program for one compilation variant, and the decisions that
passes have made about the program's blocks, registers, accesses and loops. Also defines the textual
form and the parser of the IR, and the table that selects how memory accesses are emitted.

All of it is frozen data, which `passes` make and `lower` reads.

In: a `Program` and a `KernelVariant`, or the text of an IR. Out: a `WarpIR`, its text, or the plan
of an access. What is decided of a kernel is left to `passes`, LLVM IR to `lower`.
"""
