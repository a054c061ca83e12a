"""Lowers matrix instructions, tensor copies, and instructions on tensor memory and textures.

In: an instruction and the frame. Out: matrix products as vector code; calls of the helpers of
`asynchronous` and `texture`, with requests of `program.requests`. What a copy or a fetch does is
left to these helpers.
"""
