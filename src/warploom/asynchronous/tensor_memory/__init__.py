"""Implements tensor memory and the fifth-generation tensor cores (`tcgen05`) for both the compiled
engine and the reference machine: layouts, descriptors, checks, and matrix products.

PTX ISA, "TensorCore 5th Generation Family Instructions". Instructions are issued by
`asynchronous.issue.tensor_memory`.

In: descriptors, addresses and words of shared and tensor memory. Out: changed words, or the number
of a fault. Who may execute an instruction, and when it completes, is left to `asynchronous.issue`.
"""
