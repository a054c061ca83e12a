"""Control flow of one warp: branches, exits and barriers, and where a turn ends.

Every function answers as a turn does: RUNNABLE where the warp goes on, else why it cannot
(`simt.scheduling`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from warploom.core.types import B32, U32
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.reference import barriers
from warploom.machine.reference.members import check_members
from warploom.machine.reference.operands import read
from warploom.machine.reference.splits import Side
from warploom.machine.reference.state import Warp
from warploom.program.cfg import indexed_targets
from warploom.program.uses import gathering_mask, member_mask
from warploom.ptx.ir import Instruction, Symbol
from warploom.simt import schedule_layout, scheduling
from warploom.simt.schedule_layout import (
    RUNNABLE,
)
from warploom.simt.split_policy import ADVERSARIAL, CONVERGE
from warploom.simt.warp_table import ARGUMENT, BLOCK, LIVE, NONE, PASS


def enter(warp: Warp, block: int) -> int:
    """Come to a block: lanes that parted may meet there, or wait for each other before it."""
    splits, run = warp.splits, warp.run
    status = splits.arrive(block, warp.level)
    for branch in splits.met:
        run.tally.reconvergences[branch] += 1
    splits.met.clear()
    if status != RUNNABLE:
        return status
    warp.next = run.program.blocks[splits.block].start
    check_members(warp, warp.next, run.program.instructions[warp.next])
    status = _synchronise(warp)
    return barriers.wait_to_vote(warp) if status == RUNNABLE else status


def _synchronise(warp: Warp) -> int:
    """Wait before an instruction for the lanes that its member mask names and that live."""
    run, table = warp.run, warp.splits.table
    instruction = run.program.instructions[warp.next]
    mask = gathering_mask(instruction)
    if mask is None or not run.plan[schedule_layout.INDEPENDENT]:
        return RUNNABLE
    if table[PASS]:
        table[PASS] = 0
        return RUNNABLE
    members = int(read(warp, mask, B32)[lowest(warp.splits.active)])
    if members & int(table[LIVE]) & ~warp.splits.active == 0:
        return RUNNABLE
    table[ARGUMENT] = members
    warp.state[schedule_layout.INSTRUCTION] = warp.next
    return schedule_layout.SYNC_WAIT


def go(warp: Warp, block: int) -> int:
    """Jump to a block. A turn that is used up, or in which lanes have waited in vain for a phase of
    an mbarrier, ends at the way back to an earlier one."""
    back = block <= warp.splits.block and block != warp.splits.exit
    if back and (warp.failed_wait or warp.used > warp.run.plan[schedule_layout.LENGTH]):
        warp.splits.table[BLOCK] = block
        return schedule_layout.TURN_END
    return enter(warp, block)


def advance(warp: Warp) -> int:
    """Go on behind the instruction; at the end of a block, to the next one."""
    program = warp.run.program
    block = program.blocks[warp.splits.block]
    if warp.next + 1 < block.stop:
        warp.next += 1
        return RUNNABLE
    if member_mask(program.instructions[warp.next]) is not None and _drifts(warp):
        warp.splits.table[BLOCK] = block.successors[-1]
        return schedule_layout.DIVERGED_STATUS
    return go(warp, block.successors[-1])


def _drifts(warp: Warp) -> bool:
    """Returns whether lanes that an instruction brought together go their own ways again."""
    plan = warp.run.plan
    adversarial = plan[schedule_layout.INDEPENDENT] and plan[schedule_layout.POLICY] == ADVERSARIAL
    return bool(adversarial) and warp.splits.active.bit_count() > 1


def branch(warp: Warp, index: int, instruction: Instruction, mask: int) -> int:
    program, splits = warp.run.program, warp.splits
    target = instruction.operands[0]
    assert isinstance(target, Symbol)
    block = program.blocks[splits.block]
    taken = Side(program.targets[target.name], mask)
    through = Side(block.successors[-1], splits.active & ~mask)
    if not (taken.mask and through.mask):
        return go(warp, taken.block if taken.mask else through.block)
    warp.run.tally.divergent[index] += 1
    point = program.reconvergence[block.index]
    first, other = _in_order(warp, point, taken, through)
    splits.part(index, point, first, other, warp.level)
    return _begin_side(warp, first.block)


def _in_order(warp: Warp, point: int, taken: Side, through: Side) -> tuple[Side, Side]:
    """Return which side of a branch goes first, and the other: a side that is where they meet has
    nothing to run, else the policy chooses."""
    if point in (taken.block, through.block):
        return (through, taken) if taken.block == point else (taken, through)
    table = warp.splits.table
    if scheduling.branch_first(warp.run.plan, table, warp.number):
        return taken, through
    return through, taken


def branch_by_index(warp: Warp, index: int, instruction: Instruction, mask: int) -> int:
    """`brx.idx`: every lane goes to the target that its own index chooses."""
    program, splits = warp.run.program, warp.splits
    block = program.blocks[splits.block]
    goals = read(warp, instruction.operands[0], U32).astype(np.int64)
    targets = np.array(indexed_targets(instruction, program.targets), np.int64)
    before, point = splits.active, program.reconvergence[block.index]
    through = block.successors[-1] if block.successors else point  # no target: every lane faults
    chosen = goals.copy()
    first = splits.split_targets(index, point, goals, targets, mask, through, warp.level)
    if first == NONE:
        lane = int(splits.table[ARGUMENT])
        what = Fault(
            *(FaultKind.BAD_INDEX, index, warp.block.number, warp.number, lane, int(chosen[lane]))
        )
        raise fault_error(what, program, warp.run.launch, None)
    if splits.active == before:
        return go(warp, first)
    warp.run.tally.divergent[index] += 1
    return _begin_side(warp, first)


def _begin_side(warp: Warp, block: int) -> int:
    """Let the lanes that have just parted from others go on, unless the policy gives them turns."""
    plan = warp.run.plan
    if plan[schedule_layout.INDEPENDENT] and plan[schedule_layout.POLICY] != CONVERGE:
        warp.splits.table[BLOCK] = block
        return schedule_layout.DIVERGED_STATUS
    return go(warp, block)


def leave(warp: Warp, index: int, instruction: Instruction, mask: int) -> int:
    """`exit` and `ret`: the lanes of `mask` are gone for good."""
    if warp.splits.active == mask:
        return enter(warp, warp.splits.exit)
    warp.splits.leave(mask)
    return advance(warp)


def trap(warp: Warp, index: int, instruction: Instruction, mask: int) -> int:
    if mask:
        fault = Fault(FaultKind.TRAP, index, warp.block.number, warp.number, lowest(mask))
        raise fault_error(fault, warp.run.program, warp.run.launch, None)
    return advance(warp)


def barrier(warp: Warp, index: int, instruction: Instruction, mask: int) -> int:
    """Barriers of the block, and those of a warp, which has waited before."""
    status = barriers.come(warp, index, instruction, mask)
    return advance(warp) if status == RUNNABLE else status


def lowest(mask: int) -> int:
    """Return the lowest lane of a mask that has some."""
    return (mask & -mask).bit_length() - 1


CONTROL: Mapping[str, Callable[[Warp, int, Instruction, int], int]] = {
    "bra": branch,
    "brx": branch_by_index,
    "ret": leave,
    "exit": leave,
    "trap": trap,
    "bar": barrier,
    "barrier": barrier,
}
"""What steers a warp, by the name of the instruction."""
