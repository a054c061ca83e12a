"""Checks that a Warp IR is consistent: its program, and what it says of blocks, registers, accesses
and loops. Comes in: an IR. Goes out: the first contradiction, as an error. Whether a pass has done
as much as it could is left to tests of the passes."""
