"""What lies between two barriers, done for all warps of a block at once (`analysis.sweeps`).

The first warp's registers say where all others reach, and how many threads have something to do.
Where all can go the short way, those of which every thread works go through a short loop, one after
the other; one of which some work goes as where lanes step aside; of others only registers are
written. Where not, nothing has happened yet, and the warps take their turns (`codegen.relay`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import reduce
from itertools import pairwise
from typing import Protocol

from llvmlite import ir

from warploom.analysis.program import Block
from warploom.analysis.strides import LANES
from warploom.analysis.sweeps import Kind, Sweep
from warploom.analysis.uses import reads
from warploom.codegen.blocks import Copy
from warploom.codegen.environment import Slot
from warploom.codegen.instructions import InstructionCode
from warploom.codegen.lanes import I32, I64, Value
from warploom.codegen.memory import elements
from warploom.codegen.relay import END, Relay
from warploom.codegen.saved import Saved
from warploom.codegen.survey import Found, Survey
from warploom.ptx.ir import Instruction, Register


class Standing(Protocol):
    """Has code made as in a block, while it is open."""

    def __call__(self, index: int, /, *, convergent: bool) -> AbstractContextManager[None]: ...


class SweepCode:
    """Emits the sweeps of one warp function. `masked` emits a block for some lanes only; `standing`
    has code made as in a block."""

    def __init__(
        self,
        saved: Saved,
        relay: Relay,
        instructions: InstructionCode,
        masked: Callable[[Block], None],
        standing: Standing,
    ) -> None:
        self.saved, self.relay, self.instructions = saved, relay, instructions
        self.frame, self.lanes, self.b = saved.frame, saved.lanes, saved.b
        self.program, self._masked, self._standing = self.frame.program, masked, standing
        self.survey = Survey(saved, instructions)
        self._access = self.survey.access

    def emit(self, ways: Iterable[Sweep], sites: Mapping[int, int]) -> dict[int, ir.Block]:
        """Emit what can be; gives where they begin, by site. `sites` numbers those by blocks."""
        found: dict[int, ir.Block] = {}
        for sweep in ways:
            last = sites.get(sweep.blocks[-1], END)
            if self.relay.waits_at(last) and self.survey.can_be(sweep):
                site = END if sweep.site is None else sites[sweep.site]
                found[site] = self.frame.function.append_basic_block(f"sweep{site}")
                self.b.position_at_end(found[site])
                steady, self.frame.steady = self.frame.steady, {}
                with self._standing(sweep.blocks[0], convergent=True):
                    self._emit(sweep, last)
                self.frame.steady = steady
        return found

    def _emit(self, sweep: Sweep, site: int) -> None:
        b = self.b
        found = self.survey.look(sweep)
        with b.if_then(b.not_(reduce(b.and_, found.holds)), likely=False):
            self.relay.take_turns()
        self._each(I64(0), found.full, lambda: self._go(sweep, found))
        if sweep.body is not None:
            with b.if_then(b.icmp_unsigned("!=", found.some, I64(0))):
                self._go_partly(sweep, sweep.body, found)
            if not sweep.asks_all and (sweep.changed or sweep.site is None):
                rest = self.frame.slot(Slot.WARPS)
                self._each(found.full, rest, lambda: self._pass(sweep, found))
        self.relay.swept(site, self._count(sweep, found))

    # ---- each warp ------------------------------------------------------------------------------

    def _each(self, first: Value, last: Value, body: Callable[[], None]) -> None:
        """Emit `for warp in range(first, last): body()`."""
        b, frame = self.b, self.frame
        head, inside, done = (b.append_basic_block(f"warps.{n}") for n in ("head", "body", "done"))
        frame.set_warp(first)
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(b.icmp_unsigned("<", frame.warp, last), inside, done)
        b.position_at_end(inside)
        body()
        frame.set_warp(b.add(frame.warp, I64(1)))
        b.branch(head)
        b.position_at_end(done)

    def _go(self, sweep: Sweep, found: Found) -> None:
        """The running warp goes all the way, with all its threads."""
        self._set(found.starts)
        self._fetch(sweep)
        way = (*sweep.before, *sweep.own, *sweep.after)
        behind = self.program.blocks[way[-1]].successors[-1]
        for block, following in pairwise((*way, behind)):
            with self._standing(block, convergent=True):
                for index in sweep.steps((block,)):
                    self.frame.ahead = self.program.blocks[block].stop - index
                    self._do(sweep.kinds[index], index, self.program.instructions[index])
                self.frame.loosen(block, following)
        self._pass(sweep, found)

    def _do(self, kind: Kind, index: int, made: Instruction) -> None:
        on = self.frame.mask()
        if kind is Kind.SHAPED:
            self.survey.by_shape(index, made, lambda _: None)  # it has been looked at
        elif kind is Kind.COMPUTED:
            self.instructions.emit(Copy.ROUND, index, made, None, on)
        elif kind is Kind.ACCESS and made.operation.name == "st":
            self._access.store(index, made)
        elif kind is Kind.ACCESS:
            self._load(index, made)

    def _load(self, index: int, made: Instruction) -> None:
        """A load of the running warp; what its lanes or rows agree on comes in 1 lane or in 2."""
        type, values = made.operation.modifiers.scalar(), self._access.load(index)
        for target, value in zip(elements(made.operands[0]), values, strict=True):
            if value.type.count < LANES:
                self.instructions.shaped.write(target, value, type, None)
            else:
                self.instructions.write(Copy.ROUND, None, [(target, value, type)])

    def _go_partly(self, sweep: Sweep, body: int, found: Found) -> None:
        """Some threads of a warp go through the body."""
        b, frame = self.b, self.frame
        frame.set_warp(found.full)
        self._set(found.inside)
        self._fetch(sweep)
        leading = b.sub(b.shl(I64(1), found.some), I64(1))
        frame.activate(b.trunc(leading, I32))
        with self._standing(body, convergent=True):
            self._masked(self.program.blocks[body])
        frame.activate(I32(-1))
        branch = frame.layout.branches[self.program.blocks[sweep.before[-1]].stop - 1]
        for count in (branch, branch + 1):
            frame.count(count, I64(1))

    def _pass(self, sweep: Sweep, found: Found) -> None:
        """The running warp has come to the barrier."""
        if sweep.site is None:
            self.saved.save_head()
        self._set(found.ends)
        behind = self.program.blocks[sweep.blocks[-1]].successors[-1]
        with self._standing(behind, convergent=True):
            self.saved.keep_together(sweep.changed)

    def _set(self, registers: Mapping[Register, Value]) -> None:
        """Registers of the running warp, from what they are in the first one."""
        for register, value in registers.items():
            stride = self.frame.here[register].stride
            self.frame.store(register, self.survey.layout.ahead(value, stride))

    def _fetch(self, sweep: Sweep) -> None:
        """The running warp's other registers that it reads."""
        if sweep.site is None:
            return
        behind = self.program.blocks[sweep.site].successors[-1]
        steps = sweep.steps((*sweep.blocks, *sweep.own))
        read = {r for i in steps for r in reads(self.program.instructions[i])}
        live = self.program.live_in[behind] & read
        self.saved.fetch_together(live - self.survey.alike)

    # ---- counts ---------------------------------------------------------------------------------

    def _count(self, sweep: Sweep, found: Found) -> Value:
        """Count what all warps have done, but what some lanes of one; gives their instructions."""
        b, frame = self.b, self.frame
        warps, threads = frame.slot(Slot.WARPS), frame.slot(Slot.THREADS)
        whole = b.mul(found.full, I64(LANES))
        through = dict.fromkeys(sweep.blocks, (warps, threads))
        through |= dict.fromkeys(sweep.own, (found.full, whole))
        for block, (times, lanes) in through.items():
            frame.count(2 * block, times)
            frame.count(2 * block + 1, lanes)
            for index in sweep.steps((block,)):
                if sweep.kinds[index] is Kind.ACCESS:
                    self._access.count(index, times)
        for branch, taken in sweep.choices.items():
            if taken:
                frame.count(frame.layout.guarded[branch], threads)
        used = b.mul(warps, I64(sweep.length(sweep.blocks)))
        if sweep.body is None:
            return used
        block, inside = self.program.blocks[sweep.before[-1]], b.add(whole, found.some)
        goes = inside if sweep.body == block.successors[0] else b.sub(threads, inside)
        frame.count(frame.layout.guarded[block.stop - 1], goes)
        partly = b.zext(b.icmp_unsigned("!=", found.some, I64(0)), I64)
        entered = b.add(found.full, partly)
        return b.add(used, b.mul(entered, I64(sweep.length(sweep.own))))
