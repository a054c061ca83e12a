"""Code that is compiled fast: one copy of each basic block, in which most instructions are calls of
functions that kernels share, on registers in memory."""
