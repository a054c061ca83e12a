"""Encodes instructions for special-purpose GPU units (tensor copies, tensor memory, textures) as
requests. A request consists of operands and an integer with packed fields (operation and
modifiers). The functions that implement a unit receive the operands in a record with one row for
each operand. The compiled engine and the reference machine execute requests.

In: instructions of a program. Out: `Request`s. Executing one is left to `asynchronous.issue` and
`texture.requests`.
"""
