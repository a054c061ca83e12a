"""Finds kernels that may wait for memory: those with a loop whose end depends on what other threads
write.

    AGAIN: ld.volatile.global.u32 %r1, [%rd1];
           setp.eq.u32 %p1, %r1, 0;
           @%p1 bra AGAIN;
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from warploom.isa.instruction import Instruction, Register
from warploom.isa.kinds import OpKind
from warploom.program.program import Program
from warploom.program.regions import natural_loops, predecessors
from warploom.program.uses import reads, writes

POLLING_MODIFIERS = frozenset(("volatile", "acquire", "relaxed", "mmio"))
"""Modifiers of loads that observe what other threads write (PTX ISA, "Memory Consistency
Model")."""


def may_wait_for_memory(program: Program) -> bool:
    """Returns whether a loop of the program has an exit that depends on a value which one of its
    loads or atomics observes of other threads. Weak loads do not: compilers move them out of loops.
    The program caches the answer."""
    if may_wait_for_memory not in program.cache:
        loops = natural_loops(program, predecessors(program)).values()
        program.cache[may_wait_for_memory] = any(
            _exit_depends_on_polls(program, blocks) for blocks in loops
        )
    return bool(program.cache[may_wait_for_memory])


def _exit_depends_on_polls(program: Program, blocks: Collection[int]) -> bool:
    """Returns whether a guard of a branch out of a loop is computed, in the loop, from what the
    loop polls."""
    code = list(_instructions(program, blocks))
    observed: set[Register] = set()
    grown = True
    while grown:
        before = len(observed)
        for instruction in code:
            if _observes(instruction) or not observed.isdisjoint(reads(instruction)):
                observed.update(writes(instruction))
        grown = len(observed) > before
    return any(
        not observed.isdisjoint(reads(program.instructions[program.blocks[index].stop - 1]))
        for index in blocks
        if any(after not in blocks for after in program.blocks[index].successors)
    )


def _instructions(program: Program, blocks: Collection[int]) -> Iterator[Instruction]:
    """Yields the instructions of basic blocks."""
    for index in sorted(blocks):
        block = program.blocks[index]
        yield from program.instructions[block.start : block.stop]


def _observes(instruction: Instruction) -> bool:
    """Returns whether an instruction reads memory that other threads write (PTX ISA, "Memory
    Consistency Model": volatile and strong loads, atomics)."""
    operation = instruction.operation
    if operation.kind is OpKind.ATOMIC:
        return True
    return operation.kind is OpKind.LOAD and not POLLING_MODIFIERS.isdisjoint(
        operation.text.split(".")
    )
