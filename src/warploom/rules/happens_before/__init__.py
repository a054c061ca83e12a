"""Finds accesses that PTX's memory model leaves unordered, over one stream of events of a launch.

Source of the model: PTX ISA, "Memory Consistency Model". Everything here is plain functions over
one array of 64-bit words, compiled by Numba for compiled kernels, so both machines call the same.
`detect` is the entry; `words` the layout of the array.
"""
