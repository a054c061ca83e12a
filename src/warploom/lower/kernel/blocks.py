"""Emits the begin and the end of thread blocks in `run`: their indices, the clearing of their
memory, checks at their end, and the events that an observer receives."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from warploom.abi.environment import SPACE_CODES, Slot, Status, local_stride
from warploom.asynchronous.records import RequestEntry
from warploom.asynchronous.tensor_memory.checks import STILL_ALLOCATED
from warploom.asynchronous.tensor_memory.layout import LANE_BYTES, LANES
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.helpers.calls import call
from warploom.ir.variant import Observing
from warploom.isa.instruction import Space
from warploom.llvm.lanes import I1, I8, I64, PTR, Value
from warploom.lower.instrument.observing import call_observer, event_buffer
from warploom.lower.kernel.environment import GridEnvironment
from warploom.simt.event_layout import BLOCK_BEGIN, BLOCK_END, ObservedEvent
from warploom.simt.schedule_layout import Plan, WarpState


@dataclass(frozen=True)
class BlockOptions:
    """Holds the options by which the begin and end of thread blocks are emitted. `local_bytes`: the
    local memory of a thread. `delays`: asynchronous copies may complete late. `tensor_memory`:
    blocks have tensor memory. `observes`: the events that an observer receives.
    """

    local_bytes: int
    delays: bool
    tensor_memory: bool
    observes: Observing


class GridBlocks:
    """Emits the begin and the end of thread blocks in `run`. In a scheduled launch
    `only_warp_order` is the address of an i1: the current block has run in warp order only since it
    began."""

    def __init__(self, env: GridEnvironment, options: BlockOptions) -> None:
        """Allocates the buffer of events if an observer receives any."""
        self.env, self.lanes, self.b, self.options = env, env.lanes, env.b, options
        if options.observes.block_begins or options.observes.block_ends:
            self._event = event_buffer(self.lanes)

    def prepare_schedule(self) -> None:
        """Allocates the stack slots that a scheduled launch needs, and only such a launch:
        `only_warp_order`, and `work` for copies that complete late, if the launch delays any."""
        self.only_warp_order = self.lanes.alloca(I1)
        if self.options.delays:
            self.work = self.lanes.alloca(ir.ArrayType(I64, RequestEntry.WORDS))

    def set_current(self, thread_block: Value) -> None:
        """Stores the linear index of the current thread block (i64, x fastest) and its `%ctaid` in
        the environment."""
        b = self.b
        b.store(thread_block, self.env.at(Slot.BLOCK))
        across, down = self.env.get(Slot.NCTAID_X), self.env.get(Slot.NCTAID_Y)
        rest = b.udiv(thread_block, across)
        b.store(b.urem(thread_block, across), self.env.at(Slot.CTAID_X))
        b.store(b.urem(rest, down), self.env.at(Slot.CTAID_Y))
        b.store(b.udiv(rest, down), self.env.at(Slot.CTAID_Z))

    def clear_memory(self) -> None:
        """Sets the current block's shared memory, with the state of tensor memory after it but not
        its columns, and its local memory to zero. PTX leaves their contents undefined; zeros make
        runs repeatable."""
        size = self.env.get(Slot.SHARED_BYTES)
        if self.options.tensor_memory:
            # The state of tensor memory follows it; columns are cleared when they are allocated.
            size = self.b.sub(self.env.get(Slot.SHARED_STRIDE), I64(LANES * LANE_BYTES))
        self._clear(Slot.SHARED_AT, size)
        if self.options.local_bytes:
            self._clear(Slot.LOCAL_AT, self._local_bytes())

    def _local_bytes(self) -> Value:
        """Returns the bytes of local memory of all warps of a thread block, an i64."""
        return self.b.mul(self.env.get(Slot.WARPS), I64(local_stride(self.options.local_bytes)))

    def _clear(self, slot: Slot, size: Value) -> None:
        """Sets `size` bytes from the host address in an environment's slot to zero; nothing if
        `size` is 0.
        """
        at = self.env.pointer(slot)
        # A `memset` of 0 bytes at an untouched page takes AVX-512 code over 100 ns.
        with self.b.if_then(self.b.icmp_unsigned("!=", size, I64(0))):
            self.lanes.intrinsic("llvm.memset.p0.i64", ir.VoidType(), [at, I8(0), size, I1(0)])

    def retire(self, start: Value, end: Value) -> None:
        """Emits the end of pending asynchronous copies of thread blocks whose shared memory lies
        between two host addresses (i64): `retire_copies` completes or drops them. Emits nothing if
        copies cannot be late; `prepare_schedule` must have been called."""
        if self.options.delays:
            memory = self.b.inttoptr(I64(ORIGIN), PTR)
            lists = self.env.pointer(Slot.QUEUE_AT), self.env.pointer(Slot.HELD_AT)
            call(self.lanes, "retire_copies", memory, *lists, self.work, start, end)

    def check_freed(self, start: Value, count: Value) -> None:
        """Emits the return of FAULT (STILL_ALLOCATED) from `run` if one of `count` (an i64) thread
        blocks has ended without freeing its tensor memory; the shared memory of the first begins at
        `start`, the others follow. The fault names the block and the instruction that allocated.
        Emits nothing if blocks have no tensor memory."""
        if not self.options.tensor_memory:
            return
        b, memory = self.b, self.b.inttoptr(I64(ORIGIN), PTR)
        block_address = self.env.at(Slot.FAULT_ADDRESS)
        stride = self.env.get(Slot.SHARED_STRIDE)
        unfreed = call(self.lanes, "find_unfreed", memory, start, stride, count, block_address)
        # `find_unfreed` returns 1 plus the number of the allocating instruction, and stores the
        # block.
        with b.if_then(b.icmp_unsigned("!=", unfreed, I64(0)), likely=False):
            record = {
                Slot.BLOCK: b.load(block_address, typ=I64),
                Slot.FAULT_KIND: I64(STILL_ALLOCATED),
                Slot.FAULT_INSTRUCTION: b.sub(unfreed, I64(1)),
                Slot.FAULT_WARP: I64(0),
                Slot.FAULT_LANE: I64(0),
                Slot.FAULT_SIZE: I64(0),
                Slot.FAULT_SPACE: I64(SPACE_CODES[Space.SHARED]),
            }
            for slot, value in record.items():
                b.store(value, self.env.at(slot))
            b.ret(I64(int(Status.FAULT)))

    def report_begin(self) -> None:
        """Emits the event BLOCK_BEGIN of the current thread block, if the observer receives it."""
        if self.options.observes.block_begins:
            self._report(BLOCK_BEGIN)

    def report_end(self) -> None:
        """Emits the event BLOCK_END of the current thread block, if the observer receives it."""
        if self.options.observes.block_ends:
            self._report(BLOCK_END)

    def _report(self, kind: int) -> None:
        """Emits the call of the observer with an event of `kind` of the current thread block."""
        fields = {ObservedEvent.block: self.env.get(Slot.BLOCK)}
        call_observer(self.lanes, self.env.pointer(Slot.OBSERVER_AT), self._event, kind, fields)

    def make_current(self, plan: Value) -> None:
        """Makes the block that the scheduler has chosen (in `plan`) that of the environment, if it
        is another one or begins: its indices and the addresses of its states, contexts and memory,
        which its slot for resident blocks gives.

        A block that begins (`fresh`, which is cleared) gets the slot of one that has ended, whose
        tensor memory is checked and whose copies are retired; then the memory is cleared and the
        begin reported. `only_warp_order` becomes true, and BLOCKS_DONE the number of blocks
        begun."""
        b = self.b
        fresh = b.icmp_unsigned("!=", self.env.word(plan, Plan.fresh), I64(0))
        block = self.env.word(plan, Plan.current_block)
        differs = b.icmp_unsigned("!=", block, self.env.get(Slot.BLOCK))
        with b.if_then(b.or_(fresh, differs), likely=False):
            self.set_current(block)
            slot, warps = self.env.word(plan, Plan.slot), self.env.get(Slot.WARPS)
            stride = self.env.word(plan, Plan.table_stride)
            first_warp = b.mul(slot, warps)
            sizes = {
                Slot.STATES_AT: b.mul(first_warp, I64(8 * WarpState.WORDS)),
                Slot.CONTEXTS_AT: b.mul(b.shl(first_warp, I64(3)), stride),
                Slot.SHARED_AT: b.mul(slot, self.env.get(Slot.SHARED_STRIDE)),
                Slot.LOCAL_AT: b.mul(slot, self._local_bytes()),
            }
            for address_slot, offset in sizes.items():
                base = Slot[address_slot.name.replace("_AT", "_BASE")]
                b.store(b.add(self.env.get(base), offset), self.env.at(address_slot))
            with b.if_then(fresh):
                start = self.env.get(Slot.SHARED_AT)
                self.check_freed(start, I64(1))
                self.retire(start, b.add(start, self.env.get(Slot.SHARED_STRIDE)))
                b.store(I64(0), self.lanes.slot(plan, Plan.fresh))
                b.store(I1(1), self.only_warp_order)
                self.clear_memory()
                self.report_begin()
                at = self.env.at(Slot.BLOCKS_DONE)
                b.store(self.env.word(plan, Plan.next_block), at)
