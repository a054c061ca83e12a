"""The function that runs a range of blocks: sets each up, and serves its warps in turn.

`run` is what the host calls. Warps of a block run in the order of their numbers, each until it ends
or waits at a barrier; when none can go on, barriers that are full let theirs go, and it begins
again with the lowest.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from warploom.codegen.environment import Slot, State, Status
from warploom.codegen.helpers import call
from warploom.codegen.lanes import I8, I64, PTR, Lanes, Value
from warploom.codegen.memory import local_stride

RUN_SIGNATURE = ir.FunctionType(I64, [PTR, PTR, PTR, I64, I64])
"""`status = run(environment, counts, rows, first block, one past the last)`."""


class GridFunction:
    """Emits `run` into a module that has `warp`."""

    def __init__(self, module: ir.Module, *, suspends: bool, local_bytes: int) -> None:
        self.module, self.suspends, self.local_bytes = module, suspends, local_bytes
        self.function = ir.Function(module, RUN_SIGNATURE, "run")
        for argument in self.function.args[:3]:
            argument.add_attribute("noalias")
        self.environment, self.counts, self.rows, self.first, self.last = self.function.args
        self.lanes = Lanes(module, ir.IRBuilder(self._append("entry")))
        self.b = self.lanes.b

    def emit(self) -> None:
        """One pass over the blocks; returns at the first that did not end well."""
        b = self.b
        block, following, done = self._loop("block", self.first, self.last)
        self._set_up(block)
        if self.suspends:
            self._serve_in_turns()
        else:
            self._each_warp(self._run_warp)
        self.lanes.add_to(self._at(Slot.BLOCKS_DONE), I64(1))
        following()
        b.position_at_end(done)
        b.ret(I64(int(Status.ENDED)))

    def _append(self, name: str) -> ir.Block:
        return self.function.append_basic_block(name)

    def _at(self, slot: Slot) -> Value:
        return self.lanes.slot(self.environment, int(slot))

    def _get(self, slot: Slot) -> Value:
        return self.b.load(self._at(slot), typ=I64)

    def _pointer(self, slot: Slot) -> Value:
        return self.b.inttoptr(self._get(slot), PTR)

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

    def _set_up(self, block: Value) -> None:
        """Name the block, and clear the memory that is its own (its contents are undefined; zeros
        make runs repeatable)."""
        b = self.b
        b.store(block, self._at(Slot.BLOCK))
        across, down = self._get(Slot.NCTAID_X), self._get(Slot.NCTAID_Y)
        rest = b.udiv(block, across)
        b.store(b.urem(block, across), self._at(Slot.CTAID_X))
        b.store(b.urem(rest, down), self._at(Slot.CTAID_Y))
        b.store(b.udiv(rest, down), self._at(Slot.CTAID_Z))
        self._clear(Slot.SHARED_AT, self._get(Slot.SHARED_BYTES))
        warps = self._get(Slot.WARPS)
        if self.local_bytes:
            self._clear(Slot.LOCAL_AT, b.mul(warps, I64(local_stride(self.local_bytes))))
        if self.suspends:
            self._clear(Slot.STATES_AT, b.mul(warps, I64(8 * len(State))))

    def _clear(self, slot: Slot, size: Value) -> None:
        at, never = self._pointer(slot), ir.Constant(ir.IntType(1), 0)
        self.lanes.intrinsic("llvm.memset.p0.i64", ir.VoidType(), [at, I8(0), size, never])

    def _each_warp(self, body: Callable[[Value], object]) -> None:
        warp, following, done = self._loop("warp", I64(0), self._get(Slot.WARPS))
        body(warp)
        following()
        self.b.position_at_end(done)

    def _run_warp(self, warp: Value) -> Value:
        """Run one warp; come back from `run` where it met with anything but an end or a barrier."""
        b = self.b
        self._refuel()
        arguments = [self.environment, self.counts, self.rows, warp]
        status = b.call(self.module.get_global("warp"), arguments)
        with b.if_then(b.icmp_signed(">", status, I64(int(Status.BARRIER))), likely=False):
            b.ret(status)
        return status

    def _refuel(self) -> None:
        spent = self.b.icmp_signed("<", self._get(Slot.FUEL), I64(0))
        with self.b.if_then(spent, likely=False):
            status = call(self.lanes, "poll", self.environment)
            with self.b.if_then(self.b.icmp_unsigned("!=", status, I64(0)), likely=False):
                self.b.ret(status)

    def _serve_in_turns(self) -> None:
        """Rounds over the warps that can run, until all have ended."""
        b = self.b
        turn, ended = self._append("turn"), self._append("ended")
        b.branch(turn)
        b.position_at_end(turn)
        self._each_warp(self._run_if_runnable)
        status = call(self.lanes, "settle", self._pointer(Slot.STATES_AT), self._get(Slot.WARPS))
        with b.if_then(b.icmp_unsigned("==", status, I64(int(Status.DEADLOCK))), likely=False):
            b.ret(status)
        b.cbranch(b.icmp_unsigned("==", status, I64(int(Status.ENDED))), ended, turn)
        b.position_at_end(ended)

    def _run_if_runnable(self, warp: Value) -> None:
        b = self.b
        index = b.add(b.mul(warp, I64(len(State))), I64(int(State.STATUS)))
        at = self.lanes.slot(self._pointer(Slot.STATES_AT), index)
        runnable = b.icmp_unsigned("==", b.load(at, typ=I64), I64(int(Status.RUNNABLE)))
        with b.if_then(runnable):
            b.store(self._run_warp(warp), at)
