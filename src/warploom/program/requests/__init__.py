"""Encodes instructions for special units of the GPU (tensor copies, tensor memory, textures) as
requests. A request consists of operands and an integer with packed fields (operation and
modifiers). The functions that implement a unit read each operand from one row of a record. The
compiled engine and the reference machine execute requests.

In: instructions of a program. Out: `Request`s. Executing one is left to `asynchronous.issue` and
`texture.requests`.
"""
