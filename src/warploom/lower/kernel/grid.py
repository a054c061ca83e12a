"""Emits `run`, the function of a kernel that the host calls, which runs the warps of a launch in
the order of the schedule.

The warps of a kernel without barriers and loops that may wait end in one call; then `run` is a loop
over thread blocks, each of which is one call of `warp` that runs its warps in order. Otherwise
`run` is a loop over turns:

    turn:  warp = choose_warp(...)           the scheduler, a helper (`helpers.turns`)
           make its thread block current
           status = warp(...)                until a barrier, the end of its turn, or its end
           end_turn(warp, status)            records why it returned

If all warps of a block are at the same point and the policy does not interfere, a turn runs all of
them in warp order, in one call (`lower.control.warp_order`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from warploom.abi.environment import Slot, Status
from warploom.helpers.calls import call
from warploom.llvm.lanes import I1, I64, PTR, Value
from warploom.lower.kernel.blocks import BlockOptions, GridBlocks
from warploom.lower.kernel.environment import GridEnvironment
from warploom.simt import schedule_layout
from warploom.simt.schedule_layout import Plan, WarpState
from warploom.simt.warp_table import NONE

FURTHEST = (1 << 63) - 1
"""An address above all others, signed."""

RUN_SIGNATURE = ir.FunctionType(I64, [PTR, PTR, PTR, I64, I64])
"""The type of `status = run(environment, counts, records, first block, one past the last)`. A
scheduled launch reads its thread blocks from the plan, and returns PAUSED if it is to be called
again."""


@dataclass(frozen=True)
class GridOptions:
    """Holds the options of `run`. `suspends`: warps may return before they end. `sites`: the table
    of barriers at which warps in warp order wait, None without warp order. `slices`: turns run in
    slices, between which the launch can pause (`Slot.SLICE`). `lasting_bytes`: the bytes of a
    warp's context that are live between turns."""

    suspends: bool
    sites: Value | None
    slices: bool
    lasting_bytes: int


