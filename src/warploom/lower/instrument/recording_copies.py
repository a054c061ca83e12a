"""Emits calls that write copies of the Tensor Memory Accelerator, and accesses to mbarriers, to a
log (`abi.log_copies`), in kernels compiled for that."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from llvmlite import ir

from warploom.abi import log_copies as words
from warploom.abi.environment import Slot
from warploom.abi.log import SPACES
from warploom.asynchronous.records import IssueScratch, RequestEntry
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.asynchronous.tensors.requests import MODE
from warploom.helpers.calls import call
from warploom.isa.instruction import Instruction, Space
from warploom.isa.kinds import OpKind
from warploom.llvm.lanes import I64, PTR, Value, vector
from warploom.lower.control.clusters import ClusterCode
from warploom.lower.frame.frame import Frame
from warploom.lower.instrument.access_event import AccessEvent
from warploom.program.program import Program
from warploom.simt.clusters import MOST_BLOCKS


def is_at_barrier(instruction: Instruction) -> bool:
    """Returns true if an instruction creates, tests, waits for or signals an mbarrier, so that a
    recorded launch records it: all mbarrier instructions but `inval`, and copies' arrivals at
    one."""
    operation = instruction.operation
    if operation.kind is OpKind.MBARRIER:
        return operation.modifiers["op"] != "inval"
    return operation.kind in (OpKind.MBARRIER_WAIT, OpKind.COPY_ARRIVE)


class CopyRecordingCode:
    """Emits the calls that append a warp's copies, and the mbarriers that it accesses, to
    the log.
    """

    def __init__(self, frame: Frame, clusters: ClusterCode) -> None:
        """Allocates a buffer of addresses for the log's helpers."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self._clusters, self._completes = clusters, False
        self._touched = frame.prologue.alloca(vector(I64))

    def access(self, event: AccessEvent) -> None:
        """Records the mbarriers that an access touches, none at misaligned or outside addresses, if
        the instruction tests, waits for or signals one (`is_at_barrier`), or while `completing` is
        open; else emits nothing."""
        program: Program = self.frame.program
        if not self._completes and not is_at_barrier(program.instructions[event.index]):
            return
        b, frame = self.b, self.frame
        b.store(event.addresses, self._touched)
        kind = SPACES.index(Space.SHARED) | words.AT_BARRIER << words.OP_AT
        size = frame.slot(Slot.SHARED_BYTES)
        if self._clusters.several:
            size = b.mul(frame.slot(Slot.SHARED_STRIDE), I64(MOST_BLOCKS))
        own, start = b.ptrtoint(event.memory.base, I64), self._clusters.start()
        scratch = self._scratch(
            {
                IssueScratch.own_shared: own,
                IssueScratch.shared_bytes: event.memory.limit,
                IssueScratch.cluster_shared: start,
                RequestEntry.size: size,
            }
        )
        lanes = b.zext(self.lanes.bits(event.mask), I64)
        arguments = self._log(), self._touched, self._memory(), scratch, lanes
        call(self.lanes, "record_barriers", *arguments, I64(event.index), I64(kind))

    @contextmanager
    def completing(self) -> Generator[None]:
        """Makes `access` record every access that is emitted while it is open, as an arrival of
        bytes at an mbarrier."""
        self._completes = True
        yield
        self._completes = False

    def commits(self, index: int, lanes: Value, data: Value, scratch: Value) -> None:
        """Records the mbarriers that the lanes (an i64) of a `tcgen05.commit` name; operands are in
        the rows at `data`, the block's memory in the words at `scratch`."""
        kind = SPACES.index(Space.SHARED) | words.AT_BARRIER << words.OP_AT
        arguments = self._log(), self._touched, self._memory(), data, scratch, lanes, I64(index)
        call(self.lanes, "record_commits", *arguments, I64(kind))

    def copies(self, index: int, lanes: Value, data: Value, scratch: Value, request: int) -> None:
        """Records the sectors of global memory that a tensor copy of the lanes (an i64) moves, and
        the mbarrier that it signals, before it is issued; of a lane whose request faults, and of
        those after it, nothing. `data`: its operands, a row of 32 lanes each; `request`: its packed
        options (`asynchronous.tensors.requests`), which are stored in the words at `scratch`
        (`IssueScratch`)."""
        frame = self.frame
        allocations = frame.pointer(Slot.ALLOCATIONS_AT)
        self.b.store(I64(request), self.lanes.slot(scratch, RequestEntry.request))
        arguments = self._log(), self._touched, self._memory(), data, scratch, allocations, lanes
        call(self.lanes, "record_copies", *arguments, I64(index))

    def bulk(self, index: int, lanes: Value, data: Value, *, source: Space, target: Space) -> None:
        """Records a `cp.async.bulk` without a tensor map from space `source` to `target`, in the
        lanes `lanes` (an i64): the mbarrier that it signals, and the sectors of global memory, if
        one end is there. Its operands are in operand rows at `data`. A copy to global memory is
        logged as COPY_OUT, others as COPY_IN."""
        op = words.COPY_OUT if target is Space.GLOBAL else words.COPY_IN
        touches_global = Space.GLOBAL in (source, target)
        scratch = self._scratch(
            {
                RequestEntry.request: I64(int(touches_global) << MODE),
                IssueScratch.own_shared: self.frame.slot(Slot.SHARED_AT),
                IssueScratch.shared_bytes: self.frame.slot(Slot.SHARED_BYTES),
                IssueScratch.cluster_shared: self._clusters.start(),
                IssueScratch.shared_stride: self.frame.slot(Slot.SHARED_STRIDE),
                IssueScratch.live_blocks: self._clusters.live(),
            }
        )
        kind = SPACES.index(Space.GLOBAL) | op << words.OP_AT
        arguments = self._log(), self._touched, self._memory(), data, scratch, lanes, I64(index)
        call(self.lanes, "record_bytes", *arguments, I64(kind))

    def _scratch(self, values: Mapping[int, Value]) -> Value:
        """Returns a new stack buffer for the words of a copy (`IssueScratch`), with these
        values stored; other words are undefined."""
        scratch = self.frame.prologue.alloca(ir.ArrayType(I64, IssueScratch.WORDS))
        for word, value in values.items():
            self.b.store(value, self.lanes.slot(scratch, word))
        return scratch

    def _memory(self) -> Value:
        """Returns the pointer to host address `ORIGIN`, from which helpers address all memory."""
        return self.b.inttoptr(I64(ORIGIN), PTR)

    def _log(self) -> Value:
        """Returns the address of the log."""
        return self.frame.pointer(Slot.LOG_AT)
