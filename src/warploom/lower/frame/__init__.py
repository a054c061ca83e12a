"""Holds the state of a warp function while it is emitted: registers, operands, the warp's context,
fuel, counters, and the copies of each basic block.
"""
