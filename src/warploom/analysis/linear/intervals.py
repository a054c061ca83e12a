"""Computes the barrier intervals of a program: the instructions that a thread block can execute
between two barriers of all its threads.

A *boundary* is the entry, or a barrier at which all threads of a block wait. As long as all threads
wait at the same boundaries, the instructions between two of them are reachable from the first
without passing another one:

    0: st.shared; 1: bar.sync 0; 2: ld.shared; 3: bar.sync 0; 4: ret    ->  {0, 1}, {2, 3}, {4}
"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.isa.instruction import Instruction, Space
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.spec import Unit
from warploom.program.program import Program
from warploom.program.uses import is_reducing_barrier, sources

SHARED_SPACES = frozenset((Space.SHARED, Space.GENERIC))
"""Spaces whose accesses are, or may be, to shared memory."""


ASYNCHRONOUS = {
    *(OpKind.COPY, OpKind.BULK_COPY, OpKind.COPY_ARRIVE),
    *(OpKind.ASYNC_STORE, OpKind.GROUP_PRODUCT),
}
"""Kinds of operations that access shared memory at a later time, besides those of the TMA and of
tensor memory."""


def barrier_intervals(program: Program) -> Iterator[set[int]]:
    """Yields the instructions of each barrier interval: those reachable from the entry, or from a
    barrier of all threads (`is_barrier_of_all_threads`), up to and including the next such
    barrier."""
    for boundary in _boundaries(program):
        yield interval_from(program, boundary)


def is_barrier_of_all_threads(instruction: Instruction) -> bool:
    """Returns whether all threads of the block wait at an instruction: an unguarded barrier of the
    thread block without a thread count that does not only arrive; it may reduce (`red`)."""
    if (
        instruction.operation.spec.unit is not Unit.BARRIER
        or "arrive" in instruction.operation.modifiers
    ):
        return False
    return instruction.guard is None and len(sources(instruction)) == 1 + is_reducing_barrier(
        instruction
    )


def _boundaries(program: Program) -> Iterator[int]:
    """Yields the first instruction of each barrier interval: 0, and the one after each
    `is_barrier_of_all_threads`."""
    yield 0
    for index, instruction in enumerate(program.instructions):
        if is_barrier_of_all_threads(instruction):
            yield index + 1


def interval_from(program: Program, start: int) -> set[int]:
    """Returns the instructions that are reachable from instruction `start` up to and including the
    next barrier of all threads (`is_barrier_of_all_threads`) on each path; none if `start` is after
    the last one."""
    block_of = [block for block in program.blocks for _ in range(block.start, block.stop)]
    interval: set[int] = set()
    waiting = [start]
    while waiting:
        index = waiting.pop()
        if index >= len(block_of):
            continue
        block = block_of[index]
        for at in range(index, block.stop):
            # From here on the rest of the block and what follows it was added before.
            if at in interval:
                break
            interval.add(at)
            if is_barrier_of_all_threads(program.instructions[at]):
                break
        else:
            waiting += [
                program.blocks[successor].start
                for successor in block.successors
                if successor != program.exit
            ]
    return interval


def is_asynchronous_access(instruction: Instruction) -> bool:
    """Returns whether an instruction (asynchronous copy or store, warp group product, tensor memory
    operation) accesses shared memory at a later time, perhaps after the next barrier."""
    operation = instruction.operation
    return operation.kind in ASYNCHRONOUS or operation.has(
        Effect.USES_TMA | Effect.USES_TENSOR_MEMORY
    )
