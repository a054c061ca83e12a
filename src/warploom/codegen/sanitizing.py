"""Code that has the detector (`rules.happens_before`) take each event of a warp, in kernels
compiled for that. Kernels that are not sanitized have none of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from warploom.analysis.synchronising import event_of
from warploom.analysis.uses import member_mask, sources
from warploom.codegen.access import Shape
from warploom.codegen.environment import Slot
from warploom.codegen.helper_calls import call
from warploom.codegen.lanes import I8, I32, I64, PTR, Value, vector
from warploom.codegen.operands import Operands
from warploom.core.types import B32
from warploom.ptx.ir import Instruction, Space
from warploom.rules.happens_before import words

SPACES = {Space.GLOBAL: 0, Space.CONST: 0, Space.SHARED: 1, Space.LOCAL: 2}
"""How the detector numbers spaces; in local memory it only checks bounds."""

OPS = ("load", "store", "atomic")


@dataclass(frozen=True, slots=True)
class Memory:
    """Where a space begins on the host, its length in bytes, and where operands of accesses lie."""

    base: Value
    limit: Value
    data: Value


class SanitizingCode:
    """Emits the calls that have one warp's events taken."""

    def __init__(self, operands: Operands) -> None:
        self.operands, self.frame = operands, operands.frame
        self.lanes, self.b = operands.lanes, operands.b
        prologue = self.frame.prologue
        self._event = prologue.alloca(ir.ArrayType(ir.IntType(64), words.EVENT_WORDS))
        self._addresses = prologue.alloca(vector(I64))

    def access(
        self, index: int, shape: Shape, addresses: Value, mask: Value, memory: Memory
    ) -> Value:
        """These lanes are about to reach into a space; gives those that may."""
        if shape.space not in SPACES:
            return mask
        self.b.store(addresses, self._addresses)
        given = {
            words.E_KIND: I64(words.ACCESS),
            words.E_SPACE: I64(SPACES[shape.space]),
            words.E_OP: I64(OPS.index(shape.op)),
            words.E_SIZE: I64(shape.size),
            words.E_PART: I64(shape.type.bytes),
            words.E_BASE: self.b.ptrtoint(memory.base, I64),
            words.E_LIMIT: memory.limit,
        }
        kept = self._take(index, mask, given, memory.data)
        return self.lanes.mask(self.b.trunc(kept, I32))

    def barrier(self, index: int, on: Value, number: Value, threads: Value) -> None:
        """These lanes come to a barrier of the block."""
        kind = event_of(self.frame.program.instructions[index])
        given = {
            words.E_KIND: I64(kind or 0),
            words.E_NUMBER: number,
            words.E_COUNT: threads,
        }
        self._take(index, on, given, None)

    def instruction(self, index: int, made: Instruction, on: Value) -> None:
        """These lanes execute an instruction, which may synchronise."""
        kind = event_of(made)
        if kind in (None, words.BARRIER_SYNC, words.BARRIER_ARRIVE):
            return
        given = {words.E_KIND: I64(kind)}
        if kind == words.WARP_SYNC:
            named = member_mask(made)
            assert named is not None
            masks = self.b.zext(self.operands.bits(named, B32), vector(I64))
            self.b.store(masks, self._addresses)
        if kind == words.ASYNC_WAIT:
            groups = sources(made)
            number = self.operands.uniform(groups[0], on) if groups else I64(-1)
            given[words.E_NUMBER] = number
        self._take(index, on, given, None)

    def clear(self, place: Value, size: int) -> None:
        """Writes zeros where lanes that are kept from memory find what they load."""
        self.b.store(ir.Constant(ir.ArrayType(I8, size), None), place)

    def _take(self, index: int, on: Value, given: dict[int, Value], data: Value | None) -> Value:
        """Have the detector take an event; gives the lanes that may do what it says."""
        frame, b = self.frame, self.b
        given |= {
            words.E_INSTRUCTION: I64(index),
            words.E_BLOCK: frame.slot(Slot.BLOCK),
            words.E_WARP: frame.warp,
            words.E_LANES: b.zext(self.lanes.bits(on), I64),
            words.E_EXISTING: self._existing(),
        }
        for word, value in given.items():
            b.store(value, self.lanes.slot(self._event, word))
        none = ir.Constant(PTR, None)
        return call(
            self.lanes,
            "detect_event",
            frame.pointer(Slot.DETECTOR_AT),
            self._event,
            frame.pointer(Slot.PLAN_AT),
            none,
            self._addresses,
            none if data is None else data,
        )

    def _existing(self) -> Value:
        """The lanes of the warp that have a thread."""
        b, frame = self.b, self.frame
        left = b.sub(frame.slot(Slot.THREADS), b.mul(frame.warp, I64(32)))
        full = b.icmp_signed(">=", left, I64(32))
        some = b.sub(b.shl(I64(1), b.select(full, I64(0), left)), I64(1))
        return b.select(full, I64(0xFFFFFFFF), some)
