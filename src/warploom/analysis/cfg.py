"""Cuts a flat list of instructions into basic blocks and connects them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warploom.analysis.program import Block
from warploom.analysis.uses import member_mask
from warploom.ptx.ir import Instruction, Symbol

BARRIERS = frozenset({"bar", "barrier"})
ENDS = frozenset({"bra", "ret", "exit", "trap"}) | BARRIERS
"""Instructions behind which a block ends: control goes elsewhere, or the warp may have to wait.
So does a block before and behind one that brings lanes together."""

LEAVES = frozenset({"ret", "exit"})


def cut(
    instructions: Sequence[Instruction], labels: Mapping[str, int]
) -> tuple[tuple[Block, ...], dict[str, int]]:
    """The basic blocks, and the block of each label.

    `labels` says before which instruction each label stands. The end of the list is the virtual
    exit, the number after the last block.
    """
    starts = _leaders(instructions, labels)
    stops = [*starts, len(instructions)][1:]
    block_at = {start: index for index, start in enumerate(starts)}
    block_at[len(instructions)] = len(starts)
    targets = {name: block_at[position] for name, position in labels.items()}
    blocks = tuple(
        Block(i, start, stop, _successors(instructions[stop - 1], i, len(starts), targets))
        for i, (start, stop) in enumerate(zip(starts, stops, strict=True))
    )
    return blocks, targets


def _leaders(instructions: Sequence[Instruction], labels: Mapping[str, int]) -> list[int]:
    """Where blocks begin, ascending."""
    leaders = {0, *labels.values()}
    leaders.update(n for i, one in enumerate(instructions) if member_mask(one) for n in (i, i + 1))
    leaders.update(i + 1 for i, one in enumerate(instructions) if one.operation.name in ENDS)
    return sorted(i for i in leaders if i < len(instructions))


def _successors(
    last: Instruction, index: int, exit: int, targets: Mapping[str, int]
) -> tuple[int, ...]:
    """Where control goes from block `index`, which ends in `last`."""
    following = index + 1  # the exit for the last block
    name = last.operation.name
    if name == "bra":
        label = last.operands[0]
        assert isinstance(label, Symbol)
        taken = targets[label.name]
    elif name in LEAVES:
        taken = exit
    else:
        # Also behind `trap`: it stops the whole kernel, so that what follows it decides nothing
        # but where the lanes that did not trap meet again.
        return (following,)
    return (taken,) if last.guard is None else (taken, following)
