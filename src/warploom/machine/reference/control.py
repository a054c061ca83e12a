"""Executes control flow of one warp on the reference machine: branches, exits and barriers, and
decides where a turn ends.

Each function returns the status of the turn: RUNNABLE if the warp continues, else why it cannot
(`simt.scheduling`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from warploom.core.types import B32, U32
from warploom.isa.instruction import Instruction, Symbol
from warploom.isa.kinds import OpKind
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.reference import barriers
from warploom.machine.reference.members import check_members
from warploom.machine.reference.operands import read
from warploom.machine.reference.splits import BranchSide
from warploom.machine.reference.state import Warp
from warploom.program.cfg import indexed_targets
from warploom.program.uses import gathering_mask, member_mask
from warploom.simt import schedule_layout, scheduling
from warploom.simt.schedule_layout import RUNNABLE
from warploom.simt.split_policy import ADVERSARIAL, CONVERGE
from warploom.simt.warp_table import NONE


def enter_block(warp: Warp, block: int) -> int:
    """Enters basic block `block` with the active lanes. Diverged lanes may reconverge there, which
    is counted for the branch, or wait for each other before it. If the block begins with an
    instruction that has a member mask, or a barrier with a vote, the lanes then wait for it. Sets
    `warp.next`. Returns RUNNABLE if the warp continues, else why it waits. Raises the fault of a
    lane that is not in its own member mask, or of a bad barrier."""
    splits, run = warp.splits, warp.run
    status = splits.arrive(block, warp.level)
    for branch in splits.reconverged:
        run.tally.reconvergences[branch] += 1
    splits.reconverged.clear()
    if status != RUNNABLE:
        return status
    warp.next = run.program.blocks[splits.block].start
    # Masks are checked on entry, before lanes wait for members that can never arrive.
    check_members(warp, warp.next, run.program.instructions[warp.next])
    status = _wait_for_members(warp)
    return barriers.wait_to_vote(warp) if status == RUNNABLE else status


def _wait_for_members(warp: Warp) -> int:
    """Returns SYNC_WAIT if the next instruction waits for the lanes of a member mask
    (`gathering_mask`; that of the lowest active lane) and some of them that are live are not here;
    stores the mask in the table's `argument`, and the instruction in the scheduler state. Else
    returns RUNNABLE: always without independent thread scheduling, and if the lanes have waited
    already and were merged (`sync_done`, which is cleared)."""
    run, table = warp.run, warp.splits.table
    instruction = run.program.instructions[warp.next]
    mask = gathering_mask(instruction)
    if mask is None or not run.plan.independent:
        return RUNNABLE
    if table.sync_done:
        table.sync_done = 0
        return RUNNABLE
    members = int(read(warp, mask, B32)[lowest(warp.splits.active)])
    if members & table.live & ~warp.splits.active == 0:
        return RUNNABLE
    table.argument = members
    warp.state.instruction = warp.next
    return schedule_layout.SYNC_WAIT


def jump(warp: Warp, block: int) -> int:
    """Enters a basic block. At a back edge (to this or an earlier block, the exit block excepted)
    ends the turn instead, TURN_END, if it has used more than `length` instructions (the turn's, in
    the plan) or a test of an mbarrier's phase has failed in it; the lanes then resume at `block`.
    Returns the status: RUNNABLE, TURN_END, or why the lanes wait."""
    is_back_edge = block <= warp.splits.block and block != warp.splits.exit
    if is_back_edge and (warp.failed_wait or warp.used > warp.run.plan.length):
        warp.splits.table.block = block
        return schedule_layout.TURN_END
    return enter_block(warp, block)


def advance(warp: Warp) -> int:
    """Continues with the next instruction; after the last of a basic block, at its last successor
    (the fall-through, by `jump`), unless the policy separates lanes that the instruction's member
    mask converged: then the turn ends with DIVERGED, and the lanes resume at that successor.
    Returns the status: RUNNABLE, or why the turn ends."""
    program = warp.run.program
    block = program.blocks[warp.splits.block]
    if warp.next + 1 < block.stop:
        warp.next += 1
        return RUNNABLE
    # The adversarial policy separates lanes right after the instruction for which they converged:
    # code must not rely on them staying together.
    if member_mask(program.instructions[warp.next]) is not None and _rediverges(warp):
        warp.splits.table.block = block.successors[-1]
        return schedule_layout.DIVERGED
    return jump(warp, block.successors[-1])


def _rediverges(warp: Warp) -> bool:
    """Returns true if the policy separates lanes after an instruction with a member mask: the
    adversarial one with independent threads, if several lanes are active."""
    plan = warp.run.plan
    adversarial = plan.independent and plan.policy == ADVERSARIAL
    return bool(adversarial) and warp.splits.active.bit_count() > 1


def branch(warp: Warp, index: int, instruction: Instruction, mask: int) -> int:
    """Executes `bra` for the lanes of `mask`, which branch: if all active lanes or none are in it,
    a jump; else lanes diverge, which is counted, until the branch's reconvergence point, and one
    side runs first (`_run_side`). Returns the status: RUNNABLE, or why the turn ends."""
    program, splits = warp.run.program, warp.splits
    target = instruction.operands[0]
    assert isinstance(target, Symbol)
    block = program.blocks[splits.block]
    taken = BranchSide(program.targets[target.name], mask)
    fall_through = BranchSide(block.successors[-1], splits.active & ~mask)
    if not (taken.mask and fall_through.mask):
        return jump(warp, taken.block if taken.mask else fall_through.block)
    warp.run.tally.divergent[index] += 1
    point = program.reconvergence[block.index]
    active_side, waiting_side = _order_sides(warp, point, taken, fall_through)
    splits.diverge(index, point, active_side, waiting_side, warp.level)
    return _run_side(warp, active_side.block)


def _order_sides(
    warp: Warp, point: int, taken: BranchSide, fall_through: BranchSide
) -> tuple[BranchSide, BranchSide]:
    """Returns the sides of a branch in the order in which they run: a side that is at the
    reconvergence point already, and so has nothing to run, is the second; otherwise the policy
    decides."""
    if point in (taken.block, fall_through.block):
        return (fall_through, taken) if taken.block == point else (taken, fall_through)
    words = warp.splits.table
    if scheduling.branch_first(warp.run.plan, words, warp.number):
        return taken, fall_through
    return fall_through, taken


def branch_by_index(warp: Warp, index: int, instruction: Instruction, mask: int) -> int:
    """Executes `brx.idx`: each lane of `mask` jumps to the target that its index selects, other
    active lanes fall through; lanes with different targets diverge, which is counted. Raises the
    fault of an index that the list of targets does not have. Returns the status: RUNNABLE, or why
    the turn ends."""
    program, splits = warp.run.program, warp.splits
    block = program.blocks[splits.block]
    indices = read(warp, instruction.operands[0], U32).astype(np.int64)
    targets = np.array(indexed_targets(instruction, program.targets), np.int64)
    active_before, point = splits.active, program.reconvergence[block.index]
    fall_through = (
        block.successors[-1] if block.successors else point
    )  # no target: every lane faults
    # `split_targets` replaces each lane's index by its target, and stores a lane whose index is
    # invalid in `argument`.
    lane_targets = indices.copy()
    first_block = splits.split_targets(
        index, point, lane_targets, targets, mask, fall_through, warp.level
    )
    if first_block == NONE:
        lane = splits.table.argument
        fault = Fault(
            *(FaultKind.BAD_INDEX, index, warp.block.number, warp.number, lane, int(indices[lane]))
        )
        raise fault_error(fault, program, warp.run.launch, None)
    if splits.active == active_before:
        return jump(warp, first_block)
    warp.run.tally.divergent[index] += 1
    return _run_side(warp, first_block)


def _run_side(warp: Warp, block: int) -> int:
    """Continues with the side of a branch that runs first, at basic block `block`, and returns the
    status of that jump. With independent thread scheduling and a policy other than CONVERGE, which
    interleaves the sides, ends the turn instead: returns DIVERGED."""
    plan = warp.run.plan
    if plan.independent and plan.policy != CONVERGE:
        warp.splits.table.block = block
        return schedule_layout.DIVERGED
    return jump(warp, block)


def exit_lanes(warp: Warp, _index: int, _instruction: Instruction, mask: int) -> int:
    """Executes `exit` and `ret`: the lanes of `mask` end. If these are all active lanes, the warp
    enters the exit block, where it ends or another path of it continues; else the other lanes
    continue with the next instruction. Returns the status: RUNNABLE, or why the turn ends."""
    if warp.splits.active == mask:
        return enter_block(warp, warp.splits.exit)
    warp.splits.exit_lanes(mask)
    return advance(warp)


def trap(warp: Warp, index: int, _instruction: Instruction, mask: int) -> int:
    """Executes `trap`: raises its fault if `mask` has any lane, else continues with the next
    instruction and returns the status."""
    if mask:
        fault = Fault(FaultKind.TRAP, index, warp.block.number, warp.number, lowest(mask))
        raise fault_error(fault, warp.run.program, warp.run.launch, None)
    return advance(warp)


def barrier(warp: Warp, index: int, instruction: Instruction, mask: int) -> int:
    """Executes `bar` and `barrier`, of a thread block, of a cluster or of a warp (`bar.warp.sync`,
    for whose members the warp has waited before); continues with the next instruction unless the
    warp has to wait. Returns the status."""
    status = barriers.execute_barrier(warp, index, instruction, mask)
    return advance(warp) if status == RUNNABLE else status


def lowest(mask: int) -> int:
    """Returns the lowest lane of a nonempty mask."""
    return (mask & -mask).bit_length() - 1


CONTROL: Mapping[OpKind, Callable[[Warp, int, Instruction, int], int]] = {
    OpKind.BRANCH: branch,
    OpKind.INDEXED_BRANCH: branch_by_index,
    OpKind.RETURN: exit_lanes,
    OpKind.EXIT: exit_lanes,
    OpKind.TRAP: trap,
    OpKind.BLOCK_BARRIER: barrier,
    OpKind.CLUSTER_BARRIER: barrier,
    OpKind.WARP_GROUP_BARRIER: barrier,
    OpKind.REGISTER_WAIT: barrier,
    OpKind.WARP_BARRIER: barrier,
}
"""The function that executes each control instruction, by kind. All have the parameters (`warp`,
`index`, `instruction`, `mask`), and some use only a part of them: `index` is the instruction's
number in the program, `mask` the active lanes in which its guard holds, as bits, perhaps none."""
