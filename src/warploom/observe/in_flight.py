"""Records asynchronous operations from issue to wait, and the state of each mbarrier, for a trace.

In a trace, an operation ends at the step at which a thread has waited for it: for its group
(`cp.async.wait_group`), or for the phase of the mbarrier that it signals. When it completes inside
the machine is not recorded. Example: `cp.async.bulk` at step 10 with mbarrier m, and a successful
`mbarrier.try_wait` on m at step 25, are one operation from 10 until 25.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from warploom.asynchronous.mbarrier import (
    COUNT_BITS,
    EXPECTED_AT,
    TX_AT,
    TX_BITS,
    is_valid,
    phase,
)
from warploom.isa.instruction import Address, Operand, Register, Space
from warploom.machine.launch import shared_stride
from warploom.machine.reference.operands import addresses
from warploom.machine.reference.state import Warp, WarpAccess
from warploom.observe import schema
from warploom.observe.asynchronous import TENSOR_COPIES, copied_bytes
from warploom.program.effects.asynchronous import (
    ALL,
    KINDS,
    AsynchronousPart,
    AsynchronousRole,
    asynchronous_part,
)
from warploom.program.program import Program
from warploom.simt.address_windows import BLOCK_BITS, SHARED_WINDOW
from warploom.simt.clusters import peer_block

WORD_BYTES = 8
COUNTS = (1 << COUNT_BITS) - 1

SharedSlot = tuple[int, int]
"""An address in shared memory: the host address of the cluster's shared memory, and the byte offset
in it."""


@dataclass
class _Operation:
    """An asynchronous operation: the step that issued it, its kind and bytes, the number of the
    mbarrier that it signals (-1: none) with the phase, and the step at which it was awaited, -1 for
    none yet."""

    step: int
    kind: int
    size: int = 0
    barrier: int = -1
    phase: int = 0
    until: int = -1


@dataclass
class _Barrier:
    """An mbarrier: its thread block and address there, its slot, the last word that was read with
    the number of phases completed by then, and the operations that signal it."""

    block: int
    address: int
    place: SharedSlot
    word: int = -1
    phases: int = 0
    flights: list[_Operation] = field(default_factory=list[_Operation])


@dataclass
class _Groups:
    """The operations of one kind of a warp: those that are not committed, and the committed groups,
    oldest first."""

    open: list[_Operation] = field(default_factory=list[_Operation])
    closed: list[list[_Operation]] = field(default_factory=list[list[_Operation]])


class FlightLog:
    """Records the asynchronous operations of the recorded warps, and their mbarriers."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._parts = [asynchronous_part(instruction) for instruction in program.instructions]
        self._flights: list[_Operation] = []
        self._barriers: list[_Barrier] = []
        self._barrier_at: dict[SharedSlot, int] = {}
        self._groups: dict[tuple[int, int, int], _Groups] = defaultdict(_Groups)
        self._states: list[tuple[int, ...]] = []
        self._issued: list[_Operation] = []
        self._bytes = 0

    def begin(self, step: int, warp: Warp, instruction: int, mask: int) -> None:
        """Records what an instruction will do, in the lanes of `mask`, before it is executed."""
        self._issued, self._bytes = [], 0
        part = self._parts[instruction]
        if part is None or not mask:
            return
        if part.role is AsynchronousRole.BEGIN:
            self._begin_operation(step, warp, part, mask)
        elif part.role is AsynchronousRole.GROUP:
            self._close_group(warp, part, mask)
        elif part.role is AsynchronousRole.WAIT:
            self._wait(step, warp, part)
        elif part.role is AsynchronousRole.INIT and part.barrier is not None:
            for slot in self._slots_of(warp, part.barrier, mask):
                self._initialise(warp, slot)

    def accessed(self, access: WarpAccess) -> None:
        """Adds the bytes that the current instruction moves."""
        operation = self._program.instructions[access.instruction].operation
        counted = copied_bytes(operation, access.space, access.op) is not None
        if operation.kind not in TENSOR_COPIES:
            counted = access.op != "load" and access.space is Space.SHARED
        self._bytes += counted * access.size * len(access.lanes)

    def settle(self, step: int, warp: Warp, instruction: int, mask: int) -> None:
        """Records what an instruction has done, after it was executed."""
        for operation in self._issued:
            # Copies of lanes to several mbarriers share the bytes of the instruction evenly.
            operation.size = self._bytes // len(self._issued)
        part = self._parts[instruction]
        if part is not None and part.role is AsynchronousRole.LOOK and part.barrier is not None:
            self._end_completed(step, warp, instruction, part.barrier, mask)
        cluster = int(warp.block.cluster.ctypes.data)
        for number, barrier in enumerate(self._barriers):
            if barrier.place[0] == cluster and self._barrier_at.get(barrier.place) == number:
                self._record_state(step, number, self._word(warp, barrier.place))

    # ---- operations -----------------------------------------------------------------------------

    def _begin_operation(self, step: int, warp: Warp, part: AsynchronousPart, mask: int) -> None:
        """Records the operations that an instruction issues: one for each mbarrier that lanes name,
        or one in the warp's open group."""
        operation = _Operation(step, part.kind)
        self._issued.append(operation)
        if part.barrier is None:
            self._groups_of(warp, part.kind).open.append(operation)
        else:
            for slot in self._slots_of(warp, part.barrier, mask)[1:]:
                self._issued.append(_Operation(step, part.kind))
                self._attach(warp, self._issued[-1:], slot)
            self._attach(warp, [operation], self._slots_of(warp, part.barrier, mask)[0])
        self._flights += self._issued

    def _attach(self, warp: Warp, operations: list[_Operation], slot: SharedSlot) -> None:
        """Attaches operations to the mbarrier that they signal, in its current phase."""
        number = self._barrier_at.get(slot)
        if number is not None:
            for operation in operations:
                operation.barrier, operation.phase = number, phase(self._word(warp, slot))
            self._barriers[number].flights += operations

    def _close_group(self, warp: Warp, part: AsynchronousPart, mask: int) -> None:
        """Commits the open group, or attaches its operations to an mbarrier
        (`cp.async.mbarrier.arrive`)."""
        groups = self._groups_of(warp, part.kind)
        if part.barrier is None:
            groups.closed.append(groups.open)
        else:
            slot = self._slots_of(warp, part.barrier, mask)[0]
            self._attach(
                warp, [operation for operation in groups.open if operation.until < 0], slot
            )
        groups.open = []

    def _wait(self, step: int, warp: Warp, part: AsynchronousPart) -> None:
        """Ends the groups that a wait completes."""
        groups = self._groups_of(warp, part.kind)
        still_open = len(groups.closed) if part.left == ALL else min(part.left, len(groups.closed))
        completed = groups.closed[: len(groups.closed) - still_open]
        if part.left == ALL:
            completed, still_open = [*groups.closed, groups.open], 0
            groups.open = []
        groups.closed = groups.closed[len(groups.closed) - still_open :] if still_open else []
        for group in completed:
            _end(group, step)

    def _end_completed(
        self, step: int, warp: Warp, instruction: int, operand: Operand, mask: int
    ) -> None:
        """Ends the operations of phases that a test of the mbarrier has reported complete."""
        result = self._program.instructions[instruction].operands[0]
        if not isinstance(result, Register):
            return
        is_complete = warp.registers[result.name]
        lanes = sum(
            1 << lane for lane in range(warp.size) if mask >> lane & 1 and is_complete[lane]
        )
        for slot in self._slots_of(warp, operand, lanes) if lanes else ():
            number = self._barrier_at.get(slot)
            if number is not None:
                barrier, current_phase = self._barriers[number], phase(self._word(warp, slot))
                completed = [
                    operation for operation in barrier.flights if operation.phase != current_phase
                ]
                barrier.flights = [
                    operation for operation in barrier.flights if operation.phase == current_phase
                ]
                _end(completed, step)

    def _groups_of(self, warp: Warp, kind: int) -> _Groups:
        return self._groups[warp.block.number, warp.number, kind]

    # ---- mbarriers ------------------------------------------------------------------------------

    def _slots_of(self, warp: Warp, operand: Operand, mask: int) -> list[SharedSlot]:
        """Returns the addresses of the mbarriers that lanes name, without duplicates."""
        assert isinstance(operand, Address)
        stride = shared_stride(warp.run.program, warp.run.launch)
        slots: dict[SharedSlot, None] = {}
        for lane, lane_address in enumerate(addresses(warp, operand)):
            if mask >> lane & 1:
                address = lane_address & (SHARED_WINDOW - 1)
                rank = (address >> BLOCK_BITS) - 1
                rank = warp.block.rank if rank < 0 else rank
                offset = address & ((1 << BLOCK_BITS) - 1)
                slots[int(warp.block.cluster.ctypes.data), rank * stride + offset] = None
        return list(slots)

    def _word(self, warp: Warp, slot: SharedSlot) -> int:
        """Returns the 64-bit word at an address in the warp's cluster; 0 beyond its end."""
        word_bytes = warp.block.cluster.reshape(-1)[slot[1] : slot[1] + WORD_BYTES].tobytes()
        return int.from_bytes(word_bytes.ljust(WORD_BYTES, b"\0"), "little")

    def _initialise(self, warp: Warp, slot: SharedSlot) -> None:
        """Adds a new mbarrier, unless the same thread block has one there already."""
        stride = shared_stride(warp.run.program, warp.run.launch)
        rank, address = divmod(slot[1], stride)
        block = peer_block(warp.run.plan, warp.block.number, warp.block.rank, rank)
        number = self._barrier_at.get(slot)
        if number is None or self._barriers[number].block != block:
            self._barrier_at[slot] = len(self._barriers)
            self._barriers.append(_Barrier(block, address, slot))

    def _record_state(self, step: int, number: int, word: int) -> None:
        """Records the state of an mbarrier if its word has changed."""
        barrier = self._barriers[number]
        if word == barrier.word:
            return
        if not is_valid(word):
            if barrier.word != -1 and is_valid(barrier.word):
                self._states.append((step, number, schema.NOT_VALID, 0, 0, 0))
            barrier.word = word
            return
        if is_valid(barrier.word) and barrier.word != -1:
            # An mbarrier holds its phase modulo 4.
            barrier.phases += (phase(word) - phase(barrier.word)) % 4
        else:
            barrier.phases = 0
        barrier.word = word
        bytes_ = word >> TX_AT & ((1 << TX_BITS) - 1)
        # Sign-extends the field of pending bytes.
        bytes_ -= (bytes_ >> TX_BITS - 1) << TX_BITS
        expected = word >> EXPECTED_AT & COUNTS
        self._states.append((step, number, barrier.phases, word & COUNTS, expected, bytes_))

    # ---- results --------------------------------------------------------------------------------

    def recorded(self, steps: int) -> schema.Asynchronous | None:
        """Returns the trace's record of a launch of `steps` steps; None if there was no
        asynchronous work."""
        if not self._flights and not self._barriers:
            return None
        states = np.array(self._states, np.int64).reshape(-1, 6)
        rows = [
            (
                operation.step,
                steps if operation.until < 0 else operation.until,
                operation.kind,
                operation.size,
                operation.barrier + 1,
            )
            for operation in self._flights
        ]
        flights = np.array(rows, np.int64).reshape(-1, 5)
        operation_columns = (flights[:, index].astype("<u4").tobytes() for index in range(5))
        state_columns = (states[:, index].astype("<i4").tobytes() for index in range(6))
        return schema.Asynchronous(
            KINDS,
            tuple(
                schema.MBarrier(operation.block, operation.address) for operation in self._barriers
            ),
            schema.BarrierStates(len(states), *state_columns),
            schema.Flights(len(flights), *operation_columns),
        )


def _end(operations: list[_Operation], step: int) -> None:
    """Ends operations that are still pending."""
    for operation in operations:
        if operation.until < 0:
            operation.until = step
