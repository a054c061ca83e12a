"""Emits what has the detector (`detector`) take the events of a warp that are no loads
or stores: barriers, what else synchronises, and what lanes issue by requests."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.core.types import B32
from warploom.cost.fields import RECORD_WIDTH
from warploom.detector import layout as words
from warploom.detector.tensor.tensor_copies import PIECE
from warploom.helpers.calls import call
from warploom.ir.variant import Sanitizing
from warploom.llvm.lanes import I8, I32, I64, LANES, PTR, Value, vector
from warploom.lower.frame.operands import Operands
from warploom.lower.instrument.access_events import fill_event
from warploom.lower.instrument.uninitialised import KnownBlock, block_of, is_known
from warploom.program.effects.synchronising import event_of
from warploom.program.uses import member_mask, sources
from warploom.ptx.ir import Instruction


class EventCode:
    """Emits the calls that have such events taken."""

    def __init__(self, operands: Operands, wanted: Sanitizing) -> None:
        self.operands, self.frame, self._wanted = operands, operands.frame, wanted
        self.lanes, self.b = operands.lanes, operands.b
        prologue = self.frame.prologue
        self._event = prologue.alloca(ir.ArrayType(I64, words.EVENT_WORDS))
        self._masks = prologue.alloca(vector(I64))

    def barrier(self, index: int, on: Value, number: Value, threads: Value) -> None:
        """Emit the event of lanes that come to a barrier of the block."""
        made = self.frame.program.instructions[index]
        kind = event_of(made) or 0

        def take() -> None:
            self._take(index, kind, on, {words.E_NUMBER: number, words.E_COUNT: threads})

        of_all = kind == words.BARRIER_SYNC and len(made.operands) == 1
        if of_all and self._wanted.together:
            self._pass_together(on, take)
        else:
            take()

    def _pass_together(self, on: Value, take: Callable[[], None]) -> None:
        """Count a barrier as passed by the warp, if all its lanes come there and the detector knows
        of its block; else have the event taken."""
        b, whole = self.b, self.b.icmp_unsigned("==", self.lanes.bits(on), I32((1 << LANES) - 1))
        counts = b.and_(whole, is_known(self.lanes, self._block))
        with b.if_else(counts, likely=True) as (count, other):
            with count:
                state = self.frame.pointer(Slot.DETECTOR_AT)
                warps = b.load(self.lanes.slot(state, words.SLOT_WARPS), typ=I64)
                at = b.add(warps, b.mul(self.frame.warp, I64(words.WARP_WORDS)))
                passed = self.lanes.slot(self._block.state, b.add(at, I64(words.V_PASSED)))
                self.lanes.add_to(passed, I64(1))
            with other:
                take()

    def instruction(self, index: int, made: Instruction, on: Value) -> None:
        """Emit the event of lanes that execute an instruction which may synchronise."""
        kind = event_of(made)
        if kind is None or kind in words.AT_BARRIERS:
            return
        given: dict[int, Value] = {}
        if kind == words.WARP_SYNC:
            named = member_mask(made)
            assert named is not None
            masks = self.b.zext(self.operands.bits(named, B32), vector(I64))
            self.b.store(masks, self._masks)
        if kind == words.ASYNC_WAIT:
            groups = sources(made)
            number = self.operands.uniform(groups[0], on) if groups else I64(-1)
            given[words.E_NUMBER] = number
        self._take(index, kind, on, given)

    def copies(self, index: int, on: Value, given: Sequence[Value], request: int) -> None:
        """Emit the event of copies of tensors; `given` are memory, rows of operands, the words that
        `asynchronous.issue.tensor_copies` works with, and the allocations."""
        self._issue("detect_copies", index, on, given, request)

    def tensor_memory(self, index: int, on: Value, given: Sequence[Value], request: int) -> None:
        """Emit the event of a `tcgen05`; `given` are memory, rows of operands, and the words that
        `asynchronous.issue.tensor_memory` works with."""
        self._issue("detect_tensor_memory", index, on, given, request)

    def _issue(
        self, helper: str, index: int, on: Value, given: Sequence[Value], request: int
    ) -> None:
        """Emit the event of what lanes issue by a request, which a helper takes."""
        if not self._wanted.accesses:
            return
        everything = ir.Constant(PTR, None)
        event = self._issued(index, on)
        passed = *event, given[0], everything, *given[1:], self._values
        call(self.lanes, helper, *passed, I64(request))

    def texels(self, index: int, on: Value, given: Sequence[Value], request: int) -> None:
        """Emit the event of accesses to textures or surfaces; `given` are the table, memory, rows
        of operands and the words that `texture.requests` works with."""
        if not self._wanted.accesses:
            return
        passed = *self._issued(index, on), ir.Constant(PTR, None), *given, self._counts
        call(self.lanes, "detect_texels", *passed, self._values, I64(request))

    def _issued(self, index: int, on: Value) -> tuple[Value, Value, Value]:
        """Emit the event of what lanes issue by a request; return the detector's state, the event
        and the plan."""
        frame = self.frame
        fill_event(
            self.lanes,
            self._event,
            {
                words.E_KIND: I64(words.ACCESS),
                words.E_INSTRUCTION: I64(index),
                words.E_BLOCK: frame.slot(Slot.BLOCK),
                words.E_WARP: frame.warp,
                words.E_LANES: self.b.zext(self.lanes.bits(on), I64),
            },
        )
        return frame.pointer(Slot.DETECTOR_AT), self._event, frame.pointer(Slot.PLAN_AT)

    @functools.cached_property
    def _counts(self) -> Value:
        """Return room for the counts of an access, which nobody reads."""
        return self.frame.prologue.alloca(ir.ArrayType(I64, RECORD_WIDTH), align=64)

    @functools.cached_property
    def _values(self) -> Value:
        """Return room for what lanes store."""
        return self.frame.prologue.alloca(ir.ArrayType(I8, LANES * PIECE))

    def _take(self, index: int, kind: int, on: Value, given: dict[int, Value]) -> None:
        """Emits the event of some lanes that is no access."""
        frame = self.frame
        given |= {
            words.E_KIND: I64(kind),
            words.E_INSTRUCTION: I64(index),
            words.E_BLOCK: frame.slot(Slot.BLOCK),
            words.E_WARP: frame.warp,
            words.E_LANES: self.b.zext(self.lanes.bits(on), I64),
            words.E_EXISTING: self._existing(),
        }
        fill_event(self.lanes, self._event, given)
        state, plan = frame.pointer(Slot.DETECTOR_AT), frame.pointer(Slot.PLAN_AT)
        none = ir.Constant(PTR, None)
        call(self.lanes, "detect_event", state, self._event, plan, none, self._masks, none)

    def _existing(self) -> Value:
        """Return the lanes of the warp that have a thread."""
        b, frame = self.b, self.frame
        left = b.sub(frame.slot(Slot.THREADS), b.mul(frame.warp, I64(32)))
        full = b.icmp_signed(">=", left, I64(32))
        some = b.sub(b.shl(I64(1), b.select(full, I64(0), left)), I64(1))
        return b.select(full, I64(0xFFFFFFFF), some)

    @functools.cached_property
    def _block(self) -> KnownBlock:
        """Return where the detector keeps the current block's state."""
        return block_of(self.frame.prologue, self.frame.environment)
