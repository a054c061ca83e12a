"""Compiles a kernel: runs the passes, emits LLVM IR, compiles and loads it, or loads the object
from the cache on disk.

`jit` is the entry, which needs no compiler for a cached kernel; `emission` is the compiler.
"""
