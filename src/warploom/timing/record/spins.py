"""Finds polling loops, which do nothing but load memory until another thread has written it, or
test an mbarrier until its phase completes; and parts of diverged warps that wait at barriers.

    AGAIN: ld.acquire.gpu.u32 %r1, [%rd1];      // or mbarrier.try_wait
           setp.eq.u32 %p1, %r1, 0;
           @%p1 bra AGAIN;

How often such a loop iterates in the functional run depends on its order of warps and not
on time. So a record retains only the last iteration, which found what the loop waits for. If all
blocks poll in such a loop equally often, as in a grid's `sync()`, a replay lets none go on before
all have polled. Not found: loops of more than two basic blocks, and loops that carry a value from
one iteration to the next.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warploom.isa.kinds import OpKind
from warploom.isa.spec import Operation, Unit
from warploom.machine.polling import POLLING_MODIFIERS
from warploom.program.accesses import accesses
from warploom.program.cfg import ProgramBlock
from warploom.program.program import Program
from warploom.program.uses import writes
from warploom.simt.records import WordRecord
from warploom.timing.record.order import PURE

Words = npt.NDArray[np.int64]

_ALLOWED_UNITS = (*PURE, Unit.MEMORY, Unit.CONTROL)
"""Units of the instructions that a polling loop may have besides polls and waits."""


class SortedEntry(WordRecord):
    """An execution of a basic block; entries are sorted by warp."""

    warp: int
    block: int
    lanes: int  # the active ones, 0 unless masks are kept


def polling_loops(program: Program) -> dict[int, int]:
    """Returns the polling loops of a program: by index of the basic block, the index of its last
    instruction that polls (`_is_poll`: a load that observes other threads' writes, or a test of an
    mbarrier). They are loops of one basic block, perhaps with a second that is one unguarded jump
    back, without effects (`_polling_instruction`)."""
    polls = ((block.index, _polling_instruction(program, block)) for block in program.blocks)
    return {index: instruction for index, instruction in polls if instruction >= 0}


def load_polling_loops(program: Program) -> dict[int, int]:
    """Returns those of `polling_loops` whose last poll is a load (not a test of an mbarrier), by
    index of the basic block the index of the load: in these, warps of several blocks may wait for
    each other."""
    return {
        index: instruction
        for index, instruction in polling_loops(program).items()
        if program.instructions[instruction].operation.kind is OpKind.LOAD
    }


def jump_back_blocks(program: Program) -> set[int]:
    """Returns the indices of the basic blocks that are one unguarded jump back to the start of a
    polling loop, the second block of such a loop."""
    loops = polling_loops(program)
    return {
        block.index
        for block in program.blocks
        if _is_jump(program, block) and block.successors[0] in loops
    }


def _is_jump(program: Program, block: ProgramBlock) -> bool:
    """Returns whether a basic block is one branch without a guard."""
    code = program.instructions[block.start : block.stop]
    return len(code) == 1 and code[0].operation.kind is OpKind.BRANCH and code[0].guard is None


def _is_loop(program: Program, block: ProgramBlock) -> bool:
    """Returns whether a basic block follows itself: it is its own successor, or that of a successor
    that is one unguarded jump."""
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


def _polling_instruction(program: Program, block: ProgramBlock) -> int:
    """Returns the index of the last polling instruction (`_is_poll`) of a basic block that is a
    polling loop, perhaps with another block that is one unguarded jump back; -1 for other blocks.
    Such a loop polls at least once, else only loads, computes and waits, has no store or atomic,
    and writes no register that is live at its start: the next iteration would then not repeat this
    one."""
    code = program.instructions[block.start : block.stop]
    written = {register for instruction in code for register in writes(instruction)}
    if written & set(program.live_in[block.index]) or not _is_loop(program, block):
        return -1
    poll = -1
    for index, instruction in enumerate(code, block.start):
        operation = instruction.operation
        if _is_poll(operation):
            poll = index
        elif (accesses(instruction) and operation.kind is not OpKind.LOAD) or (
            operation.spec.unit not in _ALLOWED_UNITS
        ):
            return -1
    return poll


def _is_poll(operation: Operation) -> bool:
    """Returns whether an operation is a load with one of POLLING_MODIFIERS, which observes what
    other threads write, or tests a phase of an mbarrier."""
    if operation.kind is OpKind.MBARRIER_WAIT:
        return True
    return operation.kind is OpKind.LOAD and not POLLING_MODIFIERS.isdisjoint(
        operation.text.split(".")
    )


def last_iterations(
    entries: Words, lanes: Words, is_polling: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Returns, as a mask, which of a log's entries (executions of a basic block) to retain: all but
    iterations of polling loops that are followed by another one of the same loop.

    `entries`, shape (entries, 2), are a warp and a basic block, sorted by warp; `lanes` the active
    lanes of each as bits; `is_polling` states by basic block whether it is a polling loop. An
    iteration is followed by another one if the warp's next entry that has any of its lanes is of
    the same basic block."""
    last = np.ones(len(entries), np.bool_)
    # Fast path: iterations of warps that have not diverged follow each other directly.
    if len(entries):
        last[:-1] = (entries[:-1] != entries[1:]).any(axis=1) | ~is_polling[
            entries[:-1, SortedEntry.block]
        ]
    remaining = np.flatnonzero(last)
    rows, masks = entries[remaining], lanes[remaining].tolist()
    for position in np.flatnonzero(is_polling[rows[:, SortedEntry.block]]).tolist():
        warp, following = rows[position, SortedEntry.warp], position + 1
        while (
            following < len(rows)
            and rows[following, SortedEntry.warp] == warp
            and not masks[position] & masks[following]
        ):
            following += 1
        if following < len(rows) and (rows[following] == rows[position]).all():
            last[remaining[position]] = False
    return last


def partial_barrier_arrivals(
    entries: Words, lanes: Words, live: Words, ends_with_barrier: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Returns, as a mask, which of a log's entries (a warp and a basic block each, sorted by warp)
    arrive at a barrier before other lanes of their warp do. The entry with which the last lanes
    arrive is not among them: the warp arrives with it.

    `lanes` are the active lanes of each entry, `live` the warp's lanes that have not ended then;
    `ends_with_barrier` states by basic block whether it ends with a barrier."""
    is_partial, warps = np.zeros(len(entries), np.bool_), entries[:, SortedEntry.warp]
    at_barrier = ends_with_barrier[entries[:, SortedEntry.block]]
    partial_warps = np.unique(warps[at_barrier & (lanes != live)])
    arrived, warp = 0, -1
    for position in np.flatnonzero(at_barrier & np.isin(warps, partial_warps)).tolist():
        if warps[position] != warp:
            arrived, warp = 0, warps[position]
        arrived |= int(lanes[position])
        is_partial[position] = int(live[position]) & ~arrived != 0
        # Starts again once all lanes have arrived.
        arrived *= int(is_partial[position])
    return is_partial


def poll_barrier_warps(poll_counts: Words, warps_per_block: int) -> int:
    """Returns how many warps wait for each other wherever one polls, as in a grid's `sync()`, given
    how often each warp polls. Returns 0 if they do not: no warp polls, some of those that poll do
    so more often than others, blocks have different numbers of polling warps, or there is one
    block."""
    polling_warps = (poll_counts.reshape(-1, warps_per_block) > 0).sum(axis=1)
    counts = np.unique(poll_counts[poll_counts > 0])
    is_grid_barrier = (
        len(polling_warps) > 1 and len(counts) == 1 and len(np.unique(polling_warps)) == 1
    )
    return int(polling_warps.sum()) if is_grid_barrier and polling_warps[0] else 0
