"""Informs the race detector about accesses by tensor copies and by instructions on tensor memory
(`tcgen05`), textures and surfaces.

In: operand rows of asynchronous requests and texture instructions, from both machines. Out: records
and findings in the detector's state, written by `detector.detect`. When copies complete, and what
waits and fences of tensor memory order, is left to `detector.copy_completion` and
`detector.tensor_fences`.
"""
