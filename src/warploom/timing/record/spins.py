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
from warploom.program.program import Program, ProgramBlock
from warploom.program.uses import writes
from warploom.timing.record.order import PURE

Words = npt.NDArray[np.int64]

ASKS = frozenset(("volatile", "acquire", "relaxed", "mmio"))
"""Modifiers of loads that see what others write (PTX ISA, "Memory Consistency Model")."""
WAITS = ("membar", "fence", "nanosleep")
_PLAIN = (*PURE, Unit.MEMORY, Unit.CONTROL)


def asking_loops(program: Program) -> dict[int, int]:
    """Return, by basic block that is such a loop, the instruction with which it asks last."""
    found = ((block.index, _asking(program, block)) for block in program.blocks)
    return {index: asking for index, asking in found if asking >= 0}


def polls_of(program: Program) -> dict[int, int]:
    """Return those loops that ask by a load, in which warps of several blocks may meet."""
    return {
        index: asking
        for index, asking in asking_loops(program).items()
        if program.instructions[asking].operation.name == "ld"
    }


def ways_round(program: Program) -> set[int]:
    """Return the blocks in which such loops do nothing but jump back to their first."""
    loops = asking_loops(program)
    return {
        block.index
        for block in program.blocks
        if _only_jumps(program, block) and block.successors[0] in loops
    }


def _only_jumps(program: Program, block: ProgramBlock) -> bool:
    """Return whether a block is a branch without a guard, and no more."""
    code = program.instructions[block.start : block.stop]
    return len(code) == 1 and code[0].operation.name == "bra" and code[0].guard is None


def _comes_round(program: Program, block: ProgramBlock) -> bool:
    """Return whether a block follows itself, at once or behind a jump."""
    behind = (program.blocks[at] for at in block.successors if at < len(program.blocks))
    ways = {at for one in behind if _only_jumps(program, one) for at in one.successors}
    return block.index in ways.union(block.successors)


def _asking(program: Program, block: ProgramBlock) -> int:
    """Return the last load, or look at an mbarrier, of a loop that only asks, in one block and
    perhaps another that jumps back; -1 where it is none. No register may come back changed: then
    the next turn does not do the same again."""
    code = program.instructions[block.start : block.stop]
    written = {register for made in code for register in writes(made)}
    if written & set(program.live_in[block.index]) or not _comes_round(program, block):
        return -1
    asking = -1
    for index, made in enumerate(code, block.start):
        operation = made.operation
        if _asks(operation):
            asking = index
        elif (accesses(made) and operation.name != "ld") or (
            operation.spec.unit not in _PLAIN and operation.name not in WAITS
        ):
            return -1
    return asking


def _asks(operation: Operation) -> bool:
    """Return whether an operation sees what others write, or looks at the phase of an mbarrier."""
    if operation.name == "mbarrier":
        return operation.modifiers["op"] in WAITS_FOR_PHASES
    return operation.name == "ld" and not ASKS.isdisjoint(operation.text.split("."))


def last_turns(entries: Words, lanes: Words, asks: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return, of a log's entries, shape (entries, 2), warp and basic block, sorted by warp, those
    to keep. `lanes` are those of each entry, as bits; `asks` says of each block whether it only
    asks.

    A turn is not the last where the next entry that any of its lanes has is another one.
    """
    kept = np.ones(len(entries), np.bool_)
    if len(entries):
        kept[:-1] = (entries[:-1] != entries[1:]).any(axis=1) | ~asks[entries[:-1, 1]]
    left = np.flatnonzero(kept)
    rows, masks = entries[left], lanes[left].tolist()
    for place in np.flatnonzero(asks[rows[:, 1]]).tolist():
        warp, block = rows[place].tolist()
        later = place + 1
        while later < len(rows) and rows[later, 0] == warp and not masks[place] & masks[later]:
            later += 1
        if later < len(rows) and rows[later].tolist() == [warp, block]:
            kept[left[place]] = False
    return kept


def early_parts(
    entries: Words, lanes: Words, live: Words, waits: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return, of the same entries, those that come to a barrier before other lanes of their warp
    do: the warp has come when the last of them has. `live` are a warp's lanes that have not ended;
    `waits` says of each block whether it ends with a barrier."""
    found = np.zeros(len(entries), np.bool_)
    waiting = waits[entries[:, 1]]
    partial = np.unique(entries[waiting & (lanes != live), 0])
    come, of_warp = 0, -1
    for place in np.flatnonzero(waiting & np.isin(entries[:, 0], partial)).tolist():
        if entries[place, 0] != of_warp:
            come, of_warp = 0, entries[place, 0]
        come |= int(lanes[place])
        found[place] = int(live[place]) & ~come != 0
        come *= int(found[place])
    return found


def poll_barrier_warps(asked: Words, warps_per_block: int) -> int:
    """Returns how many warps meet wherever one asks, given how often each does; 0 where they do
    not: some ask more often than others, or a block does not ask."""
    by_block = (asked.reshape(-1, warps_per_block) > 0).sum(axis=1)
    counts = np.unique(asked[asked > 0])
    all_meet = len(by_block) > 1 and len(counts) == 1 and len(np.unique(by_block)) == 1
    return int(by_block.sum()) if all_meet and by_block[0] else 0
