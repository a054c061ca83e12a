"""Checks that a Warp IR is consistent: its program, and its facts of blocks, registers, accesses
and loops. The first contradiction is raised as an error (`kernel.verify`). Whether a pass has done
as much as it could is left to tests of the passes.

In: a `WarpIR`. Out: nothing, or a WarploomError with the first contradiction.
"""