class GridFunction:
    """Emits `run`, which the host calls, into a module that has the function `warp`. A turn is what
    a warp runs before the scheduler chooses again. In its methods, `plan` and `slots` are pointers
    to the schedule's arrays (`simt.schedule_layout`), `turn` is the LLVM block of the loop's next
    turn."""

    def __init__(self, module: ir.Module, options: GridOptions, blocks: BlockOptions) -> None:
        """Declares `run`, whose arguments `first_block` and `end_block` (exclusive) delimit the
        thread blocks of an unscheduled launch.
        """
        self.module, self.options = module, options
        self.function = ir.Function(module, RUN_SIGNATURE, "run")
        for argument in self.function.args[:3]:
            argument.add_attribute("noalias")
        _, self.counts, self.records, self.first_block, self.end_block = self.function.args
        self.env = GridEnvironment(module, self.function)
        self.lanes, self.b = self.env.lanes, self.env.b
        self.blocks = GridBlocks(self.env, blocks)

    def emit(self) -> None:
        """Emits the whole function: scheduled if warps may suspend, else block after block."""
        if self.options.suspends:
            self._emit_scheduled()
        else:
            self._emit_in_order()

    def _must_pause(self) -> Value:
        """Returns whether the launch has to return PAUSED to the host, an i1: the instructions left
        (BUDGET) have fallen below PAUSE_AT.
        """
        return self.b.icmp_signed("<", self.env.get(Slot.BUDGET), self.env.get(Slot.PAUSE_AT))

    def _run(self, warp: Value) -> Value:
        """Emits a call of `warp` for a warp (an i64) of the current block, and the return of its
        status from `run` if that is FAULT or LIMIT, which end the launch (`Status`: FAULT and the
        values after it). Returns the status (an i64), one of those of `simt.scheduling`."""
        contexts = self.env.pointer(Slot.CONTEXTS_AT)
        arguments = [self.env.environment, self.counts, self.records, contexts, warp]
        status = self.b.call(self.module.get_global("warp"), arguments)
        self.env.return_if(self.b.icmp_signed(">=", status, I64(int(Status.FAULT))), status)
        return status

    # ---- without a schedule ---------------------------------------------------------------------

    def _emit_in_order(self) -> None:
        """Emits the loop over the thread blocks of a launch without a schedule, from the argument
        `first_block` of `run` up to `end_block` (exclusive). For each, memory is cleared, one call
        of `warp` runs all its warps to their end (TOGETHER is 1), its tensor memory is checked, and
        BLOCKS_DONE is incremented. After the loop, `run` returns ENDED. An observer gets the begin
        and the end of each."""
        b = self.b
        b.store(I64(1), self.env.at(Slot.TOGETHER))
        thread_block, end_iteration, done = self._loop("block", self.first_block, self.end_block)
        self.blocks.set_current(thread_block)
        self.blocks.clear_memory()
        self.blocks.report_begin()
        self._run(I64(0))
        self.blocks.report_end()
        self.blocks.check_freed(self.env.get(Slot.SHARED_AT), I64(1))
        self.lanes.add_to(self.env.at(Slot.BLOCKS_DONE), I64(1))
        end_iteration()
        b.position_at_end(done)
        b.ret(I64(int(Status.ENDED)))

    def _loop(
        self, name: str, start: Value, end: Value
    ) -> tuple[Value, Callable[[], None], ir.Block]:
        """Begins a loop `for i in range(start, end)` (i64), in whose body code continues. Returns
        i, a function that emits the end of the body, and the LLVM block after the loop."""
        b = self.b
        head, body, done = (self.env.append(f"{name}.{part}") for part in ("head", "body", "done"))
        before = b.block
        b.branch(head)
        b.position_at_end(head)
        index = b.phi(I64)
        index.add_incoming(start, before)
        b.cbranch(b.icmp_signed("<", index, end), body, done)
        b.position_at_end(body)

        def end_iteration() -> None:
            """Emits the increment of the index, and the branch to the loop's head."""
            index.add_incoming(b.add(index, I64(1)), b.block)
            b.branch(head)

        return index, end_iteration, done

    # ---- by the schedule ------------------------------------------------------------------------

    def _emit_scheduled(self) -> None:
        """Emits the loop over turns of a scheduled launch: the scheduler chooses a warp, `warp`
        runs it until its turn ends or it waits (in warp order all warps of its block, if possible),
        `end_turn` records why. The first call of a launch begins the schedule (`begin_launch`).
        `run` returns PAUSED, to be called again, if the budget is below PAUSE_AT before a turn;
        DEADLOCK if no warp can run; or, after all blocks, ENDED, once late copies are completed or
        dropped and tensor memory is found to be freed."""
        b = self.b
        plan, slots = self.env.pointer(Slot.PLAN_AT), self.env.pointer(Slot.SLOTS_AT)
        states, contexts = self.env.pointer(Slot.STATES_BASE), self.env.pointer(Slot.CONTEXTS_BASE)
        self.blocks.prepare_schedule()
        # BLOCK is -1 at the first call of a launch; `run` is called again after a pause.
        with b.if_then(b.icmp_signed("==", self.env.get(Slot.BLOCK), I64(-1))):
            call(self.lanes, "begin_launch", plan, slots)
        b.store(I1(0), self.blocks.only_warp_order)
        turn, ended = self.env.append("turn"), self.env.append("ended")
        b.branch(turn)
        b.position_at_end(turn)
        self.env.return_if(self._must_pause(), I64(int(Status.PAUSED)))
        if self.options.slices:
            self._continue_turn(plan, turn)
        warp = call(self.lanes, "choose_warp", plan, slots, states, contexts)
        is_deadlock = b.icmp_signed("==", warp, I64(schedule_layout.DEADLOCK))
        self.env.return_if(is_deadlock, I64(int(Status.DEADLOCK)))
        chosen = self.env.append("going")
        b.cbranch(b.icmp_signed("==", warp, I64(schedule_layout.DONE)), ended, chosen)
        b.position_at_end(chosen)
        self.blocks.make_current(plan)
        if self.options.sites is not None:
            self._warp_order(plan, slots, warp, turn)
        if self.options.slices:
            self._run_slice(plan, warp, self.env.word(plan, Plan.length), turn)
        else:
            self._end_turn(plan, warp, self._run_turn(plan, warp))
            b.branch(turn)
        b.position_at_end(ended)
        self.blocks.retire(I64(0), I64(FURTHEST))
        self.blocks.check_freed(self.env.get(Slot.SHARED_BASE), self.env.word(plan, Plan.slots))
        b.ret(I64(int(Status.ENDED)))

    def _continue_turn(self, plan: Value, turn: ir.Block) -> None:
        """Emits the next slice of the turn of warp IN_TURN - 1, if IN_TURN is not 0: an interrupted
        turn is continued before another warp is chosen.
        """
        b, inside = self.b, self.env.get(Slot.IN_TURN)
        with b.if_then(b.icmp_unsigned("!=", inside, I64(0)), likely=False):
            warp = b.sub(inside, I64(1))
            self._run_slice(plan, warp, self.env.get(Slot.TURN_LEFT), turn)

    def _run_slice(self, plan: Value, warp: Value, left: Value, turn: ir.Block) -> None:
        """Emits a slice of a warp's turn: at most SLICE of its `left` instructions (an i64), then
        the branch to `turn`. If it returns TURN_END only because the slice is used up, TURN_LEFT
        and IN_TURN (the warp's number plus 1) store the rest for `_continue_turn`; otherwise (it
        waits, has ended, has used up the turn, or has polled an incomplete mbarrier) its turn ends
        (`_end_turn`)."""
        b, most = self.b, self.env.get(Slot.SLICE)
        status = self._run_turn(plan, warp, b.select(b.icmp_signed("<", left, most), left, most))
        left = b.sub(left, b.sub(self.env.get(Slot.SLICE_FUEL), self.env.get(Slot.FUEL)))
        b.store(left, self.env.at(Slot.TURN_LEFT))
        b.store(b.add(warp, I64(1)), self.env.at(Slot.IN_TURN))
        paused = b.icmp_unsigned("==", status, I64(int(Status.TURN_END)))
        paused = b.and_(paused, b.icmp_signed(">=", left, I64(0)))
        waited = b.icmp_unsigned("!=", self.env.get(Slot.FAILED_WAIT), I64(0))
        paused = b.and_(paused, b.not_(waited))
        with b.if_then(b.not_(paused)):
            b.store(I64(0), self.env.at(Slot.IN_TURN))
            self._end_turn(plan, warp, status)
        b.branch(turn)

    def _warp_order(self, plan: Value, slots: Value, warp: Value, turn: ir.Block) -> None:
        """Emits the run of all warps of the block in warp order, from one barrier to others, if
        possible, and then branches to `turn`; if `warp_order_start` returns NONE, code falls
        through. `end_warp_order` stores the warps' states; a warp that stopped before a barrier
        ends its turn (`_end_turn`).

        A block that runs in warp order from its begin to its end is followed by the next block at
        once, without a call of the scheduler, unless the launch has to pause."""
        b, states = self.b, self.env.pointer(Slot.STATES_AT)
        start = call(self.lanes, "warp_order_start", plan, states, warp)
        names = ("warp_order", "warp_order.over", "warp_order.block", "warp_order.left", "alone")
        warp_order, over, next_block, left, separately = (self.env.append(name) for name in names)
        before = b.block
        b.cbranch(b.icmp_signed("==", start, I64(NONE)), separately, warp_order)
        b.position_at_end(warp_order)
        first_warp = b.phi(I64)
        first_warp.add_incoming(warp, before)
        b.store(I64(1), self.env.at(Slot.TOGETHER))
        b.store(I64(NONE), self.env.at(Slot.OWN_SITE))
        status = self._run_turn(plan, first_warp)
        b.store(I64(0), self.env.at(Slot.TOGETHER))
        stopped = self.env.get(Slot.WARP)
        # All warps have run if the number at return is past the last; none waits if the block has
        # ended.
        whole = b.icmp_unsigned("==", stopped, self.env.get(Slot.WARPS))
        none_waits = b.icmp_signed("==", self.env.get(Slot.SITE), I64(NONE))
        ends = b.and_(b.and_(whole, none_waits), b.load(self.blocks.only_warp_order, typ=I1))
        b.cbranch(ends, next_block, over)
        b.position_at_end(next_block)
        with b.if_then(self._must_pause(), likely=False):
            b.branch(turn)
        follows = call(
            self.lanes, "next_in_warp_order", plan, slots, self.env.pointer(Slot.STATES_AT)
        )
        with b.if_then(b.icmp_unsigned("==", follows, I64(0)), likely=False):
            b.branch(turn)
        self.blocks.make_current(plan)
        first_warp.add_incoming(I64(0), b.block)
        b.branch(warp_order)
        b.position_at_end(over)
        b.store(I1(0), self.blocks.only_warp_order)
        block = self.env.pointer(Slot.STATES_AT), self.env.pointer(Slot.CONTEXTS_AT)
        arguments = plan, self.env.environment, *block, self.options.sites
        call(self.lanes, "end_warp_order", *arguments)
        # `end_warp_order` has written all states but that of a warp which stopped within its
        # region, and not at the header of a loop, where warps meet.
        is_at_site = b.icmp_signed("!=", self.env.get(Slot.OWN_SITE), I64(NONE))
        met = b.and_(is_at_site, b.icmp_signed("==", status, I64(int(Status.TURN_END))))
        b.cbranch(b.or_(whole, met), turn, left)
        b.position_at_end(left)
        self._end_turn(plan, stopped, status)
        b.branch(turn)
        b.position_at_end(separately)

    def _end_turn(self, plan: Value, warp: Value, status: Value) -> None:
        """Emits the call `end_turn`, which records in the schedule why a warp of the current block
        has returned (`status`); reports the end of a block when its last warp has ended, to an
        observer."""
        index = self.b.mul(warp, self.env.word(plan, Plan.table_stride))
        context = self.lanes.slot(self.env.pointer(Slot.CONTEXTS_AT), index)
        words = I64(self.options.lasting_bytes // 8)
        call(self.lanes, "end_turn", plan, self.env.state(warp), context, status, words)
        if self.blocks.options.observes.block_ends:
            with self.b.if_then(self.b.icmp_unsigned("==", status, I64(int(Status.ENDED)))):
                block = self.env.pointer(Slot.STATES_AT), self.env.get(Slot.WARPS)
                ended = call(self.lanes, "has_block_ended", *block)
                with self.b.if_then(self.b.icmp_unsigned("!=", ended, I64(0))):
                    self.blocks.report_end()

    def _run_turn(self, plan: Value, warp: Value, instructions: Value | None = None) -> Value:
        """Emits a turn of a warp, of as many instructions as the plan's LENGTH, or a slice of
        `instructions`, a number also stored in SLICE_FUEL; subtracts the used ones from the budget
        of the launch and adds them to the warp's clock (ISSUED). Returns the status of `warp`;
        `run` returns LIMIT if the budget falls below 0."""
        b = self.b
        length = self.env.word(plan, Plan.length) if instructions is None else instructions
        b.store(length, self.env.at(Slot.FUEL))
        if instructions is not None:
            b.store(length, self.env.at(Slot.SLICE_FUEL))
        status = self._run(warp)
        used = b.sub(length, self.env.get(Slot.FUEL))
        self.lanes.add_to(self.lanes.slot(self.env.state(warp), WarpState.issued), used)
        left = b.sub(self.env.get(Slot.BUDGET), used)
        b.store(left, self.env.at(Slot.BUDGET))
        self.env.return_if(b.icmp_signed("<", left, I64(0)), I64(int(Status.LIMIT)))
        return status
