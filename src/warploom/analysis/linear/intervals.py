"""Cuts a program into the stretches that a block executes between two barriers of all its threads.

A *boundary* is the entry, or a barrier that all threads of a block wait at. While all of them meet
at the same boundaries, the instructions that a block executes between two meetings can be reached
from the first of the two without passing another boundary.
"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.isa.ops.tcgen05 import is_tensor_memory_operation
from warploom.isa.ops.tensors import is_tensor_operation
from warploom.isa.ops.wgmma import is_group_product
from warploom.isa.spec import Unit
from warploom.program.accesses import accesses, is_bulk_copy
from warploom.program.program import Program
from warploom.program.uses import is_reducing_barrier, sources
from warploom.ptx.ir import Instruction, Space

SHARED_SPACES = frozenset((Space.SHARED, Space.GENERIC))
"""Spaces whose accesses lead to shared memory, or may."""


def barrier_intervals(program: Program) -> Iterator[set[int]]:
    """Yield the instructions between each boundary and those behind it."""
    for first in _boundaries(program):
        yield _interval_from(program, first)


def is_whole_barrier(instruction: Instruction) -> bool:
    """Returns whether all threads of the block wait there."""
    if (
        instruction.operation.spec.unit is not Unit.BARRIER
        or "arrive" in instruction.operation.modifiers
    ):
        return False
    return instruction.guard is None and len(sources(instruction)) == 1 + is_reducing_barrier(
        instruction
    )


def _boundaries(program: Program) -> Iterator[int]:
    """Yields the first instructions behind each boundary."""
    yield 0
    for index, instruction in enumerate(program.instructions):
        if is_whole_barrier(instruction):
            yield index + 1


def _interval_from(program: Program, first: int) -> set[int]:
    """Returns the instructions that can be reached from one without passing a boundary."""
    block_of = [block for block in program.blocks for _ in range(block.start, block.stop)]
    found: set[int] = set()
    waiting = [first]
    while waiting:
        index = waiting.pop()
        if index >= len(block_of):
            continue
        block = block_of[index]
        for at in range(index, block.stop):
            if at in found:
                break
            found.add(at)
            if is_whole_barrier(program.instructions[at]):
                break
        else:
            waiting += [
                program.blocks[each].start for each in block.successors if each != program.exit
            ]
    return found


def is_asynchronous_access(instruction: Instruction) -> bool:
    """Return whether an instruction reads or writes shared memory at a later time, perhaps behind
    the next barrier."""
    operation = instruction.operation
    if operation.name == "st" and "async" in operation.modifiers:
        return True
    is_copy = operation.name == "cp" and bool(accesses(instruction))
    copies = is_copy or is_bulk_copy(operation) or is_tensor_operation(operation)
    products = is_group_product(operation) or is_tensor_memory_operation(operation)
    return copies or products
