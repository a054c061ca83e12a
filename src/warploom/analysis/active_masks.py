"""Finds stores of a value that depends on which lanes happen to execute an `activemask` together.

From compute capability 7.0 on lanes of a warp need not run together, whatever their path (PTX ISA,
"activemask"), so a count of active lanes is no count of the lanes that come there. A kernel may use
the mask for groups that add up to the same whatever they are: then it chooses a leader by the mask,
or adds to what an atomic returned, and no store is found.

    activemask.b32 %r1; popc.b32 %r2, %r1;
    @%p1 atom.global.add.u32 %r3, [%rd1], %r2;     found, if %p1 is lane == 0
                                                   not found, if %p1 is lane == ffs(%r1) - 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from warploom.isa.instruction import Address, Instruction, Register, Space
from warploom.isa.kinds import OpKind
from warploom.program.accesses import space_of
from warploom.program.cfg import can_diverge
from warploom.program.program import Program
from warploom.program.uses import leaf_operands, reads, sources, writes

ATOMICS = (OpKind.ATOMIC, OpKind.REDUCTION)
LOADS = (OpKind.LOAD, OpKind.ATOMIC)
"""Operations whose result does not depend on the mask if only their address does."""


class MaskStore(NamedTuple):
    """Holds the numbers of a store or atomic whose value depends on an `activemask`, and of that
    instruction."""

    store: int
    mask: int


def mask_stores(program: Program) -> list[MaskStore]:
    """Returns the stores and atomics to global or shared memory whose value depends on an
    `activemask`, but on no result of an atomic, and whose execution depends on no `activemask`."""
    stores: list[MaskStore] = []
    masks = [i for i, one in enumerate(program.instructions) if _kind(one) is OpKind.ACTIVE_MASK]
    if not masks:
        return stores
    # A value computed from an atomic's result, such as `base + rank in the group`, is right for
    # groups of any lanes: together the groups take as many numbers as lanes come there.
    of_atomics = _dependent(program, lambda one: _kind(one) is OpKind.ATOMIC)
    of_masks = _dependent(program, lambda one: _kind(one) is OpKind.ACTIVE_MASK)
    guarded = set(_controlled_blocks(program, of_masks))
    for mask in masks:
        of_mask = _dependent(program, lambda one, mask=program.instructions[mask]: one is mask)
        for number, store in _stores(program, guarded):
            values = set(_stored_registers(store))
            chosen = store.guard is not None and store.guard.register in of_masks
            if values & of_mask and not values & of_atomics and not chosen:
                stores.append(MaskStore(number, mask))
    return stores


def _kind(instruction: Instruction) -> OpKind:
    """Returns the kind of an instruction's operation."""
    return instruction.operation.spec.kind


def _stores(program: Program, guarded: set[int]) -> Iterator[tuple[int, Instruction]]:
    """Yields the stores and atomics to memory that other threads can read, in blocks that are not
    `guarded`, with their numbers."""
    for block in program.blocks:
        if block.index in guarded:
            continue
        for number in range(block.start, block.stop):
            instruction = program.instructions[number]
            shared = space_of(instruction) in (Space.GLOBAL, Space.SHARED, Space.GENERIC)
            if shared and _kind(instruction) in (OpKind.STORE, *ATOMICS):
                yield number, instruction


def _stored_registers(store: Instruction) -> Iterator[Register]:
    """Yields the registers whose values a store or an atomic writes or adds."""
    for operand in sources(store):
        if not isinstance(operand, Address):
            yield from (leaf for leaf in leaf_operands(operand) if isinstance(leaf, Register))


def _dependent(program: Program, begins: Callable[[Instruction], bool]) -> set[Register]:
    """Returns the registers whose values depend, by data alone, on results of the instructions for
    which `begins` is true; whatever the order of instructions."""
    dependent: set[Register] = set()
    # To a fixed point, since a loop may carry a dependence from a later instruction to an earlier
    # one; dependences only grow, and programs with an `activemask` are few.
    size = -1
    while size != len(dependent):
        size = len(dependent)
        for instruction in program.instructions:
            inputs: Iterable[Register] = reads(instruction)
            if _kind(instruction) in LOADS:
                inputs = ()
            if begins(instruction) or any(register in dependent for register in inputs):
                dependent.update(writes(instruction))
    return dependent


def _controlled_blocks(program: Program, registers: set[Register]) -> Iterator[int]:
    """Yields the blocks that are executed or not by a branch whose guard is one of `registers`:
    those between the branch and its reconvergence point."""
    for block in program.blocks:
        branch = program.instructions[block.stop - 1]
        if not can_diverge(branch) or branch.guard is None:
            continue
        if branch.guard.register not in registers:
            continue
        pending, end = list(block.successors), program.reconvergence[block.index]
        # The search ends at the reconvergence point, which the lanes of both sides execute.
        visited = {end, program.exit}
        while pending:
            at = pending.pop()
            if at not in visited:
                visited.add(at)
                yield at
                pending += program.blocks[at].successors
