"""Analyzes addresses as linear forms of thread and block indices, for one launch, to determine
which accesses can overlap, whether thread blocks are independent, and which accesses cannot race.

In: a `Program`, and the grid, block and arguments of a launch. Out: linear forms, footprints, and
sets of instructions. What follows from them (how many workers, which checks) is decided by
`machine.compiled` and `sanitize`; shapes of registers, which hold for any launch, are those of
`analysis`.
"""
