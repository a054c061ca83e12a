"""Emits calls that write copies of the Tensor Memory Accelerator, and accesses to mbarriers, to a
log (`abi.log_copies`), in kernels compiled for that."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from llvmlite import ir

from warploom.abi import log_copies as words
from warploom.abi.environment import Slot
from warploom.abi.log import SPACES
from warploom.asynchronous.records import RequestEntry, WarpIssue
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.core.lazy import cached_property
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
        """Emits a call that appends to the log, before an access to shared memory, the mbarriers at
        the lanes' addresses, each once. Emits nothing unless the instruction tests, waits for or
        signals mbarriers (`is_at_barrier`), or `completing` is open: around the arrival of bytes
        that an `st.async` has stored. At run time, misaligned addresses and those outside of the
        block's or the cluster's shared memory are left out: the access itself will fault there."""
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
        words_by_offset = {
            WarpIssue.own_shared: own,
            WarpIssue.shared_bytes: event.memory.limit,
            WarpIssue.cluster_shared: start,
            WarpIssue.OFFSETS["entry"] + RequestEntry.size: size,
        }
        for word, value in words_by_offset.items():
            b.store(value, self.lanes.slot(self._issue, word))
        lanes, index = b.zext(self.lanes.bits(event.mask), I64), I64(event.index)
        call(self.lanes, "record_barriers", *self._arguments(self._issue), lanes, index, I64(kind))

    @contextmanager
    def completing(self) -> Generator[None]:
        """Makes `access` record every access that is emitted while it is open, as an arrival of
        bytes at an mbarrier."""
        self._completes = True
        yield
        self._completes = False

    def commits(self, index: int, issue: Value) -> None:
        """Records the mbarriers that the lanes of a `tcgen05.commit` name, which is issued by the
        words at `issue` (`WarpIssue`)."""
        kind = SPACES.index(Space.SHARED) | words.AT_BARRIER << words.OP_AT
        call(self.lanes, "record_commits", *self._arguments(issue), I64(index), I64(kind))

    def copies(self, index: int, issue: Value) -> None:
        """Records the sectors of global memory that a tensor copy moves, and the mbarrier that it
        signals, before it is issued by the words at `issue` (`WarpIssue`); of a lane whose request
        faults, and of those after it, nothing."""
        allocations = self.frame.pointer(Slot.ALLOCATIONS_AT)
        call(self.lanes, "record_copies", *self._arguments(issue), allocations, I64(index))

    def bulk(self, index: int, issue: Value, target: Space) -> None:
        """Records a `cp.async.bulk` without a tensor map to the space `target`: the mbarrier that
        it signals, and the sectors of global memory, if MODE of its request is not 0. The words at
        `issue` (`WarpIssue`) have its operands and lanes. A copy to global memory is logged as
        COPY_OUT, others as COPY_IN."""
        op = words.COPY_OUT if target is Space.GLOBAL else words.COPY_IN
        kind = SPACES.index(Space.GLOBAL) | op << words.OP_AT
        call(self.lanes, "record_bytes", *self._arguments(issue), I64(index), I64(kind))

    def _arguments(self, issue: Value) -> tuple[Value, ...]:
        """Returns the first arguments of all helpers: addresses of the log, of the buffer of
        addresses, of host address `ORIGIN`, from which helpers address all memory, and `issue`."""
        log, memory = self.frame.pointer(Slot.LOG_AT), self.b.inttoptr(I64(ORIGIN), PTR)
        return log, self._touched, memory, issue

    @cached_property
    def _issue(self) -> Value:
        """Returns the stack buffer in which `access` describes shared memory, allocated at its
        first use."""
        return self.frame.prologue.alloca(ir.ArrayType(I64, WarpIssue.WORDS))
