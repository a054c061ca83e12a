"""Implements the copies of the Tensor Memory Accelerator (TMA): tensor maps, boxes in global and
shared memory, im2col, packed elements, and reductions.

Both machines call these functions with the same arrays. `memory` is the host's memory from address
`ORIGIN` on, as bytes; addresses of global and of shared memory are host addresses. Copies are
issued and queued by `asynchronous.issue`.

Out: changed memory, or the number of a fault. Which sectors a copy touches is counted by
`asynchronous.issue`.
"""
