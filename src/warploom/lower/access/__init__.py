"""Lowers memory accesses: emits code for the guard, the data movement, the cost counting and the
exit of an access plan (`ir.access_plans`).

In: accesses of the Warp IR, each with its plan, and the frame. Out: LLVM IR in the current block.
Which plan an access has is decided by `ir.access_plans` and `passes`, what an access costs by
`cost`.
"""
