"""Executes barriers in one warp on the reference machine: arrive, wait, and the result of a barrier
with a vote (PTX ISA, "Parallel Synchronization and Communication: bar, barrier").

The barrier number and thread count are those of the lowest lane that executes the instruction.
Before compute capability 7.0 the whole warp waits, whichever lanes arrived; from 7.0 on only those
that arrived. Releasing the waiting warps is left to `simt.scheduling`.
"""

from __future__ import annotations

from warploom.core.types import PRED, U32
from warploom.isa.instruction import Instruction
from warploom.isa.kinds import OpKind
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.reference.lanes import from_mask, splat, to_mask
from warploom.machine.reference.operands import guard_mask, read, write
from warploom.machine.reference.state import Warp
from warploom.program.uses import is_reducing_barrier, sources
from warploom.simt import clusters, schedule_layout
from warploom.simt.register_pool import REQUESTED_AT
from warploom.simt.schedule_layout import RUNNABLE
from warploom.simt.warp_table import NONE

WHOLE = 1
"""The `resume` value of a converged warp: it continues at its block without reading its table."""


def wait_to_vote(warp: Warp) -> int:
    """Suspends the lanes that execute the next instruction if it is a barrier with a vote
    (`bar.red`), to resume at it, after storing in VOTE 1 plus the number of them whose predicate is
    true (for `and`: false). Returns the status of the warp: why it waits; RUNNABLE if the next
    instruction is no such barrier, no lane executes it, or these lanes have waited already
    (`sync_done`, which is cleared). Raises the fault of a bad barrier."""
    table, index = warp.splits.table, warp.next
    instruction = warp.run.program.instructions[index]
    if not is_reducing_barrier(instruction):
        return RUNNABLE
    if table.sync_done:
        table.sync_done = 0
        return RUNNABLE
    mask = warp.splits.active & guard_mask(warp, instruction)
    if not mask:
        return RUNNABLE
    predicate = to_mask(read(warp, instruction.operands[-1], PRED))
    # `and` counts the lanes whose predicate is false: its result is true if the count stays 0.
    counted = ~predicate if instruction.operation.modifiers["op"] == "and" else predicate
    table.vote = 1 + (counted & mask).bit_count()
    return _wait_at_barrier(warp, index, instruction, mask, warp.splits.block, together=False)


def execute_barrier(warp: Warp, index: int, instruction: Instruction, mask: int) -> int:
    """Executes a barrier for the lanes of `mask`; returns RUNNABLE if the warp continues after it
    (always for no lanes at a block's barrier), else why it waits. A barrier of the warp, or with a
    vote, has been waited for (`wait_to_vote`), so only the vote's result is written. `bar.arrive`
    stores its barrier and thread count as `argument` and `argument_2`, and where the lanes go on as
    BLOCK, and returns ARRIVED_ONLY: the scheduler counts the lanes, which do not wait. Raises the
    fault of a bad barrier."""
    if instruction.operation.kind is OpKind.WARP_BARRIER:
        return RUNNABLE
    if instruction.operation.kind is OpKind.CLUSTER_BARRIER:
        return _execute_cluster_barrier(warp, index, instruction, mask)
    if instruction.operation.kind is OpKind.REGISTER_WAIT:
        return _wait_for_registers(warp, index)
    if is_reducing_barrier(instruction):
        _write_vote(warp, instruction, mask)
        return RUNNABLE
    if not mask:
        return RUNNABLE
    table, next_block = warp.splits.table, warp.run.program.blocks[warp.splits.block].successors[-1]
    if "arrive" in instruction.operation.modifiers:
        number, threads = _operands(warp, index, instruction, mask)
        table.argument, table.argument_2 = number, threads
        _report_arrival(warp, index, mask, number, threads)
        table.block = next_block
        return schedule_layout.ARRIVED_ONLY
    # Converged with no reconvergence pending: the warp can wait as a whole.
    together = bool(table.top == NONE and table.mask == table.live)
    return _wait_at_barrier(warp, index, instruction, mask, next_block, together=together)


def _report_arrival(warp: Warp, index: int, mask: int, number: int, threads: int) -> None:
    """Reports lanes that arrive at barrier `number`, which awaits `threads` threads (0: all), to
    the sanitizer and the observer, if there are any."""
    if warp.run.sanitizer is not None:
        warp.run.sanitizer.arrives(warp, index, mask, number, threads)
    if warp.run.observer is not None:
        warp.run.observer.barrier(warp, index, mask, number, threads)


