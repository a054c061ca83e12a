"""Encodes instructions that are executed by a unit of the GPU (copies of tensors, tensor memory,
textures) as requests: a number with packed fields, and operands by the slot of the unit's record.
"""
