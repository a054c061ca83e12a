"""Code that calls the functions of an observer (`simt.event_layout`) by address, in kernels
compiled for one. Kernels that are not observed have none of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.abi.environment import Slot
from warploom.ir.variant import Observing
from warploom.llvm.lanes import I32, I64, LANES, PTR, Lanes, Value, splat_constant
from warploom.lower.frame.frame import Frame
from warploom.program.effects.observed import KINDS, SPACES, is_observed_access, is_observed_branch
from warploom.ptx.ir import Instruction
from warploom.simt import event_layout as words
from warploom.simt.schedule_layout import ENDED, STATE_WORDS, STATUS

CALLBACK = ir.FunctionType(ir.VoidType(), [PTR, PTR, PTR, PTR])
"""`callback(event, source lines, state, failed)`."""


def has_block_ended(states: Any, warps: int) -> int:
    """Return 1 if all warps of a block have ended, 0 if not, by their states."""
    for warp in range(warps):
        if states[warp * STATE_WORDS + STATUS] != ENDED:
            return 0
    return 1


def call_observer(
    lanes: Lanes, table: Value, event: Value, kind: int, fields: Mapping[int, Value]
) -> None:
    """Emit the call of one of an observer's functions with an event of these words; `event` is room
    for one."""
    b = lanes.b

    def load(word: int, type: ir.Type = PTR) -> Value:
        return b.inttoptr(b.load(lanes.slot(table, word), typ=I64), type)

    for word, value in fields.items():
        b.store(value, lanes.slot(event, word), align=8)
    function = load(kind, ir.PointerType(CALLBACK))
    tables = load(words.LINES_AT), load(words.STATE_AT), lanes.slot(table, words.FAILED)
    b.call(function, [event, *tables])


def event_buffer(lanes: Lanes) -> Value:
    """Emit room for an event; return its address."""
    return lanes.alloca(ir.ArrayType(I64, words.E_ADDRESSES + LANES), align=64)


class ObservingCode:
    """Emits the events of one warp."""

    def __init__(self, frame: Frame, wanted: Observing) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self._wanted, self._event = wanted, event_buffer(frame.prologue)

    def access(self, index: int, access_type: AccessType, addresses: Value, mask: Value) -> None:
        """Emit the event of an access that lanes, if there are some, have made."""
        wanted = self._wanted.accesses
        if not wanted or not is_observed_access(self.frame.program, index, access_type.space):
            return
        active_addresses = self.b.select(mask, addresses, splat_constant(0, I64))
        fields = {
            words.E_FIRST: I64(SPACES[access_type.space]),
            words.E_SECOND: I64(KINDS[access_type.op]),
            words.E_THIRD: I64(access_type.size),
            words.E_LANES: I64(LANES),
            words.E_ADDRESSES: active_addresses,
        }
        self._call_if_some(words.ACCESS, index, self.lanes.bits(mask), fields)

    def branch(self, index: int, instruction: Instruction, guard: Value | None) -> None:
        """Emit the event of a branch to which the active lanes come, and that those take in which
        its guard, if it has one, holds."""
        if self._wanted.branches and is_observed_branch(self.frame.program, index, instruction):
            active = self.frame.active.bits()
            on = active if guard is None else self.b.and_(active, self.lanes.bits(guard))
            fields = {words.E_FIRST: self.b.zext(on, I64)}
            self._call_if_some(words.BRANCH, index, active, fields)

    def barrier(self, index: int, on: Value, number: Value, threads: Value) -> None:
        """Emit the event of lanes, if there are some, that come to a barrier of that number, which
        awaits so many threads."""
        if self._wanted.barriers:
            fields = {words.E_FIRST: number, words.E_SECOND: threads}
            self._call_if_some(words.BARRIER, index, self.lanes.bits(on), fields)

    def _call_if_some(self, kind: int, index: int, bits: Value, fields: dict[int, Value]) -> None:
        """Emit the event of an instruction, if these lanes are some."""
        frame = self.frame
        common = {
            words.E_BLOCK: frame.slot(Slot.BLOCK),
            words.E_WARP: frame.warp,
            words.E_INSTRUCTION: I64(index),
            words.E_MASK: self.b.zext(bits, I64),
        }
        with self.b.if_then(self.b.icmp_unsigned("!=", bits, I32(0))):
            table = frame.pointer(Slot.OBSERVER_AT)
            call_observer(self.lanes, table, self._event, kind, common | fields)