def _execute_cluster_barrier(warp: Warp, index: int, instruction: Instruction, mask: int) -> int:
    """Executes `barrier.cluster` for the lanes of `mask`, and reports their arrival or wait
    (`_report_arrival`). An arrival is stored in the warp's `cluster_arrived`. A wait suspends the
    warp if its lanes have arrived at the current phase, and others of the cluster have not. Returns
    the status of the warp."""
    run, table = warp.run, warp.splits.table
    if mask:
        _report_arrival(warp, index, mask, schedule_layout.CLUSTER_BARRIER, 0)
    if "arrive" in instruction.operation.modifiers:
        warp.state.cluster_arrived |= mask
        return RUNNABLE
    warp_index = run.plan.slot * run.launch.warps_per_block + warp.number
    state = (run.plan, run.slots, run.states, run.tables)
    if not clusters.must_wait(*state, warp_index, table.live, mask):
        return RUNNABLE
    return _suspend_at_end(warp, index, (schedule_layout.CLUSTER_BARRIER, 0))


def _wait_for_registers(warp: Warp, index: int) -> int:
    """Suspends a warp that has requested registers (`setmaxnreg.inc`) until other warps of its
    block have released enough. Returns the status of the warp."""
    requested = warp.state.registers >> REQUESTED_AT
    if requested == 0:
        return RUNNABLE
    return _suspend_at_end(warp, index, (schedule_layout.REGISTER_WAIT, requested))


def _suspend_at_end(warp: Warp, index: int, barrier_operands: tuple[int, int]) -> int:
    """Suspends a warp at the end of its basic block, to continue with the next one (`_suspend`)."""
    table = warp.splits.table
    together = bool(table.top == NONE and table.mask == table.live)
    next_block = warp.run.program.blocks[warp.splits.block].successors[-1]
    return _suspend(warp, index, barrier_operands, next_block, together=together)


def _wait_at_barrier(
    warp: Warp, index: int, instruction: Instruction, mask: int, block: int, *, together: bool
) -> int:
    """Reports the arrival of the lanes of `mask` at a barrier and suspends them, to resume at basic
    block `block`; `together` is true if the warp can wait as a whole: all live lanes are here, no
    reconvergence is pending, and there is no vote. Returns the status of the warp."""
    number, threads = _operands(warp, index, instruction, mask)
    _report_arrival(warp, index, mask, number, threads)
    return _suspend(warp, index, (number, threads), block, together=together)


def _suspend(
    warp: Warp, index: int, barrier_operands: tuple[int, int], block: int, *, together: bool
) -> int:
    """Stores the basic block where lanes resume, the instruction `index` at which they wait, and
    the barrier that they wait for (its number and thread count). If the warp waits as a whole
    (`together`, or without independent threads), the barrier stands in its scheduler state, where
    `resume` becomes WHOLE for `together`, else FROM_TABLE; returns BARRIER_WAIT. Otherwise the
    barrier stands as arguments in the warp's table; returns SPLIT_BARRIER."""
    (number, threads), state, table = barrier_operands, warp.state, warp.splits.table
    table.block = block
    state.instruction = index
    if together or not warp.run.plan.independent:
        state.barrier, state.barrier_threads = number, threads
        state.resume = WHOLE if together else schedule_layout.FROM_TABLE
        return schedule_layout.BARRIER_WAIT
    table.argument, table.argument_2 = number, threads
    return schedule_layout.SPLIT_BARRIER


def _operands(warp: Warp, index: int, instruction: Instruction, mask: int) -> tuple[int, int]:
    """Returns the number of the barrier and the number of threads that it awaits (0: all), as the
    lowest lane of `mask` (not empty) has them; for the barrier of a warp group, the number of the
    group's own one. Raises the fault of another barrier number from BARRIERS on, or of a thread
    count that is no multiple of the warp size."""
    lane = (mask & -mask).bit_length() - 1
    operands = sources(instruction)[: -1 if is_reducing_barrier(instruction) else None]
    number, *count = (int(read(warp, operand, U32)[lane]) for operand in operands)
    threads = count[0] if count else 0
    # Each warp group of a block has a barrier number of its own, above those of programs.
    if instruction.operation.kind is OpKind.WARP_GROUP_BARRIER:
        return number + warp.number // schedule_layout.GROUP_WARPS, threads
    if number >= schedule_layout.BARRIERS or threads % warp.size:
        position = (index, warp.block.number, warp.number, lane)
        fault = Fault(FaultKind.BAD_BARRIER, *position, number, threads)
        raise fault_error(fault, warp.run.program, warp.run.launch, None)
    return number, threads


def _write_vote(warp: Warp, instruction: Instruction, mask: int) -> None:
    """Writes the result of a barrier with a vote to its destination in the lanes of `mask`: `popc`
    is the number of lanes that counted, `and` is true if it is 0 (lanes counted whose predicate is
    false), `or` if it is not. Reads the number from `vote` of the warp's table, where the scheduler
    has stored it plus 1 for the whole block, and clears that."""
    table = warp.splits.table
    total = table.vote - 1
    table.vote = 0
    answers = {"popc": (total, U32), "and": (total == 0, PRED), "or": (total > 0, PRED)}
    value, type = answers[instruction.operation.modifiers.text("op", "")]
    write(
        warp,
        instruction.operands[0],
        splat(value, type, warp.size),
        type,
        from_mask(mask, warp.size),
    )
