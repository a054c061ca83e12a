"""Wraps llvmlite: lane vectors and masks, folding builder, vector intrinsics, the processor as a
target, compilation to objects, and the cache of objects on disk. It knows no instruction of PTX.
"""
