"""Records asynchronous work from its issue to the wait for it, and the state of each mbarrier.

Work is over, for whoever reads a trace, at the step at which a thread has waited for it: for its
group, or for the phase of the mbarrier that is told of it. When it completes is the machine's.
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
from warploom.machine.launch import shared_stride
from warploom.machine.reference.operands import addresses
from warploom.machine.reference.state import Access, Warp
from warploom.observe import schema
from warploom.observe.asynchronous import copied_bytes, is_tensor_copy
from warploom.program.effects.asynchronous import (
    ALL,
    KINDS,
    AsynchronousPart,
    AsynchronousRole,
    asynchronous_part,
)
from warploom.program.program import Program
from warploom.ptx.ir import Address, Operand, Register, Space
from warploom.simt.address_windows import BLOCK_BITS, SHARED_WINDOW
from warploom.simt.clusters import peer_block

WORD_BYTES = 8
COUNTS = (1 << COUNT_BITS) - 1

Place = tuple[int, int]
"""A place in shared memory: where the host has that of the cluster, and the byte in it."""


@dataclass
class _Flight:
    """Work on its way: the step that began it, its kind and bytes, the number of the mbarrier that
    is told of it with the phase, and the step at which it was awaited, -1 for none yet."""

    step: int
    kind: int
    size: int = 0
    barrier: int = -1
    phase: int = 0
    until: int = -1


@dataclass
class _Barrier:
    """An mbarrier: its block and address there, its place, the last word that was seen with how
    many phases had ended by then, and the work that it is told of."""

    block: int
    address: int
    place: Place
    word: int = -1
    phases: int = 0
    flights: list[_Flight] = field(default_factory=list[_Flight])


@dataclass
class _Groups:
    """The work of one kind of a warp: what is in no group yet, and the groups, oldest first."""

    open: list[_Flight] = field(default_factory=list[_Flight])
    closed: list[list[_Flight]] = field(default_factory=list[list[_Flight]])


class FlightLog:
    """Keeps the asynchronous work of the warps that are recorded, and their mbarriers."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._parts = [asynchronous_part(made) for made in program.instructions]
        self._flights: list[_Flight] = []
        self._barriers: list[_Barrier] = []
        self._at: dict[Place, int] = {}
        self._groups: dict[tuple[int, int, int], _Groups] = defaultdict(_Groups)
        self._states: list[tuple[int, ...]] = []
        self._begun: list[_Flight] = []
        self._bytes = 0

    def begin(self, step: int, warp: Warp, instruction: int, mask: int) -> None:
        """Note what an instruction is about to do, in the lanes of `mask`."""
        self._begun, self._bytes = [], 0
        part = self._parts[instruction]
        if part is None or not mask:
            return
        if part.role is AsynchronousRole.BEGIN:
            self._begin(step, warp, part, mask)
        elif part.role is AsynchronousRole.GROUP:
            self._group(warp, part, mask)
        elif part.role is AsynchronousRole.WAIT:
            self._wait(step, warp, part)
        elif part.role is AsynchronousRole.INIT and part.barrier is not None:
            for place in self._places(warp, part.barrier, mask):
                self._initialise(warp, place)

    def accessed(self, access: Access) -> None:
        """Add the bytes that the instruction moves."""
        operation = self._program.instructions[access.instruction].operation
        counted = copied_bytes(operation, access.space, access.op) is not None
        if not is_tensor_copy(operation):
            counted = access.op != "load" and access.space is Space.SHARED
        self._bytes += counted * access.size * len(access.lanes)

    def settle(self, step: int, warp: Warp, instruction: int, mask: int) -> None:
        """Note what the instruction has done, now that it is done."""
        for flight in self._begun:
            flight.size = self._bytes // len(self._begun)
        part = self._parts[instruction]
        if part is not None and part.role is AsynchronousRole.LOOK and part.barrier is not None:
            self._look(step, warp, instruction, part.barrier, mask)
        cluster = int(warp.block.cluster.ctypes.data)
        for number, barrier in enumerate(self._barriers):
            if barrier.place[0] == cluster and self._at.get(barrier.place) == number:
                self._see(step, number, self._word(warp, barrier.place))

    # ---- work -----------------------------------------------------------------------------------

    def _begin(self, step: int, warp: Warp, part: AsynchronousPart, mask: int) -> None:
        made = _Flight(step, part.kind)
        self._begun.append(made)
        if part.barrier is None:
            self._of(warp, part.kind).open.append(made)
        else:
            for place in self._places(warp, part.barrier, mask)[1:]:
                self._begun.append(_Flight(step, part.kind))
                self._tie(warp, self._begun[-1:], place)
            self._tie(warp, [made], self._places(warp, part.barrier, mask)[0])
        self._flights += self._begun

    def _tie(self, warp: Warp, flights: list[_Flight], place: Place) -> None:
        """Let an mbarrier be told of some work."""
        number = self._at.get(place)
        if number is not None:
            for flight in flights:
                flight.barrier, flight.phase = number, phase(self._word(warp, place))
            self._barriers[number].flights += flights

    def _group(self, warp: Warp, part: AsynchronousPart, mask: int) -> None:
        groups = self._of(warp, part.kind)
        if part.barrier is None:
            groups.closed.append(groups.open)
        else:
            place = self._places(warp, part.barrier, mask)[0]
            self._tie(warp, [one for one in groups.open if one.until < 0], place)
        groups.open = []

    def _wait(self, step: int, warp: Warp, part: AsynchronousPart) -> None:
        groups = self._of(warp, part.kind)
        kept = len(groups.closed) if part.left == ALL else min(part.left, len(groups.closed))
        done = groups.closed[: len(groups.closed) - kept]
        if part.left == ALL:
            done, kept = [*groups.closed, groups.open], 0
            groups.open = []
        groups.closed = groups.closed[len(groups.closed) - kept :] if kept else []
        for group in done:
            _end(group, step)

    def _look(self, step: int, warp: Warp, instruction: int, operand: Operand, mask: int) -> None:
        """End the work of phases that a thread has seen to be complete."""
        seen = self._program.instructions[instruction].operands[0]
        if not isinstance(seen, Register):
            return
        holds = warp.registers[seen.name]
        lanes = sum(1 << lane for lane in range(warp.size) if mask >> lane & 1 and holds[lane])
        for place in self._places(warp, operand, lanes) if lanes else ():
            number = self._at.get(place)
            if number is not None:
                barrier, now = self._barriers[number], phase(self._word(warp, place))
                over = [one for one in barrier.flights if one.phase != now]
                barrier.flights = [one for one in barrier.flights if one.phase == now]
                _end(over, step)

    def _of(self, warp: Warp, kind: int) -> _Groups:
        return self._groups[warp.block.number, warp.number, kind]

    # ---- mbarriers ------------------------------------------------------------------------------

    def _places(self, warp: Warp, operand: Operand, mask: int) -> list[Place]:
        """Return the places of the mbarriers that lanes name, each once."""
        assert isinstance(operand, Address)
        stride = shared_stride(warp.run.program, warp.run.launch)
        found: dict[Place, None] = {}
        for lane, given in enumerate(addresses(warp, operand)):
            if mask >> lane & 1:
                address = given & (SHARED_WINDOW - 1)
                rank = (address >> BLOCK_BITS) - 1
                rank = warp.block.rank if rank < 0 else rank
                offset = address & ((1 << BLOCK_BITS) - 1)
                found[int(warp.block.cluster.ctypes.data), rank * stride + offset] = None
        return list(found)

    def _word(self, warp: Warp, place: Place) -> int:
        """Return the word at a place of the warp's cluster; 0 where there is none."""
        held = warp.block.cluster.reshape(-1)[place[1] : place[1] + WORD_BYTES].tobytes()
        return int.from_bytes(held.ljust(WORD_BYTES, b"\0"), "little")

    def _initialise(self, warp: Warp, place: Place) -> None:
        stride = shared_stride(warp.run.program, warp.run.launch)
        rank, address = divmod(place[1], stride)
        block = peer_block(warp.run.plan, warp.block.number, warp.block.rank, rank)
        known = self._at.get(place)
        if known is None or self._barriers[known].block != block:
            self._at[place] = len(self._barriers)
            self._barriers.append(_Barrier(block, address, place))

    def _see(self, step: int, number: int, word: int) -> None:
        """Note the state of an mbarrier, where it is another one than before."""
        barrier = self._barriers[number]
        if word == barrier.word:
            return
        if not is_valid(word):
            if barrier.word != -1 and is_valid(barrier.word):
                self._states.append((step, number, schema.NOT_VALID, 0, 0, 0))
            barrier.word = word
            return
        if is_valid(barrier.word) and barrier.word != -1:
            barrier.phases += (phase(word) - phase(barrier.word)) % 4
        else:
            barrier.phases = 0
        barrier.word = word
        bytes_ = word >> TX_AT & ((1 << TX_BITS) - 1)
        bytes_ -= (bytes_ >> TX_BITS - 1) << TX_BITS
        expected = word >> EXPECTED_AT & COUNTS
        self._states.append((step, number, barrier.phases, word & COUNTS, expected, bytes_))

    # ---- what came of it ------------------------------------------------------------------------

    def recorded(self, steps: int) -> schema.Asynchronous | None:
        """Return what was recorded of a launch of so many steps; None where there was nothing."""
        if not self._flights and not self._barriers:
            return None
        states = np.array(self._states, np.int64).reshape(-1, 6)
        rows = [
            (one.step, steps if one.until < 0 else one.until, one.kind, one.size, one.barrier + 1)
            for one in self._flights
        ]
        flights = np.array(rows, np.int64).reshape(-1, 5)
        columns = (flights[:, place].astype("<u4").tobytes() for place in range(5))
        seen = (states[:, place].astype("<i4").tobytes() for place in range(6))
        return schema.Asynchronous(
            KINDS,
            tuple(schema.MBarrier(one.block, one.address) for one in self._barriers),
            schema.BarrierStates(len(states), *seen),
            schema.Flights(len(flights), *columns),
        )


def _end(flights: list[_Flight], step: int) -> None:
    """Note that work was awaited."""
    for flight in flights:
        if flight.until < 0:
            flight.until = step
