"""Advice about control flow: branches that part warps, and guards that are not there."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.isa.instruction import Instruction, Space, Special
from warploom.isa.kinds import OpKind
from warploom.program.accesses import accesses
from warploom.program.program import Program
from warploom.program.uses import leaf_operands, reads, sources, writes
from warploom.report.advice.case import Advice, Case

OFTEN = 0.1
"""A branch that parts fewer of its warps is a boundary, such as a tail guard."""


def divergence(case: Case) -> Iterator[Advice]:
    """Branches whose lanes often go both ways inside a warp; whole warps may differ at no cost."""
    for index, counts in enumerate(case.counters.by_instruction()):
        branches, diverged = counts.branches, counts.divergent_branches
        if diverged > 1 and diverged >= OFTEN * branches:
            taken = counts.thread_instructions_predicated_on
            yield Advice(
                "divergence inside warps",
                case.program.line(index),
                f"{diverged:,} of the {branches:,} times that a warp came here its lanes went both"
                f" ways ({taken:,} of {counts.thread_instructions:,} lanes jumped), so that it ran"
                f" both one after the other",
                "Let the condition be the same for all lanes of a warp: choose by warp"
                f" (threadIdx.x / {case.spec.warp_size}), sort the work, or compute both sides and"
                " select.",
            )


def exited_members(case: Case) -> Iterator[Advice]:
    """Shuffles whose member mask names lanes that have returned: legal, but these hold no value
    (CUDA C++ Programming Guide, "Warp Shuffle Functions")."""
    for index, counts in enumerate(case.counters.by_instruction()):
        named = counts.exited_members
        if named and case.program.instructions[index].operation.kind is OpKind.SHUFFLE:
            yield Advice(
                "shuffle with lanes that exited",
                case.program.line(index),
                f"{named:,} of the {counts.warp_instructions:,} times that a warp came here the"
                f" mask named lanes that had exited",
                "A value read from such a lane is undefined. Let all lanes live until behind the"
                " shuffle (guard the work, not the rest of the kernel, and give those without work"
                " a neutral value), or take the mask from __ballot_sync(0xffffffff, i < n).",
            )


def missing_guard(case: Case) -> Iterator[Advice]:
    """Global memory indexed by block and thread, with nothing that tests the index."""
    program = case.program
    index = _mixed(program)
    guards = {made.guard.register.name for made in program.instructions if made.guard is not None}
    if guards & index:
        return
    for at, made in enumerate(program.instructions):
        indexed = any(register.name in index for register in reads(made))
        if indexed and any(space is Space.GLOBAL for space, _ in accesses(made)):
            yield Advice(
                "missing tail guard",
                program.line(at),
                f"all {case.blocks * case.threads_per_block:,} threads reach this access, and no"
                f" test of their index comes before it",
                "Right only while the length is a multiple of the block size: test the index"
                " (`if (i < n)`) before memory is touched.",
            )
            return


def _mixed(program: Program) -> set[str]:
    """Returns the registers whose values may depend on the block's and on the thread's index."""
    by_block, by_thread = (_dependent(program.instructions, name) for name in ("%ctaid", "%tid"))
    return by_block & by_thread


def _dependent(instructions: tuple[Instruction, ...], special: str) -> set[str]:
    """Returns the registers whose values may depend on a special register."""
    found: set[str] = set()
    before = -1
    while before != len(found):
        before = len(found)
        for made in instructions:
            if _reads(made, special) or any(r.name in found for r in reads(made)):
                found.update(register.name for register in writes(made))
    return found


def _reads(made: Instruction, special: str) -> bool:
    return any(
        isinstance(leaf, Special) and leaf.name.startswith(special)
        for operand in sources(made)
        for leaf in leaf_operands(operand)
    )
