"""Emits the barriers of a thread block: arrival, waiting, and the results of counting barriers (PTX
ISA, "Parallel Synchronization and Communication: bar, barrier").

A barrier ends a basic block; a counting one (`bar.red`) begins one. In code for all lanes together,
`bar.sync 0` saves the live registers and leaves the warp function with `Status.BARRIER`; the call
after that resumes in the next block. Where all warps of a block run in order, the wait is a jump to
the next warp instead (`lower.control.warp_order`).

Number and thread count of a barrier are those of the lowest lane that arrives. `simt.scheduling`
decides when waiting warps continue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from warploom.abi.environment import Status
from warploom.core.types import PRED, U32, ScalarType
from warploom.isa.instruction import Immediate, Instruction
from warploom.isa.kinds import OpKind
from warploom.isa.spec import Unit
from warploom.llvm.lanes import I1, I32, I64, LANES, Value
from warploom.lower.control.clusters import ClusterCode
from warploom.lower.control.control import ControlFlow
from warploom.lower.frame.blocks import Copy
from warploom.lower.frame.operands import Operands
from warploom.program.cfg import ProgramBlock
from warploom.program.uses import is_reducing_barrier, sources
from warploom.simt.register_pool import REQUESTED_AT
from warploom.simt.schedule_layout import (
    BARRIERS,
    CLUSTER_BARRIER,
    GROUP_WARPS,
    REGISTER_WAIT,
    WarpState,
)
from warploom.simt.warp_table import WarpTable

BAD_BARRIER = 7
"""The kind of a fault at an invalid barrier (`machine.faults.fault_errors`)."""


class ArrivalCode(Protocol):
    """Emits code that records lanes which arrive at a barrier: for an observer, or for the race
    detector."""

    def barrier(self, index: int, on: Value, number: Value, threads: Value) -> None:
        """Emits the record of the arrival of lanes `on` at barrier `number` of `threads` threads
        (0: all), at instruction `index`."""
        ...


class BarrierCode:
    """Emits the barriers of one warp function; `WarpFunction` calls it at the begin and the end of
    basic blocks. `arrivals` emit the records that observers and the race detector need."""

    def __init__(
        self,
        control: ControlFlow,
        operands: Operands,
        arrivals: Sequence[ArrivalCode],
        clusters: ClusterCode,
    ) -> None:
        """Stores the emitters that barriers use; `arrivals` record the lanes that arrive."""
        self.clusters, self.arrivals = clusters, arrivals
        self.control, self.operands = control, operands
        self.frame, self.lanes, self.b = control.frame, control.lanes, control.b

    def ends(self, instruction: Instruction) -> bool:
        """Returns true if the instruction is a barrier that ends its basic block: all but those
        that return a count or predicate (`bar.red`)."""
        return instruction.operation.spec.unit is Unit.BARRIER and not is_reducing_barrier(
            instruction
        )

    def end(
        self,
        copy: Copy,
        block: ProgramBlock,
        index: int,
        instruction: Instruction,
        guard: Value | None,
    ) -> None:
        """Emits the barrier at the end of a basic block. If its guard holds in no active lane, code
        jumps to the next block. Otherwise an arrival alone (`arrive`) leaves with ARRIVED_ONLY, to
        continue at once. A wait suspends the active lanes in the divergent copy; in code of one
        copy the warp as a whole, if its lanes are together and the number is plain
        (`_plain_number`). In a region version it switches to the next warp if the number is plain.
        In all other cases it suspends the warp as a whole. The barrier of a cluster is
        `_end_in_cluster`."""
        frame, following = self.frame, block.successors[-1]
        on = frame.active.mask()
        if guard is not None:
            on = self.b.and_(on, guard)
            waits, passes = (frame.function.append_basic_block(n) for n in ("wait", "pass"))
            self.b.cbranch(self.lanes.any(on), waits, passes)
            with self.b.goto_block(passes):
                self.control.edges.jump(copy, following, block.index)
            self.b.position_at_end(waits)
        if instruction.operation.kind is OpKind.CLUSTER_BARRIER:
            self._end_in_cluster(copy, block, index, instruction, on)
            return
        if instruction.operation.kind is OpKind.REGISTER_WAIT:
            self._end_with_registers(copy, block, index)
            return
        number, threads = self._operands(index, instruction, on)
        if "arrive" in instruction.operation.modifiers:
            self._store_operands(number, threads)
            self.control.suspension.suspend(Status.ARRIVED_ONLY, following)
        elif copy is Copy.DIVERGENT:
            # Code of one copy has no convergent copy that stands for lanes being together, and
            # tests it.
            if frame.variant.has_one_copy and _plain_number(instruction) is not None:
                with self.b.if_then(self.control.simt_stack.are_together(), likely=True):
                    self._wait_together(block, index, instruction, number, threads)
            self._wait(index, number, threads, following)
        elif copy is Copy.REGION and _plain_number(instruction) is not None:
            self.control.suspension.wait_in_region(block.index)
        else:
            self._wait_together(block, index, instruction, number, threads)

    def _wait_together(
        self,
        block: ProgramBlock,
        index: int,
        instruction: Instruction,
        number: Value,
        threads: Value,
    ) -> None:
        """Emits the wait of all living lanes together at barrier `number`, for `threads` threads
        (0: all), after saving the warp. A call in warp order then runs the next warp, if the number
        is plain (`_plain_number`); any other call stores the barrier in the warp's state and leaves
        with BARRIER."""
        self.control.suspension.wait_together(block.index, index, _plain_number(instruction))
        self._store_barrier(index, number, threads)
        self.frame.leave(Status.BARRIER)

    def _end_in_cluster(
        self, copy: Copy, block: ProgramBlock, index: int, instruction: Instruction, on: Value
    ) -> None:
        """Emits the cluster's barrier at the end of a basic block. An arrival adds the lanes to
        `cluster_arrived` in the warp's state and jumps to the next block. So does a wait that every
        thread of the cluster has arrived for (without a store); else (`must_wait`) its lanes leave
        the function as waiting (`_wait_if`). Both are first reported to observers and the detector
        as arrivals."""
        b, frame, following = self.b, self.frame, block.successors[-1]
        self._record_arrival(index, on, I64(CLUSTER_BARRIER), I64(0))
        if "arrive" in instruction.operation.modifiers:
            at = frame.context.state(WarpState.cluster_arrived)
            b.store(b.or_(frame.get(at), b.zext(self.lanes.bits(on), I64)), at)
            self.control.edges.jump(copy, following, block.index)
            return
        self._wait_if(copy, block, index, self.clusters.must_wait(on), I64(CLUSTER_BARRIER), I64(0))

    def _end_with_registers(self, copy: Copy, block: ProgramBlock, index: int) -> None:
        """Emits the wait for registers at the end of a basic block, which ends at once for a warp
        whose request could be met (`simt.register_pool`)."""
        registers = self.frame.get(self.frame.context.state(WarpState.registers))
        requested = self.b.lshr(registers, I64(REQUESTED_AT))
        must_wait = self.b.icmp_unsigned("!=", requested, I64(0))
        self._wait_if(copy, block, index, must_wait, I64(REGISTER_WAIT), requested)

    def _wait_if(
        self,
        copy: Copy,
        block: ProgramBlock,
        index: int,
        must_wait: Value,
        number: Value,
        threads: Value,
    ) -> None:
        """Emits the end of a basic block at which lanes leave the function as waiting at barrier
        `number` if `must_wait` (an i1) holds: the active ones in the divergent copy, else the whole
        warp. Otherwise code jumps to the next block. `threads` are those that the barrier awaits
        (0: all), or the registers per thread that a warp awaits."""
        b, frame, following = self.b, self.frame, block.successors[-1]
        waits, passes = (frame.function.append_basic_block(n) for n in ("wait", "pass"))
        b.cbranch(must_wait, waits, passes)
        with b.goto_block(passes):
            self.control.edges.jump(copy, following, block.index)
        b.position_at_end(waits)
        if copy is Copy.DIVERGENT:
            self._wait(index, number, threads, following)
        else:
            self.control.suspension.wait_together(block.index, index, None)
            self._store_barrier(index, number, threads)
            frame.leave(Status.BARRIER)

    def begin(self, block: ProgramBlock) -> None:
        """Emits the wait of a barrier that returns a count (`bar.red`), which begins a basic block:
        stores in VOTE 1 plus the number of executing lanes whose predicate is true (for `and`:
        false), and suspends at this same block. Emits nothing for another instruction; at run time
        nothing happens without executing lanes, or if they resume after the wait (`sync_done`,
        which is cleared)."""
        instruction = self.frame.program.instructions[block.start]
        if not is_reducing_barrier(instruction):
            return
        b, frame = self.b, self.frame
        passed = frame.get(frame.context.table(WarpTable.sync_done))
        b.store(I64(0), frame.context.table(WarpTable.sync_done))
        on = self.operands.execution_mask(instruction)
        # `sync_done` is set when the lanes resume here after the wait: they must not wait again.
        must_wait = b.and_(b.icmp_unsigned("==", passed, I64(0)), self.lanes.any(on))
        with b.if_then(must_wait):
            number, threads = self._operands(block.start, instruction, on)
            counted = self.operands.read(instruction.operands[-1], PRED)
            if instruction.operation.modifiers["op"] == "and":
                counted = b.not_(counted)
            lanes = self.lanes.popcount(self.lanes.bits(b.and_(counted, on)))
            # Plus 1: 0 stands for lanes that wait in no `bar.red`, whose votes the scheduler does
            # not count (`simt.block_barriers`).
            b.store(b.add(lanes, I64(1)), frame.context.table(WarpTable.vote))
            self._wait(block.start, number, threads, block.index)

    def count_result(self, instruction: Instruction) -> tuple[Value, ScalarType]:
        """Returns the value and type of a counting barrier's result, from the number of counted
        threads of the block that `vote` holds after the wait (plus 1), and resets `vote`. The value
        has 32 equal lanes: that number (`popc`, a U32), or a predicate: true if it is 0 (`and`,
        which counts false predicates) or above 0 (`or`)."""
        b, frame = self.b, self.frame
        total = b.sub(frame.get(frame.context.table(WarpTable.vote)), I64(1))
        b.store(I64(0), frame.context.table(WarpTable.vote))
        op = instruction.operation.modifiers["op"]
        if op == "popc":
            return self.lanes.splat(b.trunc(total, I32)), U32
        return self.lanes.splat(b.icmp_signed("==" if op == "and" else ">", total, I64(0))), PRED

    def _wait(self, index: int, number: Value, threads: Value, block: int) -> None:
        """Emits the exit that waits at a barrier and continues at basic block `block`: with
        SPLIT_BARRIER for the active lanes alone if threads are scheduled independently, else with
        BARRIER for the whole warp (before compute capability 7.0, where a barrier counts warps)."""
        if self.frame.variant.independent:
            self.frame.context.set_state(WarpState.instruction, I64(index))
            self._store_operands(number, threads)
            self.control.suspension.suspend(Status.SPLIT_BARRIER, block)
        else:
            self._store_barrier(index, number, threads)
            self.control.suspension.suspend(Status.BARRIER, block)

    def _store_barrier(self, index: int, number: Value, threads: Value) -> None:
        """Emits the stores, in the warp's state, of the instruction, number and thread count of the
        barrier at which the warp as a whole waits."""
        words = {
            WarpState.instruction: I64(index),
            WarpState.barrier: number,
            WarpState.barrier_threads: threads,
        }
        for word, value in words.items():
            self.frame.context.set_state(word, value)

    def _store_operands(self, number: Value, threads: Value) -> None:
        """Emits the stores, in the warp's table, of the number and thread count of the barrier at
        which the running split (the lanes that run together) arrives or waits."""
        self.b.store(number, self.frame.context.table(WarpTable.argument))
        self.b.store(threads, self.frame.context.table(WarpTable.argument_2))

    def _operands(self, index: int, instruction: Instruction, on: Value) -> tuple[Value, Value]:
        """Returns the barrier's number and the number of threads that it waits for, 0 for all, from
        the lowest lane of `on`; checks both (`_check`) and records the arrival. The barrier of a
        warp group (WARP_GROUP_BARRIER) has the number plus that of the group (4 warps each),
        unchecked."""
        b = self.b
        barrier_operands = sources(instruction)[: -1 if is_reducing_barrier(instruction) else None]
        number, *count = (self.operands.uniform(operand, on) for operand in barrier_operands)
        threads = count[0] if count else I64(0)
        if instruction.operation.kind is OpKind.WARP_GROUP_BARRIER:
            number = b.add(number, b.udiv(self.frame.warp, I64(GROUP_WARPS)))
        else:
            self._check(index, on, number, threads)
        self._record_arrival(index, on, number, threads)
        return number, threads

    def _record_arrival(self, index: int, on: Value, number: Value, threads: Value) -> None:
        """Emits, for all of `arrivals`, the records that the lanes `on` arrive at barrier `number`,
        which awaits `threads` threads (0: all)."""
        for code in self.arrivals:
            code.barrier(index, on, number, threads)

    def _check(self, index: int, on: Value, number: Value, threads: Value) -> None:
        """Emits an unlikely branch to the fault BAD_BARRIER, taken if the barrier number does not
        exist (from BARRIERS on), or the thread count is not a multiple of 32 (0, all threads, is
        one). `number` and `threads` are i64, one for the whole warp; they are recorded as the
        fault's address and size, the lowest lane of `on` as its lane."""
        b = self.b
        unknown = b.icmp_unsigned(">=", number, I64(BARRIERS))
        uneven = b.icmp_unsigned("!=", b.and_(threads, I64(LANES - 1)), I64(0))
        with b.if_then(b.or_(unknown, uneven), likely=False):
            lowest = [self.lanes.bits(on), I1(0)]
            lane = self.lanes.intrinsic("llvm.cttz.i32", I32, lowest)
            self.frame.fault(BAD_BARRIER, index, lane, number, threads)


def _plain_number(instruction: Instruction) -> int | None:
    """Returns the constant number of an unguarded barrier that all threads of the block wait at:
    such a barrier can be waited for in warp order. None if the number is not constant or not valid,
    if there is a thread count, or if the barrier is guarded."""
    match instruction.guard, sources(instruction):
        case None, (Immediate(number),) if number < BARRIERS:
            return number
        case _:
            return None
