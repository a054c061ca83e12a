"""Copies of the Tensor Memory Accelerator (TMA): tensor maps, the boxes that they describe in
global and shared memory, reductions, and copies that are not complete.

Both machines call these functions with the same arrays. `memory` is all memory of the host from
`ORIGIN` on, as bytes: addresses are those of the host, of global as of shared memory.
"""
