"""Holds the state of the function `warp` while its LLVM IR is emitted: registers, operands, active
mask, the warp's context, instruction budget (fuel), counters, and the copies of each basic block.

In: the Warp IR and a kernel variant. Out: LLVM values of registers, masks and addresses, for all
other emitters. What an instruction computes is left to `operations`, `access`, `tensor` and
`control`.
"""
