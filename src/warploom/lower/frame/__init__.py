"""Holds the state of the function that runs a warp while it is emitted: registers, operands, active
mask, the warp's context, instruction budget (fuel), counters, and the copies of each basic block.
"""
