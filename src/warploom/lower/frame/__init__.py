"""Holds the state of the function `warp` while its LLVM IR is emitted: registers, operands, active
mask, the warp's context, instruction budget (fuel), counters, and the copies of each basic block.
"""
