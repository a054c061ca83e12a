"""Reads the operands of instructions that are requests to a unit of the GPU: copies of tensors,
tensor memory, textures. Out: the number of the request, and its operands in the order of the unit's
record.
"""
