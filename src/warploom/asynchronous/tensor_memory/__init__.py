"""Implements tensor memory and the fifth-generation tensor cores (`tcgen05`), for both machines:
layouts, descriptors, checks, matrix products.

PTX ISA, "TensorCore 5th Generation Family Instructions". Instructions are issued by
`asynchronous.issue.tensor_memory`.
"""
