"""Passes over the Warp IR, in the order of `pipeline.PIPELINE`. Each takes an IR and returns one
that says more; none emits code.
"""
