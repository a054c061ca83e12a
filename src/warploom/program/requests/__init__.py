"""Encodes instructions that are executed by a unit of the GPU (copies of tensors, tensor memory,
textures) as requests: an integer with packed fields (operation and modifiers), and the operands,
each with its row in the record that the unit's functions read. Both machines execute requests.

In: instructions of a program. Out: `Request`s. Executing one is left to `asynchronous.issue` and
`texture.requests`.
"""
