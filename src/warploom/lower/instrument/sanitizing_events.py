"""Emits calls that pass events of a warp to the race detector (`detector`) other than loads and
stores: barriers and other synchronization, and asynchronous requests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.core.types import B32
from warploom.detector import layout as words
from warploom.detector.records import DetectorEvent, DetectorState, WarpKnowledge
from warploom.detector.tensor.tensor_copies import PIECE
from warploom.helpers.calls import call
from warploom.ir.variant import Sanitizing
from warploom.isa.instruction import Instruction
from warploom.llvm.lanes import I8, I32, I64, LANES, PTR, Value, vector
from warploom.lower.frame.operands import Operands
from warploom.lower.instrument.detector_accesses import fill_event
from warploom.lower.instrument.uninitialised import DetectorBlock, block_of, is_current
from warploom.program.effects.synchronising import event_of
from warploom.program.uses import member_mask, sources


class EventCode:
    """Emits the calls that pass a warp's events other than loads and stores to the detector."""

    def __init__(self, operands: Operands, config: Sanitizing) -> None:
        """Allocates the buffers of an event and of member masks; `config` states which events the
        methods emit.
        """
        self.operands, self.frame, self._config = operands, operands.frame, config
        self.lanes, self.b = operands.lanes, operands.b
        prologue = self.frame.prologue
        self._event = prologue.alloca(ir.ArrayType(I64, DetectorEvent.WORDS))
        self._masks = prologue.alloca(vector(I64))

    def barrier(self, index: int, on: Value, number: Value, threads: Value) -> None:
        """Emits the event of lanes `on` that arrive at barrier `number` of `threads` threads (0:
        all). A `bar.sync` of the whole block without a thread count only increments the warp's
        count of barriers, if `config.together` (`_count_passed_barrier`)."""
        instruction = self.frame.program.instructions[index]
        kind = event_of(instruction) or 0

        def record_event() -> None:
            """Emits the event of the barrier, with its number and its threads."""
            self._record(
                index, kind, on, {DetectorEvent.number: number, DetectorEvent.count: threads}
            )

        of_all = kind == words.BARRIER_SYNC and len(instruction.operands) == 1
        if of_all and self._config.together:
            self._count_passed_barrier(on, record_event)
        else:
            record_event()

    def _count_passed_barrier(self, on: Value, record_event: Callable[[], None]) -> None:
        """Increments the warp's count of passed barriers (`passed`), if all its 32 lanes arrive and
        the detector's state is that of its block; else emits the event by `record_event`."""
        b, whole = self.b, self.b.icmp_unsigned("==", self.lanes.bits(on), I32((1 << LANES) - 1))
        counts = b.and_(whole, is_current(self.lanes, self._block))
        with b.if_else(counts, likely=True) as (count, ignored):
            # No event is needed: all threads come to the same barriers of the whole block, so that
            # their order follows from the count.
            with count:
                state = self.frame.pointer(Slot.DETECTOR_AT)
                warps = b.load(self.lanes.slot(state, DetectorState.slot_warps), typ=I64)
                at = b.add(warps, b.mul(self.frame.warp, I64(WarpKnowledge.WORDS)))
                passed = self.lanes.slot(self._block.state, b.add(at, I64(WarpKnowledge.passed)))
                self.lanes.add_to(passed, I64(1))
            with ignored:
                record_event()

    def instruction(self, index: int, instruction: Instruction, on: Value) -> None:
        """Emits the event of lanes `on` that execute an instruction which synchronizes or waits:
        with the member masks of all lanes for WARP_SYNC, with the number of groups that may stay
        pending for ASYNC_WAIT (-1: not given). Emits nothing for others, nor for barriers of
        blocks, which have `barrier`."""
        kind = event_of(instruction)
        if kind is None or kind in words.AT_BARRIERS:
            return
        arguments: dict[int, Value] = {}
        if kind == words.WARP_SYNC:
            members = member_mask(instruction)
            assert members is not None
            masks = self.b.zext(self.operands.bits(members, B32), vector(I64))
            self.b.store(masks, self._masks)
        if kind == words.ASYNC_WAIT:
            groups = sources(instruction)
            number = self.operands.uniform(groups[0], on) if groups else I64(-1)
            arguments[DetectorEvent.number] = number
        self._record(index, kind, on, arguments)

    def copies(self, index: int, on: Value, arguments: Sequence[Value]) -> None:
        """Emits the event of tensor copies, if accesses are checked. `arguments` are memory, the
        issue (`WarpIssue`) and the allocations."""
        self._issue("detect_copies", index, on, arguments)

    def tensor_memory(self, index: int, on: Value, arguments: Sequence[Value]) -> None:
        """Emits the event of a `tcgen05` instruction, if accesses are checked. `arguments` are
        memory and the issue (`WarpIssue`)."""
        self._issue("detect_tensor_memory", index, on, arguments)

    def _issue(self, helper: str, index: int, on: Value, arguments: Sequence[Value]) -> None:
        """Emits the call of a helper of the detector, which checks the memory that a request
        accesses; nothing if no accesses are checked."""
        if not self._config.accesses:
            return
        all_memory = ir.Constant(PTR, None)
        event = self._issued(index, on)
        call(self.lanes, helper, *event, arguments[0], all_memory, *arguments[1:], self._values)

    def texels(self, index: int, on: Value, arguments: Sequence[Value]) -> None:
        """Emits the event of accesses to textures or surfaces, if accesses are checked. `arguments`
        are the descriptor table, memory, operand rows, and the issue (`TexelIssue`)."""
        if not self._config.accesses:
            return
        event, all_memory = self._issued(index, on), ir.Constant(PTR, None)
        call(self.lanes, "detect_texels", *event, all_memory, *arguments, self._values)

    def _issued(self, index: int, on: Value) -> tuple[Value, Value, Value]:
        """Stores an ACCESS event with the instruction, the block, the warp and the lanes in the
        buffer; returns the addresses of the detector's state, the event and the schedule: the first
        arguments of its helpers, which fill in the accesses of a request."""
        frame = self.frame
        fill_event(
            self.lanes,
            self._event,
            {
                DetectorEvent.kind: I64(words.ACCESS),
                DetectorEvent.instruction: I64(index),
                DetectorEvent.block: frame.slot(Slot.BLOCK),
                DetectorEvent.warp: frame.warp,
                DetectorEvent.lanes: self.b.zext(self.lanes.bits(on), I64),
            },
        )
        return frame.pointer(Slot.DETECTOR_AT), self._event, frame.pointer(Slot.PLAN_AT)

    @functools.cached_property
    def _values(self) -> Value:
        """Returns a buffer for the values that lanes store."""
        return self.frame.prologue.alloca(ir.ArrayType(I8, LANES * PIECE))

    def _record(self, index: int, kind: int, on: Value, arguments: dict[int, Value]) -> None:
        """Emits the call of `detect_event` with an event of `kind` that is not an access, of lanes
        `on` and with the stored member masks; `arguments` are further words of the event, by
        number."""
        frame = self.frame
        arguments |= {
            DetectorEvent.kind: I64(kind),
            DetectorEvent.instruction: I64(index),
            DetectorEvent.block: frame.slot(Slot.BLOCK),
            DetectorEvent.warp: frame.warp,
            DetectorEvent.lanes: self.b.zext(self.lanes.bits(on), I64),
            DetectorEvent.existing: self._existing_lanes(),
        }
        fill_event(self.lanes, self._event, arguments)
        state, plan = frame.pointer(Slot.DETECTOR_AT), frame.pointer(Slot.PLAN_AT)
        none = ir.Constant(PTR, None)
        call(self.lanes, "detect_event", state, self._event, plan, none, self._masks, none)

    def _existing_lanes(self) -> Value:
        """Returns the lanes of the warp that have a thread (bits of an i64)."""
        b, frame = self.b, self.frame
        remaining = b.sub(frame.slot(Slot.THREADS), b.mul(frame.warp, I64(32)))
        # A full warp is selected separately, which also keeps the shift amount below 64.
        full = b.icmp_signed(">=", remaining, I64(32))
        partial = b.sub(b.shl(I64(1), b.select(full, I64(0), remaining)), I64(1))
        return b.select(full, I64(0xFFFFFFFF), partial)

    @functools.cached_property
    def _block(self) -> DetectorBlock:
        """Returns the location of the current thread block's state in the detector."""
        return block_of(self.frame.prologue, self.frame.environment)
