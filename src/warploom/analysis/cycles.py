"""Finds the basic blocks that lie on no cycle of the control-flow graph."""

from __future__ import annotations

from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.ptx.ir import Register


def blocks_outside_cycles(program: Program) -> frozenset[int]:
    """Returns blocks that a thread executes at most once in a call; not necessarily all of them.

    Every cycle has a back edge, to the same or an earlier block, that spans it from its last block
    to its first: a block that no back edge spans is on no cycle.
    """
    inside: set[int] = set()
    for source, block in enumerate(program.blocks):
        for target in block.successors:
            inside.update(range(target, source + 1))
    return frozenset(range(len(program.blocks))) - inside


def registers_outside_cycles(program: Program) -> frozenset[Register]:
    """Returns the registers that no block on a cycle reads or writes."""
    outside, inside = set[Register](), set[Register]()
    once = blocks_outside_cycles(program)
    for index, block in enumerate(program.blocks):
        found = outside if index in once else inside
        for instruction in program.instructions[block.start : block.stop]:
            found.update(reads(instruction), writes(instruction))
    return frozenset(outside - inside)
