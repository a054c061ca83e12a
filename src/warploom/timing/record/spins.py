"""Loops that do nothing but ask memory until somebody else has written there, or an mbarrier for
its phase, and warps of which only a part waits so.

How often they turn in the functional run says nothing about time: its order of warps is its own.
So a record keeps only the last turn, that which found what the loop waits for. Where all blocks
meet in such a loop, as in a grid's `sync()`, a replay lets none go on before all have come.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warploom.isa.ops.mbarrier import WAITS as WAITS_FOR_PHASES
from warploom.isa.spec import Operation, Unit
from warploom.program.accesses import accesses
from warploom.program.program import Block, Program
from warploom.program.uses import writes
from warploom.timing.record.order import PURE

Words = npt.NDArray[np.int64]

POLLING_MODIFIERS = frozenset(("volatile", "acquire", "relaxed", "mmio"))
"""Modifiers of loads that see what others write (PTX ISA, "Memory Consistency Model")."""
WAIT_NAMES = ("membar", "fence", "nanosleep")
_ALLOWED_UNITS = (*PURE, Unit.MEMORY, Unit.CONTROL)


def polling_loops(program: Program) -> dict[int, int]:
    """Return, by basic block that is such a loop, the instruction with which it asks last."""
    polls = ((block.index, _polling_instruction(program, block)) for block in program.blocks)
    return {index: instruction for index, instruction in polls if instruction >= 0}


def load_polling_loops(program: Program) -> dict[int, int]:
    """Return those loops that ask by a load, in which warps of several blocks may meet."""
    return {
        index: instruction
        for index, instruction in polling_loops(program).items()
        if program.instructions[instruction].operation.name == "ld"
    }


def jump_back_blocks(program: Program) -> set[int]:
    """Return the blocks in which such loops do nothing but jump back to their first."""
    loops = polling_loops(program)
    return {
        block.index
        for block in program.blocks
        if _is_jump(program, block) and block.successors[0] in loops
    }


def _is_jump(program: Program, block: Block) -> bool:
    """Return whether a block is a branch without a guard, and no more."""
    code = program.instructions[block.start : block.stop]
    return len(code) == 1 and code[0].operation.name == "bra" and code[0].guard is None


def _is_loop(program: Program, block: Block) -> bool:
    """Return whether a block follows itself, at once or behind a jump."""
    successors = (
        program.blocks[index] for index in block.successors if index < len(program.blocks)
    )
    targets = {
        target
        for successor in successors
        if _is_jump(program, successor)
        for target in successor.successors
    }
    return block.index in targets.union(block.successors)


def _polling_instruction(program: Program, block: Block) -> int:
    """Return the last load, or look at an mbarrier, of a loop that only asks, in one block and
    perhaps another that jumps back; -1 where it is none. No register may come back changed: then
    the next turn does not do the same again."""
    code = program.instructions[block.start : block.stop]
    written = {register for instruction in code for register in writes(instruction)}
    if written & set(program.live_in[block.index]) or not _is_loop(program, block):
        return -1
    poll = -1
    for index, instruction in enumerate(code, block.start):
        operation = instruction.operation
        if _is_poll(operation):
            poll = index
        elif (accesses(instruction) and operation.name != "ld") or (
            operation.spec.unit not in _ALLOWED_UNITS and operation.name not in WAIT_NAMES
        ):
            return -1
    return poll


def _is_poll(operation: Operation) -> bool:
    """Return whether an operation sees what others write, or looks at the phase of an mbarrier."""
    if operation.name == "mbarrier":
        return operation.modifiers["op"] in WAITS_FOR_PHASES
    return operation.name == "ld" and not POLLING_MODIFIERS.isdisjoint(operation.text.split("."))


def last_iterations(
    entries: Words, lanes: Words, is_polling: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return, of a log's entries, shape (entries, 2), warp and basic block, sorted by warp, those
    to keep. `lanes` are those of each entry, as bits; `is_polling` says of each block whether it only
    asks.

    A turn is not the last where the next entry that any of its lanes has is another one.
    """
    last = np.ones(len(entries), np.bool_)
    if len(entries):
        last[:-1] = (entries[:-1] != entries[1:]).any(axis=1) | ~is_polling[entries[:-1, 1]]
    remaining = np.flatnonzero(last)
    rows, masks = entries[remaining], lanes[remaining].tolist()
    for position in np.flatnonzero(is_polling[rows[:, 1]]).tolist():
        warp, block = rows[position].tolist()
        following = position + 1
        while (
            following < len(rows)
            and rows[following, 0] == warp
            and not masks[position] & masks[following]
        ):
            following += 1
        if following < len(rows) and rows[following].tolist() == [warp, block]:
            last[remaining[position]] = False
    return last


def partial_barrier_arrivals(
    entries: Words, lanes: Words, live: Words, ends_with_barrier: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return, of the same entries, those that come to a barrier before other lanes of their warp
    do: the warp has come when the last of them has. `live` are a warp's lanes that have not ended;
    `ends_with_barrier` says of each block whether it ends with a barrier."""
    diverged = np.zeros(len(entries), np.bool_)
    at_barrier = ends_with_barrier[entries[:, 1]]
    partial = np.unique(entries[at_barrier & (lanes != live), 0])
    arrived, warp = 0, -1
    for position in np.flatnonzero(at_barrier & np.isin(entries[:, 0], partial)).tolist():
        if entries[position, 0] != warp:
            arrived, warp = 0, entries[position, 0]
        arrived |= int(lanes[position])
        diverged[position] = int(live[position]) & ~arrived != 0
        arrived *= int(diverged[position])
    return diverged


def poll_barrier_warps(poll_counts: Words, warps_per_block: int) -> int:
    """Returns how many warps meet wherever one asks, given how often each does; 0 where they do
    not: some ask more often than others, or a block does not ask."""
    polling_warps = (poll_counts.reshape(-1, warps_per_block) > 0).sum(axis=1)
    counts = np.unique(poll_counts[poll_counts > 0])
    is_grid_barrier = (
        len(polling_warps) > 1 and len(counts) == 1 and len(np.unique(polling_warps)) == 1
    )
    return int(polling_warps.sum()) if is_grid_barrier and polling_warps[0] else 0
