"""Emits addresses in a warp's context (`abi.context_layout`) and in its state
(`simt.scheduling`)."""

from __future__ import annotations

from warploom.abi.context_layout import ContextLayout
from warploom.abi.environment import Slot
from warploom.llvm.lanes import I8, I64, Value
from warploom.lower.frame.function_frame import FunctionFrame
from warploom.simt.schedule_layout import WarpState


class WarpContext:
    """Emits addresses of words of the running warp's state, by which the scheduler knows it, and of
    its context (the memory that holds its lanes, SIMT stack and registers while it waits) except
    for registers (`lower.frame.context_registers`)."""

    def __init__(self, frame: FunctionFrame, layout: ContextLayout) -> None:
        """Stores the size of a context from `layout`; emits nothing."""
        self.frame, self.lanes, self._size = frame, frame.lanes, layout.size

    def set_state(self, word: int, value: Value) -> None:
        """Stores a 64-bit word of this warp's state."""
        self.lanes.b.store(value, self.state(word))

    def state(self, word: int) -> Value:
        """Returns the address of a 64-bit word of this warp's state."""
        # Not in the prologue: in warp order, one call runs all warps of a block.
        return self.lanes.slot(self.frame.of_warp("state", self._states), word)

    def _states(self) -> Value:
        """Returns the address of this warp's state."""
        index = self.lanes.b.mul(self.frame.warp, I64(WarpState.WORDS))
        return self.lanes.slot(self.frame.pointer(Slot.STATES_AT), index)

    def table(self, word: int) -> Value:
        """Returns the address of a 64-bit word of this warp's table (`simt.warp_table`), with which
        its context begins."""
        return self.at(8 * word)

    def at(self, offset: int) -> Value:
        """Returns the address at a byte offset of this warp's context, for all but registers."""
        base = self.frame.of_warp(
            "context", lambda: self.start_address(self.frame.pointer(Slot.CONTEXTS_AT))
        )
        return self.lanes.b.gep(base, [I64(offset)], source_etype=I8)

    def start_address(self, contexts: Value) -> Value:
        """Returns the address at which the running warp's context starts, computed from `contexts`,
        that of the block's first warp."""
        b = self.lanes.b
        start = b.mul(self.frame.row, I64(self._size))
        return b.gep(contexts, [start], source_etype=I8)
