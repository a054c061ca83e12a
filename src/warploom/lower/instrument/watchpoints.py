"""Emits code that counts the accesses to one range of memory, in kernels compiled for a debugger.

To find the last write of an address backwards, the debugger runs the kernel again in intervals, and
searches only those in which the count has changed.
"""

from __future__ import annotations

from typing import Any

from warploom.abi.environment import SPACE_CODES, Slot
from warploom.helpers.calls import call
from warploom.isa.instruction import Space
from warploom.llvm.lanes import I64, vector
from warploom.lower.frame.frame import Frame
from warploom.lower.instrument.access_event import AccessEvent
from warploom.simt.records import WordRecord


class WatchedRange(WordRecord):
    """Holds a watched range of memory, the accesses to it that count, and the number of them."""

    hits: int  # the number of accesses of a warp that touch it
    space: int  # (`SPACE_CODES`)
    ops: int  # the bits of operations
    start: int
    end: int
    first_warp: int  # of the launch
    last_warp: int  # up to this one
    lanes: int  # as bits


LOAD, STORE, ATOMIC = 1, 2, 4
OP_BITS = {"load": LOAD, "store": STORE, "atomic": ATOMIC}


def watch_access(watch_words: Any, addresses: Any, lanes: int, kind: int, warp: int) -> int:
    """Adds 1 to `hits` of a watched range if an access of a warp has the watched space, one of
    the watched operations, a warp in the watched range, and some watched lane of `lanes` touches
    the watched bytes. `kind` packs the space (8 bits), the bit of the operation (8 bits) and the
    bytes of a lane. Returns 0, as all helpers."""
    watch = WatchedRange(watch_words, 0)
    if kind & 255 != watch.space or kind >> 8 & 255 & watch.ops == 0:
        return 0
    if warp < watch.first_warp or warp >= watch.last_warp:
        return 0
    size, wanted = kind >> 16, lanes & watch.lanes
    for lane in range(32):
        if (wanted >> lane) & 1:
            address = addresses[lane]
            if address < watch.end and address + size > watch.start:
                watch.hits += 1
                return 0
    return 0


class WatchingCode:
    """Emits the calls of `watch_access` for one warp."""

    def __init__(self, frame: Frame) -> None:
        """Allocates the buffer in which an access's 32 addresses pass to `watch_access`."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self._scratch = frame.prologue.alloca(vector(I64))

    def access(self, event: AccessEvent) -> None:
        """Emits the call that counts an access if it touches the watched range; nothing for other
        spaces than global, shared and local memory."""
        access_type = event.access_type
        if access_type.space not in (Space.GLOBAL, Space.SHARED, Space.LOCAL):
            return
        frame, b = self.frame, self.b
        b.store(event.addresses, self._scratch)
        kind = (
            SPACE_CODES[access_type.space] | OP_BITS[access_type.op] << 8 | access_type.size << 16
        )
        warp = b.add(b.mul(frame.slot(Slot.BLOCK), frame.slot(Slot.WARPS)), frame.warp)
        lanes = b.zext(self.lanes.bits(event.mask), I64)
        arguments = frame.pointer(Slot.WATCH_AT), self._scratch, lanes
        call(self.lanes, "watch_access", *arguments, I64(kind), warp)
