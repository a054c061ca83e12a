"""Records the accesses of tensor copies and of tensor memory (`tcgen05`), texture and surface
instructions in the race detector.

In: operand rows of asynchronous requests and texture instructions, from both machines. Out: records
and findings in the detector's state, written by `detector.detect`. When copies complete, and what
waits and fences of tensor memory order, is left to `detector.copy_completion` and
`detector.tensor_fences`.
"""
