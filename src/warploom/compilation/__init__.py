"""Compiles a kernel: runs the passes, emits LLVM IR, and compiles and loads it. If the cache on
disk contains the kernel's object file, the package loads this file instead.

`jit` is the entry, which needs no compiler for a cached kernel; `emission` is the compiler.

In: a `Program` and a `KernelVariant`. Out: machine code with its entry points. What is decided of a
kernel is left to `passes`, what is emitted to `lower`; which code runs a launch is chosen by
`machine.compiled.tiers`.
"""
