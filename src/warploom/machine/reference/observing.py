"""Calls an observer's functions from the reference machine, in the order of execution."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from warploom.isa.instruction import Instruction
from warploom.machine.observation import ObservedLaunch
from warploom.machine.reference.state import Warp, WarpAccess
from warploom.program.effects.observed import KINDS, SPACES, is_observed_access, is_observed_branch
from warploom.simt.event_layout import (
    ACCESS,
    BARRIER,
    BLOCK_BEGIN,
    BLOCK_END,
    BRANCH,
    ObservedEvent,
    ObserverTable,
)

_CALLBACK = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)


class ObserverCalls:
    """Calls the functions of one launch's observer, as `machine.reference.state.Observer`; `lanes`
    is the warp size."""

    def __init__(self, launch: ObservedLaunch, lanes: int) -> None:
        """Wraps the observer's functions, by event kind, so that Python can call them; None for a
        kind without one. `lanes` is the number of lanes of a warp, for each of which an event has
        an address."""
        self._launch = launch
        self._event = np.zeros(ObservedEvent.WORDS + lanes, np.int64)
        functions = launch.table.callbacks.tolist()
        self._functions: list[Callable[..., None] | None] = [
            _CALLBACK(address) if address else None for address in functions
        ]

    def access(self, warp: Warp, access: WarpAccess) -> None:
        """Reports an access of a warp to one space, if that is global, shared, local or constant
        memory and the instruction does not implement a call."""
        if is_observed_access(warp.run.program, access.instruction, access.space):
            self._event[ObservedEvent.WORDS :] = 0
            for lane, address in zip(access.lanes, access.addresses, strict=True):
                self._event[ObservedEvent.WORDS + lane] = address
            mask = sum(1 << lane for lane in access.lanes)
            fields = {
                ObservedEvent.space: SPACES[access.space],
                ObservedEvent.kind: KINDS[access.op],
                ObservedEvent.size: access.size,
                ObservedEvent.lanes: warp.size,
            }
            self._call_for_warp(ACCESS, warp, access.instruction, mask, fields)

    def branch(self, warp: Warp, index: int, instruction: Instruction, mask: int) -> None:
        """Reports a branch (`bra`, `brx`) with the active lanes and those of `mask`, which branch;
        nothing for other instructions and branches that implement calls."""
        if is_observed_branch(warp.run.program, index, instruction):
            fields = {ObservedEvent.taken: mask}
            self._call_for_warp(BRANCH, warp, index, warp.splits.active, fields)

    def barrier(self, warp: Warp, index: int, mask: int, number: int, threads: int) -> None:
        """Reports lanes that arrive at barrier `number`, which awaits `threads` threads (0: all);
        nothing for an empty mask."""
        if mask:
            fields = {ObservedEvent.number: number, ObservedEvent.threads: threads}
            self._call_for_warp(BARRIER, warp, index, mask, fields)

    def block_begins(self, block: int) -> None:
        """Reports a thread block that begins."""
        self._call(BLOCK_BEGIN, {ObservedEvent.block: block})

    def block_ends(self, block: int) -> None:
        """Reports a thread block whose warps have all ended."""
        self._call(BLOCK_END, {ObservedEvent.block: block})

    def _call_for_warp(
        self, kind: int, warp: Warp, index: int, mask: int, fields: dict[int, int]
    ) -> None:
        """Calls the function for events of a kind with the position of a warp (block, warp,
        instruction, lanes) and `fields`."""
        position = {
            ObservedEvent.block: warp.block.number,
            ObservedEvent.warp: warp.number,
            ObservedEvent.instruction: index,
            ObservedEvent.mask: mask,
        }
        self._call(kind, position | fields)

    def _call(self, kind: int, fields: dict[int, int]) -> None:
        """Writes `fields`, by their offsets, to the event, and calls the function for events of a
        kind with the addresses of the event, the source lines, the state and the word for a
        failure; nothing if the observer has no such function."""
        function, table = self._functions[kind], self._launch.table
        if function is None:
            return
        for word, value in fields.items():  # masks of 64 lanes have all bits
            self._event[word] = np.uint64(value).astype(np.int64)
        failed = table.words[ObserverTable.failed :].ctypes.data
        pointers = table.lines_at, table.state_at, failed
        function(self._event.ctypes.data, *pointers)
