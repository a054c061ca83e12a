"""Wraps llvmlite: provides lane vectors and masks, a constant-folding IR builder, vector
intrinsics, the host processor as a target, compilation of LLVM IR to object files, and a cache of
object files on disk.

Nothing here depends on PTX instructions; `lower` does.

In: LLVM IR, as it is built or as text. Out: values of vectors, object files, loaded code. What a
kernel's code does is left to `lower`, functions in Python to `helpers`.
"""
