"""Passes the events of the reference machine to the detector. Compiled kernels call it themselves
(`lower.instrument`)."""

from __future__ import annotations

import ctypes
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from warploom.asynchronous.records import WarpIssue
from warploom.core.types import B32, U32
from warploom.detector import layout as words
from warploom.detector.records import DetectorEvent
from warploom.isa.instruction import Space
from warploom.machine.memory.host_memory import host_memory
from warploom.machine.reference.operands import read
from warploom.machine.reference.state import (
    AttemptedAccess,
    Warp,
)
from warploom.program.effects.synchronising import event_of
from warploom.program.uses import member_mask, sources
from warploom.texture.descriptors import TexelIssue

SPACES = {Space.GLOBAL: words.GLOBAL, Space.CONST: words.GLOBAL, Space.SHARED: words.SHARED}
LOCAL = 2
"""The detector's number for local memory, of which it checks bounds only."""

OPS = ("load", "store", "atomic")
LANES = 32
NO_DATA = np.zeros(1, np.uint8)
NO_ADDRESSES = np.zeros(LANES, np.int64)

Longs = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class Detect(Protocol):
    """Runs the detector on an event, as plain Python or compiled (`detector.detect`)."""

    def __call__(
        self, state: Longs, event: Longs, plan: Longs, addresses: Longs, data: Bytes
    ) -> int: ...


class HostMemory:
    """Reads the host's memory, byte by byte, at any address of this process."""

    def __getitem__(self, address: int) -> int:
        return ctypes.c_uint8.from_address(int(address)).value


def detect_in_python(state: Longs, event: Longs, plan: Longs, addresses: Longs, data: Bytes) -> int:
    """Runs the detector as plain Python, on Python's integers."""
    from warploom.detector.detect import detect_event

    state_: Any = state
    return int(detect_event(state_, event.tolist(), plan, HostMemory(), addresses.tolist(), data))


class EventSource:
    """Passes each event of the reference machine to a detector."""

    def __init__(self, state: Longs, detect: Detect) -> None:
        self._state, self._detect = state, detect

    def admitted(self, warp: Warp, wanted: AttemptedAccess) -> int:
        """Passes an access; returns the lanes that may access memory."""
        shared = warp.block.shared
        event_words = {
            DetectorEvent.kind: words.ACCESS,
            DetectorEvent.space: SPACES.get(wanted.space, LOCAL),
            DetectorEvent.op: OPS.index(wanted.op),
            DetectorEvent.size: wanted.size,
            DetectorEvent.part: wanted.size,
        }
        if wanted.space is Space.SHARED:
            event_words |= {
                DetectorEvent.base: int(shared.ctypes.data),
                DetectorEvent.limit: len(shared),
            }
        elif wanted.space is Space.LOCAL:
            event_words[DetectorEvent.limit] = warp.local.shape[1]
        addresses = np.zeros(LANES, np.uint64)
        for lane, address in wanted.addresses.items():
            addresses[lane] = address
        lanes = sum(1 << lane for lane in wanted.addresses)
        data = np.frombuffer(wanted.data, np.uint8) if wanted.data else NO_DATA
        return self._pass_event(
            warp, wanted.instruction, lanes, event_words, addresses.view(np.int64), data
        )

    def arrives(self, warp: Warp, instruction: int, mask: int, number: int, threads: int) -> None:
        """Passes an arrival at a barrier of the block."""
        ptx_instruction = warp.run.program.instructions[instruction]
        event_words = {
            DetectorEvent.kind: event_of(ptx_instruction) or 0,
            DetectorEvent.number: number,
            DetectorEvent.count: threads,
        }
        self._pass_event(warp, instruction, mask, event_words)

    def passes(self, warp: Warp, instruction: int, mask: int) -> None:
        """Passes another instruction that synchronizes."""
        ptx_instruction = warp.run.program.instructions[instruction]
        kind = event_of(ptx_instruction)
        if kind is None or kind in words.AT_BARRIERS:
            return
        event_words, masks = {DetectorEvent.kind: kind}, NO_ADDRESSES
        if kind == words.WARP_SYNC:
            named = member_mask(ptx_instruction)
            assert named is not None
            masks = read(warp, named, B32).astype(np.int64)
        if kind == words.ASYNC_WAIT:
            operands = sources(ptx_instruction)
            lowest = (mask & -mask).bit_length() - 1
            event_words[DetectorEvent.number] = (
                int(read(warp, operands[0], U32)[lowest]) if operands else -1
            )
        self._pass_event(warp, instruction, mask, event_words, masks)

    def copies(self, warp: Warp, instruction: int, issue: WarpIssue) -> None:
        """Passes copies of tensors."""
        from warploom.detector.tensor.tensor_copies import PIECE, detect_copies

        state: Any = self._state
        detect_copies(
            state,
            _issued(warp, instruction, issue.mask),
            warp.run.plan.words,
            host_memory(),
            HostMemory(),
            issue.words,
            warp.run.memory.table_in_launch().rows,
            np.zeros(LANES * PIECE, np.uint8),
        )

    def tensor_memory(self, warp: Warp, instruction: int, issue: WarpIssue) -> None:
        """Passes a `tcgen05` instruction."""
        from warploom.detector.tensor.tensor_copies import PIECE
        from warploom.detector.tensor.tensor_memory import detect_tensor_memory

        state: Any = self._state
        with np.errstate(all="ignore"):
            detect_tensor_memory(
                state,
                _issued(warp, instruction, issue.mask),
                warp.run.plan.words,
                host_memory(),
                HostMemory(),
                issue.words,
                np.zeros(LANES * PIECE, np.uint8),
            )

    def texels(
        self, warp: Warp, instruction: int, rows: npt.NDArray[np.uint64], issue: TexelIssue
    ) -> None:
        """Passes an access to a texture or a surface."""
        from warploom.detector.tensor.tensor_copies import PIECE
        from warploom.detector.tensor.texels import detect_texels

        state, memory = cast("Any", self._state), warp.run.memory
        with np.errstate(all="ignore"):
            detect_texels(
                state,
                _issued(warp, instruction, issue.mask),
                warp.run.plan.words,
                HostMemory(),
                memory.textures.table().words,
                memory.bytes,
                rows,
                issue.words,
                np.zeros(LANES * PIECE, np.uint8),
            )

    def _pass_event(
        self,
        warp: Warp,
        instruction: int,
        lanes: int,
        event_words: dict[int, int],
        addresses: Longs = NO_ADDRESSES,
        data: Bytes = NO_DATA,
    ) -> int:
        """Fills an event and runs the detector on it; returns the lanes that may continue."""
        event = np.zeros(DetectorEvent.WORDS, np.int64)
        event[DetectorEvent.instruction] = instruction
        event[DetectorEvent.block] = warp.block.number
        event[DetectorEvent.warp] = warp.number
        event[DetectorEvent.lanes] = lanes
        event[DetectorEvent.existing] = warp.existing
        for word, value in event_words.items():
            event[word] = value
        plan = warp.run.plan.words
        return self._detect(self._state, event, plan, addresses, data)


def _issued(warp: Warp, instruction: int, mask: int) -> list[int]:
    """Returns the event of lanes that issue a request."""
    event = [0] * DetectorEvent.WORDS
    event[DetectorEvent.kind], event[DetectorEvent.instruction] = words.ACCESS, instruction
    event[DetectorEvent.block], event[DetectorEvent.warp] = warp.block.number, warp.number
    event[DetectorEvent.lanes] = mask
    return event
