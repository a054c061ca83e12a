"""Checks that a Warp IR is consistent. The checks cover the program and the facts about its blocks,
registers, accesses and loops. `kernel.verify` raises an error for the first inconsistency. The
verifier does not check whether a pass has found all optimizations; the tests of the passes check
this.

In: a `WarpIR`. Out: nothing, or a WarploomError with the first contradiction.
"""
