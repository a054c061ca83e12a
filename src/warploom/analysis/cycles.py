"""Tells which basic blocks are outside of all cycles of the control-flow graph."""

from __future__ import annotations

from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.ptx.ir import Register


def blocks_outside_cycles(program: Program) -> frozenset[int]:
    """Return blocks that a thread executes once at most in a call; some may be left out.

    Each cycle has ways back, from a block to itself or to one before it, that reach from its last
    block to its first one: what no such way reaches over is in none.
    """
    inside: set[int] = set()
    for source, block in enumerate(program.blocks):
        for target in block.successors:
            inside.update(range(target, source + 1))
    return frozenset(range(len(program.blocks))) - inside


def registers_outside_cycles(program: Program) -> frozenset[Register]:
    """Return the registers that no block in a cycle reads or writes."""
    outside, inside = set[Register](), set[Register]()
    once = blocks_outside_cycles(program)
    for index, block in enumerate(program.blocks):
        found = outside if index in once else inside
        for instruction in program.instructions[block.start : block.stop]:
            found.update(reads(instruction), writes(instruction))
    return frozenset(outside - inside)
