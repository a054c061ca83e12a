"""Cuts a flat list of instructions into basic blocks and connects them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from warploom.program.program import ProgramBlock
from warploom.program.uses import may_wait_before
from warploom.ptx.ir import Instruction, Symbol, Vector

BARRIERS = frozenset({"bar", "barrier"})
BLOCK_ENDS = frozenset({"bra", "brx", "ret", "exit", "trap"}) | BARRIERS
"""Instructions behind which a block ends: control goes elsewhere, or the warp may have to wait.
So does a block before and behind one that brings lanes together."""

NO_TARGET = -1
"""The block that an index chooses which a branch does not have."""

EXITS = frozenset({"ret", "exit"})


def cut(
    instructions: Sequence[Instruction],
    labels: Mapping[str, int],
    inside: Mapping[int, tuple[str, ...]] = MappingProxyType({}),
) -> tuple[tuple[ProgramBlock, ...], dict[str, int]]:
    """Return the basic blocks, and the block of each label.

    `inside` says of some instructions to which labels they lead, whatever they name themselves.
    `labels` says before which instruction each label stands. The end of the list is the virtual
    exit, the number after the last block.
    """
    starts = _leaders(instructions, labels)
    stops = [*starts, len(instructions)][1:]
    block_at = {start: index for index, start in enumerate(starts)}
    block_at[len(instructions)] = len(starts)
    targets = {name: block_at[position] for name, position in labels.items()}
    blocks = tuple(
        ProgramBlock(
            i,
            start,
            stop,
            tuple(targets[label] for label in inside[stop - 1])
            if stop - 1 in inside
            else _successors(instructions[stop - 1], i, len(starts), targets),
        )
        for i, (start, stop) in enumerate(zip(starts, stops, strict=True))
    )
    return blocks, targets


def _leaders(instructions: Sequence[Instruction], labels: Mapping[str, int]) -> list[int]:
    """Returns where blocks begin, ascending."""
    leaders = {0, *labels.values()}
    operations = {one.operation: one for one in instructions}
    waiting = {operation for operation, one in operations.items() if may_wait_before(one)}
    ending = {operation for operation in operations if operation.spec.name in BLOCK_ENDS} | waiting
    for i, one in enumerate(instructions):
        if one.operation in ending:
            leaders.update((i, i + 1) if one.operation in waiting else (i + 1,))
    return sorted(i for i in leaders if i < len(instructions))


def _successors(
    last: Instruction, index: int, exit: int, targets: Mapping[str, int]
) -> tuple[int, ...]:
    """Returns where control goes from block `index`, which ends in `last`."""
    following = index + 1  # the exit for the last block
    name = last.operation.name
    if name == "brx":
        distinct = dict.fromkeys(to for to in indexed_targets(last, targets) if to != NO_TARGET)
        if last.guard is not None or not distinct:  # of a call that could reach no function
            return (*distinct, following)
        return (*distinct,)
    if name == "bra":
        label = last.operands[0]
        assert isinstance(label, Symbol)
        taken = targets[label.name]
    elif name in EXITS:
        taken = exit
    else:
        # Also behind `trap`: it stops the whole kernel, so that what follows it decides nothing
        # but where the lanes that did not trap meet again.
        return (following,)
    return (taken,) if last.guard is None else (taken, following)


def indexed_targets(instruction: Instruction, targets: Mapping[str, int]) -> tuple[int, ...]:
    """Return the blocks that a `brx.idx` can go to, by index; NOWHERE where there is a gap."""
    labels = instruction.operands[1]
    assert isinstance(labels, Vector)
    return tuple(
        targets[label.name] if isinstance(label, Symbol) else NO_TARGET for label in labels.elements
    )


def can_diverge(instruction: Instruction) -> bool:
    """Returns whether it can send lanes of a warp different ways."""
    return instruction.operation.name == "brx" or (
        instruction.guard is not None and instruction.operation.name == "bra"
    )
