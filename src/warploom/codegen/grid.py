"""The function that runs a launch: takes the warps in the order of the schedule.

`run` is what the host calls. A kernel whose warps always end in one go needs no schedule: its
blocks run in order, and their warps too. Any other asks `choose_warp` who goes next and tells
`end_turn` why a warp came back.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from warploom.codegen.environment import SPACE_CODES, Slot, Status, local_stride
from warploom.codegen.folding import FoldingBuilder
from warploom.codegen.helper_calls import call
from warploom.codegen.lanes import I1, I8, I64, PTR, Lanes, Value
from warploom.codegen.observing import call_observer, event_room
from warploom.codegen.variant import Observing
from warploom.ptx.ir import Space
from warploom.rules import plan_words
from warploom.rules.observed import BLOCK_BEGIN, BLOCK_END, E_BLOCK
from warploom.rules.tensor_memory.checks import STILL_ALLOCATED
from warploom.rules.tensor_memory.words import LANE_BYTES, LANES
from warploom.rules.tensors.entries import ENTRY_WORDS, ORIGIN
from warploom.rules.warp_table import NONE

FURTHEST = (1 << 63) - 1
"""Beyond all addresses."""

RUN_SIGNATURE = ir.FunctionType(I64, [PTR, PTR, PTR, I64, I64])
"""`status = run(environment, counts, rows, first block, one past the last)`; a scheduled launch
takes its blocks from the plan, and comes back PAUSED where it is to be called again."""


class GridFunction:
    """Emits `run` into a module that has `warp`. `delays`: asynchronous copies may complete late;
    `slices`: turns are run in slices, between which the launch can pause (`Slot.SLICE`);
    `tensor_memory`: blocks have some; `lasting_bytes`: of a warp's context, those that say how far
    it is; `observes`: the events of which the code tells an observer."""

    def __init__(
        self,
        module: ir.Module,
        *,
        suspends: bool,
        sites: Value | None,
        local_bytes: int,
        delays: bool,
        slices: bool,
        tensor_memory: bool,
        lasting_bytes: int,
        observes: Observing,
    ) -> None:
        self.module, self.suspends, self.local_bytes = module, suspends, local_bytes
        self.sites, self.delays, self.slices = sites, delays, slices
        self.tensor_memory, self.lasting_bytes = tensor_memory, lasting_bytes
        self.observes = observes
        self.function = ir.Function(module, RUN_SIGNATURE, "run")
        for argument in self.function.args[:3]:
            argument.add_attribute("noalias")
        self.environment, self.counts, self.rows, self.first, self.last = self.function.args
        self.lanes = Lanes(module, FoldingBuilder(self._append("entry")))
        self.b = self.lanes.b
        if observes.block_begins or observes.block_ends:
            self._event = event_room(self.lanes)

    def emit(self) -> None:
        """Emit the whole function."""
        if self.suspends:
            self._scheduled()
        else:
            self._in_order()

    def _append(self, name: str) -> ir.Block:
        return self.function.append_basic_block(name)

    def _at(self, slot: Slot) -> Value:
        return self.lanes.slot(self.environment, int(slot))

    def _get(self, slot: Slot) -> Value:
        return self.b.load(self._at(slot), typ=I64)

    def _pointer(self, slot: Slot) -> Value:
        return self.b.inttoptr(self._get(slot), PTR)

    def _return_if(self, condition: Value, status: Value) -> None:
        with self.b.if_then(condition, likely=False):
            self.b.ret(status)

    def _is_due(self) -> Value:
        """Returns whether the host wants to look around."""
        return self.b.icmp_signed("<", self._get(Slot.BUDGET), self._get(Slot.PAUSE_AT))

    def _run(self, warp: Value) -> Value:
        """Run one warp; come back from `run` where it met with a fault."""
        contexts = self._pointer(Slot.CONTEXTS_AT)
        arguments = [self.environment, self.counts, self.rows, contexts, warp]
        status = self.b.call(self.module.get_global("warp"), arguments)
        self._return_if(self.b.icmp_signed(">=", status, I64(int(Status.FAULT))), status)
        return status

    # ---- without a schedule ---------------------------------------------------------------------

    def _in_order(self) -> None:
        b = self.b
        b.store(I64(1), self._at(Slot.TOGETHER))
        block, following, done = self._loop("block", self.first, self.last)
        self._name(block)
        self._clear_memory()
        self._tell_begin()
        self._run(I64(0))
        self._tell_end()
        self._check_freed(self._get(Slot.SHARED_AT), I64(1))
        self.lanes.add_to(self._at(Slot.BLOCKS_DONE), I64(1))
        following()
        b.position_at_end(done)
        b.ret(I64(int(Status.ENDED)))

    def _loop(
        self, name: str, first: Value, last: Value
    ) -> tuple[Value, Callable[[], None], ir.Block]:
        """Begin `for i in range(first, last)`: i, what ends the body, and the block after it."""
        b = self.b
        head, body, done = (self._append(f"{name}.{part}") for part in ("head", "body", "done"))
        before = b.block
        b.branch(head)
        b.position_at_end(head)
        index = b.phi(I64)
        index.add_incoming(first, before)
        b.cbranch(b.icmp_signed("<", index, last), body, done)
        b.position_at_end(body)

        def following() -> None:
            index.add_incoming(b.add(index, I64(1)), b.block)
            b.branch(head)

        return index, following, done

    def _name(self, block: Value) -> None:
        """Make a block the current one."""
        b = self.b
        b.store(block, self._at(Slot.BLOCK))
        across, down = self._get(Slot.NCTAID_X), self._get(Slot.NCTAID_Y)
        rest = b.udiv(block, across)
        b.store(b.urem(block, across), self._at(Slot.CTAID_X))
        b.store(b.urem(rest, down), self._at(Slot.CTAID_Y))
        b.store(b.udiv(rest, down), self._at(Slot.CTAID_Z))

    def _clear_memory(self) -> None:
        """Clear the memory that is a block's own: its contents are undefined, and zeros make runs
        repeatable."""
        size = self._get(Slot.SHARED_BYTES)
        if self.tensor_memory:
            # The state of tensor memory is behind it; columns are cleared when they are allocated.
            size = self.b.sub(self._get(Slot.SHARED_STRIDE), I64(LANES * LANE_BYTES))
        self._clear(Slot.SHARED_AT, size)
        if self.local_bytes:
            self._clear(Slot.LOCAL_AT, self._local_bytes())

    def _local_bytes(self) -> Value:
        return self.b.mul(self._get(Slot.WARPS), I64(local_stride(self.local_bytes)))

    def _clear(self, slot: Slot, size: Value) -> None:
        at = self._pointer(slot)
        # No byte at a page that nobody has touched costs a `memset` of AVX-512 over 100 ns.
        with self.b.if_then(self.b.icmp_unsigned("!=", size, I64(0))):
            self.lanes.intrinsic("llvm.memset.p0.i64", ir.VoidType(), [at, I8(0), size, I1(0)])

    # ---- by the schedule ------------------------------------------------------------------------

    def _scheduled(self) -> None:
        b = self.b
        plan, slots = self._pointer(Slot.PLAN_AT), self._pointer(Slot.SLOTS_AT)
        states, contexts = self._pointer(Slot.STATES_BASE), self._pointer(Slot.CONTEXTS_BASE)
        stride = b.lshr(self._get(Slot.CONTEXT_BYTES), I64(3))
        self.pure = self.lanes.alloca(I1)
        if self.delays:
            self.work = self.lanes.alloca(ir.ArrayType(I64, ENTRY_WORDS))
        with b.if_then(b.icmp_signed("==", self._get(Slot.BLOCK), I64(-1))):
            call(self.lanes, "begin_launch", plan, slots)
        b.store(I1(0), self.pure)
        turn, ended = self._append("turn"), self._append("ended")
        b.branch(turn)
        b.position_at_end(turn)
        self._return_if(self._is_due(), I64(int(Status.PAUSED)))
        if self.slices:
            self._go_on_in_turn(plan, stride, turn)
        warp = call(self.lanes, "choose_warp", plan, slots, states, contexts, stride)
        dead = b.icmp_signed("==", warp, I64(plan_words.DEADLOCK))
        self._return_if(dead, I64(int(Status.DEADLOCK)))
        going = self._append("going")
        b.cbranch(b.icmp_signed("==", warp, I64(plan_words.DONE)), ended, going)
        b.position_at_end(going)
        self._make_current(plan)
        if self.sites is not None:
            self._relay(plan, slots, stride, warp, turn)
        if self.slices:
            self._slice(plan, warp, self._word(plan, plan_words.LENGTH), stride, turn)
        else:
            self._end_turn(plan, warp, self._timed(plan, warp), stride)
            b.branch(turn)
        b.position_at_end(ended)
        self._retire(I64(0), I64(FURTHEST))
        self._check_freed(self._get(Slot.SHARED_BASE), self._word(plan, plan_words.SLOTS))
        b.ret(I64(int(Status.ENDED)))

    def _go_on_in_turn(self, plan: Value, stride: Value, turn: ir.Block) -> None:
        """Run the next slice of a turn that is not over, if there is one."""
        b, inside = self.b, self._get(Slot.IN_TURN)
        with b.if_then(b.icmp_unsigned("!=", inside, I64(0)), likely=False):
            warp = b.sub(inside, I64(1))
            self._slice(plan, warp, self._get(Slot.TURN_LEFT), stride, turn)

    def _slice(self, plan: Value, warp: Value, left: Value, stride: Value, turn: ir.Block) -> None:
        """Run a slice of a turn of which so much is left; then go to `turn`."""
        b, most = self.b, self._get(Slot.SLICE)
        status = self._timed(plan, warp, b.select(b.icmp_signed("<", left, most), left, most))
        left = b.sub(left, b.sub(self._get(Slot.GIVEN), self._get(Slot.FUEL)))
        b.store(left, self._at(Slot.TURN_LEFT))
        b.store(b.add(warp, I64(1)), self._at(Slot.IN_TURN))
        paused = b.icmp_unsigned("==", status, I64(int(Status.TURN_END)))
        paused = b.and_(paused, b.icmp_signed(">=", left, I64(0)))
        waited = b.icmp_unsigned("!=", self._get(Slot.FAILED_WAIT), I64(0))
        paused = b.and_(paused, b.not_(waited))
        with b.if_then(b.not_(paused)):
            b.store(I64(0), self._at(Slot.IN_TURN))
            self._end_turn(plan, warp, status, stride)
        b.branch(turn)

    def _retire(self, start: Value, end: Value) -> None:
        """Complete or forget the copies of blocks whose shared memory is in a stretch."""
        if self.delays:
            memory = self.b.inttoptr(I64(ORIGIN), PTR)
            lists = self._pointer(Slot.QUEUE_AT), self._pointer(Slot.HELD_AT)
            call(self.lanes, "retire_copies", memory, *lists, self.work, start, end)

    def _check_freed(self, start: Value, count: Value) -> None:
        """End the launch where one of so many blocks has ended and not freed its tensor memory;
        the shared memory of the first begins at `start`."""
        if not self.tensor_memory:
            return
        b, memory = self.b, self.b.inttoptr(I64(ORIGIN), PTR)
        block = self._at(Slot.FAULT_ADDRESS)
        stride = self._get(Slot.SHARED_STRIDE)
        found = call(self.lanes, "find_unfreed", memory, start, stride, count, block)
        with b.if_then(b.icmp_unsigned("!=", found, I64(0)), likely=False):
            record = {
                Slot.BLOCK: b.load(block, typ=I64),
                Slot.FAULT_KIND: I64(STILL_ALLOCATED),
                Slot.FAULT_INSTRUCTION: b.sub(found, I64(1)),
                Slot.FAULT_WARP: I64(0),
                Slot.FAULT_LANE: I64(0),
                Slot.FAULT_SIZE: I64(0),
                Slot.FAULT_SPACE: I64(SPACE_CODES[Space.SHARED]),
            }
            for slot, value in record.items():
                b.store(value, self._at(slot))
            b.ret(I64(int(Status.FAULT)))

    def _relay(self, plan: Value, slots: Value, stride: Value, warp: Value, turn: ir.Block) -> None:
        """Run the round in relay where that can be, then go on at `turn`; else go on here. While
        blocks end so, one follows the other."""
        b, states = self.b, self._pointer(Slot.STATES_AT)
        start = call(self.lanes, "relay_start", plan, states, warp)
        names = ("relay", "relay.over", "relay.block", "relay.left", "alone")
        relay, over, next_block, left, alone = (self._append(name) for name in names)
        before = b.block
        b.cbranch(b.icmp_signed("==", start, I64(NONE)), alone, relay)
        b.position_at_end(relay)
        first = b.phi(I64)
        first.add_incoming(warp, before)
        b.store(I64(1), self._at(Slot.TOGETHER))
        b.store(I64(NONE), self._at(Slot.OWN_SITE))
        status = self._timed(plan, first)
        b.store(I64(0), self._at(Slot.TOGETHER))
        stopped = self._get(Slot.WARP)
        whole = b.icmp_unsigned("==", stopped, self._get(Slot.WARPS))
        nobody_waits = b.icmp_signed("==", self._get(Slot.SITE), I64(NONE))
        ends = b.and_(b.and_(whole, nobody_waits), b.load(self.pure, typ=I1))
        b.cbranch(ends, next_block, over)
        b.position_at_end(next_block)
        with b.if_then(self._is_due(), likely=False):
            b.branch(turn)
        follows = call(self.lanes, "next_in_relay", plan, slots, self._pointer(Slot.STATES_AT))
        with b.if_then(b.icmp_unsigned("==", follows, I64(0)), likely=False):
            b.branch(turn)
        self._make_current(plan)
        first.add_incoming(I64(0), b.block)
        b.branch(relay)
        b.position_at_end(over)
        b.store(I1(0), self.pure)
        block = self._pointer(Slot.STATES_AT), self._pointer(Slot.CONTEXTS_AT)
        call(self.lanes, "end_relay", plan, self.environment, *block, self.sites, stride)
        b.cbranch(whole, turn, left)
        b.position_at_end(left)
        self._end_turn(plan, stopped, status, stride)
        b.branch(turn)
        b.position_at_end(alone)

    def _end_turn(self, plan: Value, warp: Value, status: Value, stride: Value) -> None:
        """Tell the schedule why a warp of the current block came back."""
        context = self.lanes.slot(self._pointer(Slot.CONTEXTS_AT), self.b.mul(warp, stride))
        words = I64(self.lasting_bytes // 8)
        call(self.lanes, "end_turn", plan, self._state(warp), context, status, words)
        if self.observes.block_ends:
            with self.b.if_then(self.b.icmp_unsigned("==", status, I64(int(Status.ENDED)))):
                block = self._pointer(Slot.STATES_AT), self._get(Slot.WARPS)
                ended = call(self.lanes, "has_block_ended", *block)
                with self.b.if_then(self.b.icmp_unsigned("!=", ended, I64(0))):
                    self._tell_end()

    def _tell_begin(self) -> None:
        """Tell the observer that the current block begins."""
        if self.observes.block_begins:
            self._tell(BLOCK_BEGIN)

    def _tell_end(self) -> None:
        """Tell the observer that the current block has ended."""
        if self.observes.block_ends:
            self._tell(BLOCK_END)

    def _tell(self, kind: int) -> None:
        """Tell the observer of an event of the current block."""
        given = {E_BLOCK: self._get(Slot.BLOCK)}
        call_observer(self.lanes, self._pointer(Slot.OBSERVER_AT), self._event, kind, given)

    def _state(self, warp: Value) -> Value:
        """Return the state of a warp of the current block."""
        index = self.b.mul(warp, I64(plan_words.STATE_WORDS))
        return self.lanes.slot(self._pointer(Slot.STATES_AT), index)

    def _word(self, plan: Value, word: int) -> Value:
        return self.b.load(self.lanes.slot(plan, word), typ=I64)

    def _make_current(self, plan: Value) -> None:
        """Point the environment at the current block, and clear its memory when it begins."""
        b = self.b
        fresh = b.icmp_unsigned("!=", self._word(plan, plan_words.FRESH), I64(0))
        block = self._word(plan, plan_words.CURRENT_BLOCK)
        other = b.icmp_unsigned("!=", block, self._get(Slot.BLOCK))
        with b.if_then(b.or_(fresh, other), likely=False):
            self._name(block)
            slot, warps = self._word(plan, plan_words.SLOT), self._get(Slot.WARPS)
            first = b.mul(slot, warps)
            sizes = {
                Slot.STATES_AT: b.mul(first, I64(8 * plan_words.STATE_WORDS)),
                Slot.CONTEXTS_AT: b.mul(first, self._get(Slot.CONTEXT_BYTES)),
                Slot.SHARED_AT: b.mul(slot, self._get(Slot.SHARED_STRIDE)),
                Slot.LOCAL_AT: b.mul(slot, self._local_bytes()),
            }
            for place, offset in sizes.items():
                base = Slot[place.name.replace("_AT", "_BASE")]
                b.store(b.add(self._get(base), offset), self._at(place))
            with b.if_then(fresh):
                start = self._get(Slot.SHARED_AT)
                self._check_freed(start, I64(1))
                self._retire(start, b.add(start, self._get(Slot.SHARED_STRIDE)))
                b.store(I64(0), self.lanes.slot(plan, plan_words.FRESH))
                b.store(I1(1), self.pure)
                self._clear_memory()
                self._tell_begin()
                at = self._at(Slot.BLOCKS_DONE)
                b.store(self._word(plan, plan_words.NEXT_BLOCK), at)

    def _timed(self, plan: Value, warp: Value, given: Value | None = None) -> Value:
        """Run one turn, or so many warp instructions of it; take what it used from the launch's
        budget, and add it to the warp's clock."""
        b = self.b
        length = self._word(plan, plan_words.LENGTH) if given is None else given
        b.store(length, self._at(Slot.FUEL))
        if given is not None:
            b.store(length, self._at(Slot.GIVEN))
        status = self._run(warp)
        used = b.sub(length, self._get(Slot.FUEL))
        self.lanes.add_to(self.lanes.slot(self._state(warp), plan_words.ISSUED), used)
        left = b.sub(self._get(Slot.BUDGET), used)
        b.store(left, self._at(Slot.BUDGET))
        self._return_if(b.icmp_signed("<", left, I64(0)), I64(int(Status.LIMIT)))
        return status
