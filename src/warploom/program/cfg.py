"""Cuts a flat list of instructions into basic blocks and connects them.

0: setp.lt.s32 %p, %r1, 4;   block 0 = [0, 2), successors (2, 1): target, then fall-through
1: @%p bra L;
2: mov.u32 %r2, 0;           block 1 = [2, 3), successors (2,)
3: L: ret;                   block 2 = [3, 4), successors (3,): the virtual exit
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from warploom.isa.instruction import Instruction, Symbol, Vector
from warploom.isa.kinds import Effect, OpKind
from warploom.program.uses import may_wait_before

NO_TARGET = -1
"""Stands for the target of a gap in an indexed branch's table."""


@dataclass(frozen=True, slots=True)
class ProgramBlock:
    """A basic block: the instructions from `start` up to but not including `stop`.

    Only the last instruction may be a `bra`, `brx`, `ret`, `exit`, `trap`, or a barrier that can
    suspend the warp. `successors` are block ids: (target, next) of a guarded branch, (target,) of a
    plain one; all targets of an indexed branch, then the next block if the branch is guarded;
    (exit, next) of a guarded `exit` or `ret`; (next,) of all else. The virtual exit is
    `Program.exit`.
    """

    index: int
    start: int
    stop: int
    successors: tuple[int, ...]


def cut_into_blocks(
    instructions: Sequence[Instruction],
    labels: Mapping[str, int],
    local_successors: Mapping[int, tuple[str, ...]] = MappingProxyType({}),
) -> tuple[tuple[ProgramBlock, ...], dict[str, int]]:
    """Returns the basic blocks, and the block of each label.

    `labels` maps a label to the index of the instruction after it. `local_successors` overrides the
    successors of some instructions, given as labels. The end of the list is the virtual exit, whose
    id is one more than the last block's.
    """
    # Blocks follow each other in the order of the instructions, without gaps: the passes rely on an
    # edge to a block with a lower number being a back edge.
    starts = _leaders(instructions, labels)
    stops = [*starts, len(instructions)][1:]
    block_at = {start: index for index, start in enumerate(starts)}
    # A label after the last instruction is the program's end.
    block_at[len(instructions)] = len(starts)
    targets = {name: block_at[position] for name, position in labels.items()}
    blocks = tuple(
        ProgramBlock(
            i,
            start,
            stop,
            tuple(targets[label] for label in local_successors[stop - 1])
            if stop - 1 in local_successors
            else successors_of(instructions[stop - 1], i, len(starts), targets),
        )
        for i, (start, stop) in enumerate(zip(starts, stops, strict=True))
    )
    return blocks, targets


def _leaders(instructions: Sequence[Instruction], labels: Mapping[str, int]) -> list[int]:
    """Returns the indices at which blocks begin, ascending: the start, labels, instructions after
    one that ends a block, and instructions that may wait for lanes, which have blocks of their
    own."""
    leaders = {0, *labels.values()}
    # Decided once for each distinct operation, of which a program has far fewer than instructions.
    operations = {instruction.operation: instruction for instruction in instructions}
    waiting = {
        operation for operation, instruction in operations.items() if may_wait_before(instruction)
    }
    ending = {
        operation for operation in operations if operation.has(Effect.ENDS_BASIC_BLOCK)
    } | waiting
    for i, instruction in enumerate(instructions):
        if instruction.operation in ending:
            leaders.update((i, i + 1) if instruction.operation in waiting else (i + 1,))
    return sorted(i for i in leaders if i < len(instructions))


def successors_of(
    last: Instruction, index: int, exit: int, targets: Mapping[str, int]
) -> tuple[int, ...]:
    """Returns the successors of block `index`, decided by its last instruction `last`: of a branch
    its target; of `ret` and `exit` the virtual exit `exit`; of an indexed branch all its distinct
    targets. The next block follows these if the instruction is guarded, and is the only successor
    of an indexed branch without any target. All other instructions have the next block only."""
    following = index + 1  # the exit for the last block
    operation = last.operation
    if operation.kind is OpKind.INDEXED_BRANCH:
        distinct = dict.fromkeys(to for to in indexed_targets(last, targets) if to != NO_TARGET)
        if last.guard is not None or not distinct:  # of a call that could reach no function
            return (*distinct, following)
        return (*distinct,)
    if operation.kind is OpKind.BRANCH:
        label = last.operands[0]
        assert isinstance(label, Symbol)
        taken = targets[label.name]
    elif operation.has(Effect.ENDS_THREAD):
        taken = exit
    else:
        # Also after `trap`: it stops the whole kernel, so its successor only affects where lanes
        # that did not trap reconverge.
        return (following,)
    return (taken,) if last.guard is None else (taken, following)


def indexed_targets(instruction: Instruction, targets: Mapping[str, int]) -> tuple[int, ...]:
    """Returns the target block of a `brx.idx` for each index; NO_TARGET in gaps."""
    labels = instruction.operands[1]
    assert isinstance(labels, Vector)
    return tuple(
        targets[label.name] if isinstance(label, Symbol) else NO_TARGET for label in labels.elements
    )


def can_diverge(instruction: Instruction) -> bool:
    """Returns whether an instruction is a guarded `bra`, or a `brx`: lanes of a warp may branch
    differently. `.uni` is ignored, for it is only the program's word for it."""
    return instruction.operation.kind is OpKind.INDEXED_BRANCH or (
        instruction.guard is not None and instruction.operation.kind is OpKind.BRANCH
    )


def range_without_branch(instructions: Sequence[Instruction], block: ProgramBlock) -> range:
    """Returns the numbers of a block's instructions, without a `bra` at its end."""
    is_branch = instructions[block.stop - 1].operation.kind is OpKind.BRANCH
    return range(block.start, block.stop - is_branch)
