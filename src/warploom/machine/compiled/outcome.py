"""Builds the exception for a launch of compiled code that did not end, from its environment."""

from __future__ import annotations

from warploom.abi.environment import SPACE_CODES, Slot, Status
from warploom.core.errors import Allocation
from warploom.isa.instruction import Space
from warploom.isa.preconditions import PRECONDITIONS
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.faults.deadlock import deadlock_error, waiting_lanes
from warploom.machine.faults.endless import limit_error
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.faults.tensor_faults import NAMES as TENSOR_FAULTS
from warploom.machine.launch import shared_bytes
from warploom.machine.tally import Tally
from warploom.machine.turn import cancellation_error
from warploom.simt.schedule_layout import WarpState, table_of

ALL_ONES = (1 << 64) - 1
ACCESSES = {
    FaultKind.OUT_OF_BOUNDS,
    FaultKind.MISALIGNED,
    FaultKind.READ_ONLY,
    *PRECONDITIONS,
    *TENSOR_FAULTS,
}
"""The kinds of faults that have an address."""


def check_limit(tally: Tally, work: WorkerLaunch) -> None:
    """Raises InstructionLimit if the tally of a launch that has ended shows more warp instructions
    than `max_instructions`, which its last call of compiled code may have exceeded."""
    limit = work.launch.max_instructions
    if limit is not None and tally.warps.sum() > limit:
        raise error_of(work, Status.LIMIT)


def error_of(work: WorkerLaunch, status: Status) -> BaseException:
    """Returns the exception for a worker's launch that did not end, but stopped with `status`: that
    of a host callback if one failed, else of a cancellation (PAUSED), a fault, a deadlock or the
    instruction limit (any other status)."""
    if work.host_callbacks is not None and work.host_callbacks.error is not None:
        # An exception of a callback ended the kernel, whatever status it reports.
        return work.host_callbacks.error
    if status is Status.PAUSED:
        return cancellation_error()
    if status is Status.FAULT:
        return _fault(work)
    if status is Status.DEADLOCK:
        return _deadlock(work)
    return limit_error(work.kernel.program, work.launch)


def _fault(work: WorkerLaunch) -> Exception:
    """Returns the error of the fault that the environment's FAULT_ slots record: its kind,
    instruction, thread and address, with the block's or thread's own memory (`_private_range`) or
    else the allocation nearest to the address."""
    slots = {slot: work.environment[slot] for slot in Slot}
    space = {code: space for space, code in SPACE_CODES.items()}[slots[Slot.FAULT_SPACE]]
    kind = FaultKind(slots[Slot.FAULT_KIND])
    if kind in ACCESSES:  # an address from 2**63 on is negative in the environment
        slots[Slot.FAULT_ADDRESS] &= ALL_ONES
    fault = Fault(
        kind,
        slots[Slot.FAULT_INSTRUCTION],
        slots[Slot.BLOCK],
        slots[Slot.FAULT_WARP],
        slots[Slot.FAULT_LANE],
        slots[Slot.FAULT_ADDRESS],
        slots[Slot.FAULT_SIZE],
        space,
    )
    nearest = _private_range(work, space) or work.memory.nearest(fault.address)
    return fault_error(fault, work.kernel.program, work.launch, nearest)


def _private_range(work: WorkerLaunch, space: Space) -> Allocation | None:
    """Returns the extent of shared, local or parameter memory, which begin at address 0, for a
    fault's message; None for other spaces."""
    program = work.kernel.program
    shared = shared_bytes(program, work.launch)
    return {
        Space.SHARED: Allocation(0, shared, "the block's shared memory"),
        Space.LOCAL: Allocation(0, program.local_bytes, "the thread's local memory"),
        Space.PARAM: Allocation(0, program.parameter_bytes, "the kernel's parameters"),
    }.get(space)


def _deadlock(work: WorkerLaunch) -> Exception:
    """Returns the error that lists what all lanes of the resident blocks wait for, from the
    scheduler states and tables in the buffers."""
    program, warps = work.kernel.program, work.launch.warps_per_block
    waiting = [
        lanes
        for slot, block in enumerate(work.slots.tolist())
        if block >= 0
        for warp in range(warps)
        for lanes in waiting_lanes(
            program,
            block,
            warp,
            WarpState(work.states, 0, slot * warps + warp),
            table_of(work.buffers.plan, work.tables, slot * warps + warp),
        )
    ]
    return deadlock_error(program, work.launch, waiting, work.following)
