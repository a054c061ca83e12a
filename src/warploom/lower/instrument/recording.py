"""Emits calls that write a warp's execution to a log (`abi.log`), in kernels compiled for that. The
timing model and traces read the log.
"""

from __future__ import annotations

from warploom.abi.access_type import AccessType
from warploom.abi.environment import Slot
from warploom.abi.log import OPS, SPACES
from warploom.helpers.calls import call
from warploom.llvm.lanes import I64, Lanes, Value, vector
from warploom.lower.frame.frame import Frame
from warploom.lower.frame.spills import SpillCode
from warploom.lower.instrument.access_event import AccessEvent
from warploom.program.accesses import AccessRecord
from warploom.program.cfg import ProgramBlock

SECTOR_BYTES = 32


class RecordingCode:
    """Emits the calls that append a warp's blocks, guards and accesses to the log."""

    def __init__(self, frame: Frame, spills: SpillCode) -> None:
        """Allocates the buffer in which addresses pass to the log's helpers."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self._spills = spills
        self._scratch = frame.prologue.alloca(vector(I64))

    def block(self, block: ProgramBlock) -> None:
        """Records that the warp enters a basic block, with its active mask, its number of
        instructions without those that only maintain the stack of calls (`hidden`), and the
        counters of branches. Saves the head of the warp's table in its context, where the helper
        reads it."""
        frame, layout = self.frame, self.frame.layout
        # The helper reads the active mask and the SIMT stack from the warp's context.
        self._spills.save_head()
        first_branch = min(layout.branches.values(), default=0)
        warps = frame.slot(Slot.WARPS)
        warp = self.b.add(self.b.mul(frame.slot(Slot.BLOCK), warps), frame.warp)
        hidden = sum(i in frame.program.hidden for i in range(block.start, block.stop))
        size = block.stop - block.start - hidden
        block_arguments = (
            I64(first_branch),
            I64(len(layout.branches)),
            warp,
            I64(block.index),
            I64(size),
        )
        call(
            self.lanes,
            "record_block",
            self._log(),
            frame.context.at(0),
            frame.counts,
            *block_arguments,
        )

    def guard(self, instruction: int, lanes: Value) -> None:
        """Records the lanes (bits of an i32) in which an instruction's guard holds."""
        record_guard(self.lanes, self._log(), I64(instruction), lanes)

    def access(self, event: AccessEvent) -> None:
        """Appends an access to the log: instruction, space, operation, size, lanes and addresses;
        nothing for spaces that the log has no number for (`record_access`)."""
        arguments = self._log(), self._scratch, I64(event.index), event.access_type
        record_access(self.lanes, *arguments, event.addresses, self.lanes.bits(event.mask))

    def texels(self, instruction: int, record: AccessRecord, scratch: Value) -> None:
        """Records that a texture or surface request touched the sectors that the helper has stored
        in `scratch`, as an access of `record`'s space and operation by 32-byte sectors."""
        kind = SPACES.index(record.space) | OPS.index(record.op) << 8 | SECTOR_BYTES << 16
        arguments = scratch, I64(instruction), I64(kind)
        call(self.lanes, "record_texels", self._log(), *arguments)

    def _log(self) -> Value:
        """Returns the address of the log."""
        return self.frame.pointer(Slot.LOG_AT)


def record_guard(lanes: Lanes, log: Value, instruction: Value, on: Value) -> None:
    """Emits the record that an instruction's guard holds in the lanes `on` (bits of an i32)."""
    call(lanes, "record_guard", log, instruction, lanes.b.zext(on, I64))


def record_access(
    lanes: Lanes,
    log: Value,
    scratch: Value,
    instruction: Value,
    access_type: AccessType,
    addresses: Value,
    on: Value,
) -> None:
    """Emits the record that the lanes `on` (bits of an i32) access 64-bit addresses, which pass
    through the buffer at `scratch`. Emits nothing for spaces that the log has no number for
    (`SPACES`), such as kernel parameters."""
    if access_type.space not in SPACES:
        return
    lanes.b.store(addresses, scratch)
    # The log's word for a kind of access: space, operation and bytes of a lane, from bits 0, 8, 16.
    kind = SPACES.index(access_type.space) | OPS.index(access_type.op) << 8 | access_type.size << 16
    arguments = scratch, lanes.b.zext(on, I64), instruction, I64(kind)
    call(lanes, "record_access", log, *arguments)
