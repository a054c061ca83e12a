"""Lowers the Warp IR to LLVM IR, in which one function runs one warp and each vector lane
represents one thread.

In: `WarpIR`; out: an LLVM module. Subpackages from the lowest: `terms`, `frame`, `operations`,
`instrument`, `access`, `control`, `tensor`, `baseline`, `loops`, `kernel`. `instructions` emits one
instruction with these. What to emit is decided by `passes`. A function that returns an LLVM value
emits the instructions that compute it where the builder stands, also if its docstring begins with
"Returns".
"""
