"""Emits the work of a block's warps in a sweep (`analysis.sweeps`), once a survey
(`codegen.survey`) has found where all of them reach.

Those of which every thread works go through a short loop, one after the other; then, at once, those
threads of the next one that work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from warploom.analysis.strides import LANES
from warploom.analysis.sweeps import Kind, Sweep
from warploom.analysis.uses import reads
from warploom.codegen.blocks import Copy
from warploom.codegen.environment import Slot
from warploom.codegen.instructions import InstructionCode
from warploom.codegen.kernel_accesses import elements
from warploom.codegen.lanes import I64, Value
from warploom.codegen.registers import Standing
from warploom.codegen.saved import Saved
from warploom.codegen.survey import Found, Survey, leading
from warploom.ptx.ir import Instruction, Register


class SweepWork:
    """Emits the work of sweeps. `standing` has code made as in a block."""

    def __init__(
        self, saved: Saved, instructions: InstructionCode, survey: Survey, standing: Standing
    ) -> None:
        self.saved, self.instructions, self.survey = saved, instructions, survey
        self.frame, self.lanes, self.b = saved.frame, saved.lanes, saved.b
        self.program, self._standing = self.frame.program, standing

    # ---- each warp ------------------------------------------------------------------------------

    def each(
        self, first: Value, last: Value, body: Callable[[], None], *, rolled: bool = False
    ) -> None:
        """Emit `for warp in range(first, last): body()`; `rolled`: LLVM is to leave it so."""
        b, frame = self.b, self.frame
        head, inside, done = (b.append_basic_block(f"warps.{n}") for n in ("head", "body", "done"))
        frame.set_warp(first)
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(b.icmp_unsigned("<", frame.warp, last), inside, done)
        b.position_at_end(inside)
        body()
        frame.set_warp(b.add(frame.warp, I64(1)))
        again = b.branch(head)
        if rolled:
            self.lanes.leave_rolled(again)
        b.position_at_end(done)

    def go(self, found: Found, then: Callable[[], None]) -> None:
        """Let all warps go that have something to do, and end with what `then` emits; not so some
        threads that have nothing to do but the body."""
        sweep, b = found.sweep, self.b
        if found.goes_whole:
            self._each_goes(found, I64(0), found.full, sweep.own, then)
        if sweep.body is None or sweep.asks_all:
            return
        with b.if_then(b.icmp_unsigned("!=", found.some, I64(0))):
            self.frame.set_warp(found.full)
            on = self.lanes.mask(leading(b, found.some))
            if sweep.busy:
                self._go(found, {**dict.fromkeys(sweep.blocks), sweep.body: on}, then)
            else:
                self._begin(sweep, found.inside)
                self._through(found, sweep.body, on)
        if sweep.busy:
            first = b.add(found.full, found.partly(b))
            self._each_goes(found, first, self.frame.slot(Slot.WARPS), (), then)

    def _each_goes(
        self,
        found: Found,
        first: Value,
        last: Value,
        own: tuple[int, ...],
        then: Callable[[], None],
    ) -> None:
        """Warps go all the way, with all their threads; `own` is the body, if they do that."""
        # The host's processor asks ahead for each load by its own step, of which a block of few
        # warps shows it one, if each of these has a copy of the load.
        rolled = found.access.reaches_memory
        way = dict.fromkeys((*found.sweep.blocks, *own))
        self.each(first, last, lambda: self._go(found, way, then), rolled=rolled)

    def _go(self, found: Found, way: Mapping[int, Value | None], then: Callable[[], None]) -> None:
        """Let the running warp go through some blocks: with all its threads, or those that are
        on."""
        sweep = found.sweep
        self._begin(sweep, found.starts)
        blocks = [i for i in (*sweep.before, *sweep.own, *sweep.after) if i in way]
        for block, following in pairwise((*blocks, sweep.behind)):
            self._through(found, block, way[block])
            with self._standing(block, convergent=True):
                self.frame.transfers.loosen(block, following)
        then()

    def _begin(self, sweep: Sweep, registers: Mapping[Register, Value]) -> None:
        """Give the running warp those registers which lie to the first one's, and those of its own
        that it reads."""
        self.set(registers)
        self._fetch(sweep)

    def _through(self, found: Found, block: int, on: Value | None) -> None:
        """Let the running warp go through a block; where only lanes `on` do, it is the body, and
        nobody reads what the others compute."""
        sweep = found.sweep
        with self._standing(block, convergent=True):
            for index in sweep.steps((block,)):
                kind, made = sweep.kinds[index], self.program.instructions[index]
                self.frame.ahead = self.program.blocks[block].stop - index
                if kind is Kind.SHAPED:
                    self.survey.by_shape(index, made, lambda _: None)  # it has been looked at
                elif kind is Kind.COMPUTED:
                    running = self.frame.active.mask() if on is None else on
                    self.instructions.emit(Copy.ROUND, index, made, None, running)
                elif kind is Kind.ACCESS and made.operation.name == "st":
                    self._store(index, made, found, on)
                elif kind is Kind.ACCESS:
                    self._load(index, made, found, on)

    def _store(self, index: int, made: Instruction, found: Found, on: Value | None) -> None:
        if on is None:
            found.access.store(index, made)
        else:
            found.part.store(index, made, on)

    def _load(self, index: int, made: Instruction, found: Found, on: Value | None) -> None:
        """Emit a load; what lanes or rows agree on comes in 1 lane or in 2."""
        type = made.operation.modifiers.scalar()
        whole = on is None
        values = found.access.load(index) if whole else [found.part.load(index, made, on)]
        for target, value in zip(elements(made.operands[0]), values, strict=True):
            if value.type.count < LANES:
                self.instructions.shaped.write(target, value, type, None)
            else:
                self.instructions.write(Copy.ROUND, None, [(target, value, type)])

    def set(self, registers: Mapping[Register, Value]) -> None:
        """Registers of the running warp, from what they are in the first one."""
        for register, value in registers.items():
            stride = self.frame.registers.here[register].stride
            self.frame.registers.store(register, self.survey.layout.ahead(value, stride))

    def _fetch(self, sweep: Sweep) -> None:
        """Load the running warp's other registers that it reads."""
        if sweep.site is None:
            return
        behind = self.program.blocks[sweep.site].successors[-1]
        steps = sweep.steps((*sweep.blocks, *sweep.own))
        read = {r for i in steps for r in reads(self.program.instructions[i])}
        live = self.frame.facts.live(behind) & read
        self.saved.fetch_together(live - self.survey.alike)
