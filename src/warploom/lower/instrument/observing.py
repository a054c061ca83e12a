"""Emits calls of an observer's callbacks (`simt.event_layout`), in kernels compiled for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.ir.variant import Observing
from warploom.isa.instruction import Instruction
from warploom.llvm.lanes import I32, I64, LANES, PTR, Lanes, Value, splat_constant
from warploom.lower.frame.frame import Frame
from warploom.lower.instrument.access_event import AccessEvent
from warploom.program.effects.observed import KINDS, SPACES, is_observed_access, is_observed_branch
from warploom.simt.event_layout import ACCESS, BARRIER, BRANCH, ObservedEvent, ObserverTable
from warploom.simt.schedule_layout import ENDED, WarpState

CALLBACK = ir.FunctionType(ir.VoidType(), [PTR, PTR, PTR, PTR])
"""The signature `callback(event, source lines, state, failed)`; a callback sets `failed` if it
raised."""


def has_block_ended(states: Any, warps: int) -> int:
    """Returns 1 if all warps of a thread block have ended, 0 if not, from the words of their
    states. It is compiled as a helper, which `run` calls.
    """
    for warp in range(warps):
        if WarpState(states, 0, warp).status != ENDED:
            return 0
    return 1


def call_observer(
    lanes: Lanes, table: Value, event: Value, kind: int, fields: Mapping[int, Value]
) -> None:
    """Emits the call of the observer's callback for events of `kind`, whose address is word `kind`
    of the observer's `table`. First stores the event's `fields`, by word, in the buffer at `event`.
    The callback gets the address of the buffer, the observer's tables of source lines and of its
    state, and the address of its FAILED word."""
    b = lanes.b

    def load(word: int, type: ir.Type = PTR) -> Value:
        """Loads the address in a word of the observer's table, as a pointer of `type`."""
        return b.inttoptr(b.load(lanes.slot(table, word), typ=I64), type)

    for word, value in fields.items():
        b.store(value, lanes.slot(event, word), align=8)
    function = load(kind, ir.PointerType(CALLBACK))
    tables = (
        load(ObserverTable.lines_at),
        load(ObserverTable.state_at),
        lanes.slot(table, ObserverTable.failed),
    )
    b.call(function, [event, *tables])


def event_buffer(lanes: Lanes) -> Value:
    """Emits a stack buffer for an event, with 32 addresses after it; returns its address."""
    return lanes.alloca(ir.ArrayType(I64, ObservedEvent.WORDS + LANES), align=64)


class ObservingCode:
    """Emits the events of one warp for an observer; `config` states which kinds it receives."""

    def __init__(self, frame: Frame, config: Observing) -> None:
        """Allocates the buffer of an event."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self._config, self._event = config, event_buffer(frame.prologue)

    def access(self, event: AccessEvent) -> None:
        """Emits the event of an access that has been performed, if the observer receives accesses,
        the space is global, shared, local or constant memory, the instruction does not only
        implement a call, and, at run time, some lane made it. Inactive lanes have address 0."""
        index, access_type, config = event.index, event.access_type, self._config.accesses
        if not config or not is_observed_access(self.frame.program, index, access_type.space):
            return
        active_addresses = self.b.select(event.mask, event.addresses, splat_constant(0, I64))
        fields = {
            ObservedEvent.space: I64(SPACES[access_type.space]),
            ObservedEvent.kind: I64(KINDS[access_type.op]),
            ObservedEvent.size: I64(access_type.size),
            ObservedEvent.lanes: I64(LANES),
            ObservedEvent.addresses: active_addresses,
        }
        self._call_if_some(ACCESS, index, self.lanes.bits(event.mask), fields)

    def branch(self, index: int, instruction: Instruction, guard: Value | None) -> None:
        """Emits the event of a branch with the active lanes and those that branch (all without a
        guard), if the observer receives branches and this is a `bra` or `brx` that does not only
        implement a call; other instructions have none."""
        if self._config.branches and is_observed_branch(self.frame.program, index, instruction):
            active = self.frame.active.bits()
            on = active if guard is None else self.b.and_(active, self.lanes.bits(guard))
            fields = {ObservedEvent.taken: self.b.zext(on, I64)}
            self._call_if_some(BRANCH, index, active, fields)

    def barrier(self, index: int, on: Value, number: Value, threads: Value) -> None:
        """Emits the event that the lanes `on` arrive at barrier `number`, which waits for `threads`
        threads, if the observer receives barriers and there are such lanes.
        """
        if self._config.barriers:
            fields = {ObservedEvent.number: number, ObservedEvent.threads: threads}
            self._call_if_some(BARRIER, index, self.lanes.bits(on), fields)

    def _call_if_some(self, kind: int, index: int, bits: Value, fields: dict[int, Value]) -> None:
        """Emits the call of the observer with an event of instruction `index`, taken if `bits` has
        lanes; adds the block, the warp and the mask to its fields.
        """
        frame = self.frame
        common = {
            ObservedEvent.block: frame.slot(Slot.BLOCK),
            ObservedEvent.warp: frame.warp,
            ObservedEvent.instruction: I64(index),
            ObservedEvent.mask: self.b.zext(bits, I64),
        }
        with self.b.if_then(self.b.icmp_unsigned("!=", bits, I32(0))):
            table = frame.pointer(Slot.OBSERVER_AT)
            call_observer(self.lanes, table, self._event, kind, common | fields)
