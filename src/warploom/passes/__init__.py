"""Contains the passes over the Warp IR, one per file, and a verifier. The passes run in the order
of `pipeline.PIPELINE`.

Each pass reads a frozen IR and returns one that has more facts or another program; none emits code.

In: an IR that has a program alone. Out: the IR that `lower` emits. Facts are found by `analysis`,
choices of plans made by `ir.access_plans`.
"""
