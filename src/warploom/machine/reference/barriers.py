"""Barriers of a block in one warp: arriving, waiting, and what a counting barrier tells (PTX ISA,
"Parallel Synchronization and Communication: bar, barrier").

Their number and count are those of the lowest lane that gets there. Before 7.0 the whole warp
waits, whichever of its lanes came; from 7.0 on those that came. Who is let go when is for
`simt.scheduling`.
"""

from __future__ import annotations

from warploom.core.types import PRED, U32
from warploom.isa.ops.cluster import is_cluster_barrier
from warploom.isa.ops.wgmma import is_group_barrier
from warploom.isa.spec import Unit
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.reference.lanes import from_mask, splat, to_mask
from warploom.machine.reference.operands import guard_mask, read, write
from warploom.machine.reference.state import Warp
from warploom.program.uses import is_reducing_barrier, sources
from warploom.ptx.ir import Instruction
from warploom.simt import clusters, schedule_layout
from warploom.simt.schedule_layout import (
    RUNNABLE,
)
from warploom.simt.warp_table import ARGUMENT, ARGUMENT_2, BLOCK, LIVE, MASK, NONE, PASS, TOP, VOTE

WHOLE = 1
"""How a warp goes on whose lanes are all together."""


def wait_to_vote(warp: Warp) -> int:
    """Wait before a barrier that counts, with what the running lanes add."""
    table, index = warp.splits.table, warp.next
    instruction = warp.run.program.instructions[index]
    if not is_reducing_barrier(instruction):
        return RUNNABLE
    if table[PASS]:
        table[PASS] = 0
        return RUNNABLE
    mask = warp.splits.active & guard_mask(warp, instruction)
    if not mask:
        return RUNNABLE
    held = to_mask(read(warp, instruction.operands[-1], PRED))
    counted = ~held if instruction.operation.modifiers["op"] == "and" else held
    table[VOTE] = 1 + (counted & mask).bit_count()
    return _wait(warp, index, instruction, mask, warp.splits.block, together=False)


def come(warp: Warp, index: int, instruction: Instruction, mask: int) -> int:
    """Execute a barrier for the lanes of `mask`; RUNNABLE where the warp goes on behind it."""
    if instruction.operation.spec.unit is not Unit.BARRIER:
        return RUNNABLE
    if is_cluster_barrier(instruction.operation):
        return _come_in_cluster(warp, index, instruction, mask)
    if is_reducing_barrier(instruction):
        _tell(warp, instruction, mask)
        return RUNNABLE
    if not mask:
        return RUNNABLE
    table, following = warp.splits.table, warp.run.program.blocks[warp.splits.block].successors[-1]
    if "arrive" in instruction.operation.modifiers:
        number, threads = _operands(warp, index, instruction, mask)
        table[ARGUMENT], table[ARGUMENT_2] = number, threads
        _note(warp, index, mask, number, threads)
        table[BLOCK] = following
        return schedule_layout.ARRIVED_ONLY
    together = bool(table[TOP] == NONE and table[MASK] == table[LIVE])
    return _wait(warp, index, instruction, mask, following, together=together)


def _note(warp: Warp, index: int, mask: int, number: int, threads: int) -> None:
    """Tell the sanitizer and the observer, if there are such, of lanes that come to a barrier."""
    if warp.run.sanitizer is not None:
        warp.run.sanitizer.arrives(warp, index, mask, number, threads)
    if warp.run.observer is not None:
        warp.run.observer.barrier(warp, index, mask, number, threads)


def _come_in_cluster(warp: Warp, index: int, instruction: Instruction, mask: int) -> int:
    """Arrive or wait at the barrier of the cluster."""
    run, table = warp.run, warp.splits.table
    if mask:
        _note(warp, index, mask, schedule_layout.CLUSTER_BARRIER, 0)
    if "arrive" in instruction.operation.modifiers:
        warp.state[schedule_layout.CLUSTER_ARRIVED] |= mask
        return RUNNABLE
    own = int(run.plan[schedule_layout.SLOT]) * run.launch.warps_per_block + warp.number
    given = (run.plan, run.slots, run.states, run.tables)
    if not clusters.must_wait(*given, own, int(table[LIVE]), mask):
        return RUNNABLE
    together = bool(table[TOP] == NONE and table[MASK] == table[LIVE])
    following = run.program.blocks[warp.splits.block].successors[-1]
    place = (schedule_layout.CLUSTER_BARRIER, 0)
    return _leave(warp, index, place, following, together=together)


def _wait(
    warp: Warp, index: int, instruction: Instruction, mask: int, block: int, *, together: bool
) -> int:
    """Wait at a barrier, to go on at a block; `together` says that all living lanes are here."""
    number, threads = _operands(warp, index, instruction, mask)
    _note(warp, index, mask, number, threads)
    return _leave(warp, index, (number, threads), block, together=together)


def _leave(warp: Warp, index: int, place: tuple[int, int], block: int, *, together: bool) -> int:
    """Leave to wait at a barrier, of a number, for so many threads."""
    (number, threads), state, table = place, warp.state, warp.splits.table
    table[BLOCK] = block
    state[schedule_layout.INSTRUCTION] = index
    if together or not warp.run.plan[schedule_layout.INDEPENDENT]:
        state[schedule_layout.BARRIER], state[schedule_layout.BARRIER_THREADS] = number, threads
        state[schedule_layout.RESUME] = WHOLE if together else schedule_layout.FROM_TABLE
        return schedule_layout.BARRIER_WAIT
    table[ARGUMENT], table[ARGUMENT_2] = number, threads
    return schedule_layout.SPLIT_BARRIER


def _operands(warp: Warp, index: int, instruction: Instruction, mask: int) -> tuple[int, int]:
    """Return the number of the barrier and of the threads that it awaits, 0 for all."""
    lane = (mask & -mask).bit_length() - 1
    given = sources(instruction)[: -1 if is_reducing_barrier(instruction) else None]
    number, *count = (int(read(warp, operand, U32)[lane]) for operand in given)
    threads = count[0] if count else 0
    if is_group_barrier(instruction.operation):
        return number + warp.number // schedule_layout.GROUP_WARPS, threads
    if number >= schedule_layout.BARRIERS or threads % warp.size:
        place = (index, warp.block.number, warp.number, lane)
        fault = Fault(FaultKind.BAD_BARRIER, *place, number, threads)
        raise fault_error(fault, warp.run.program, warp.run.launch, None)
    return number, threads


def _tell(warp: Warp, instruction: Instruction, mask: int) -> None:
    """Write what the barrier has counted."""
    table = warp.splits.table
    total = int(table[VOTE]) - 1
    table[VOTE] = 0
    answers = {"popc": (total, U32), "and": (total == 0, PRED), "or": (total > 0, PRED)}
    value, type = answers[instruction.operation.modifiers.text("op", "")]
    write(
        warp,
        instruction.operands[0],
        splat(value, type, warp.size),
        type,
        from_mask(mask, warp.size),
    )
