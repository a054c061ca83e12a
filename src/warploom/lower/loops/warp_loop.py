"""Emits the work of a block's warps in a sweep (`analysis.warp_loops`), once a survey
(`lower.loops.warp_loop_guards`) has found where all of them reach.

Those of which every thread works go through a short loop, one after the other; then, at once, those
threads of the next one that work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from warploom.abi.environment import Slot
from warploom.analysis.vector_shape import LANES
from warploom.analysis.warp_loops import StepKind, WarpLoop
from warploom.ir.kernel_accesses import elements
from warploom.llvm.lanes import I64, Value
from warploom.lower.frame.blocks import Copy
from warploom.lower.frame.registers import EmittingBlock
from warploom.lower.frame.spills import SpillCode
from warploom.lower.instructions import InstructionCode
from warploom.lower.loops.warp_loop_guards import Found, WarpLoopCheck, leading
from warploom.program.uses import reads
from warploom.ptx.ir import Instruction, Register


class WarpLoopBody:
    """Emits the work of sweeps. `emitting_block` has code made as in a block."""

    def __init__(
        self,
        saved: SpillCode,
        instructions: InstructionCode,
        loop_check: WarpLoopCheck,
        emitting_block: EmittingBlock,
    ) -> None:
        self.saved, self.instructions, self.loop_check = saved, instructions, loop_check
        self.frame, self.lanes, self.b = saved.frame, saved.lanes, saved.b
        self.program, self._standing = self.frame.program, emitting_block

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
            self.lanes.disable_unrolling(again)
        b.position_at_end(done)

    def go(self, found: Found, then: Callable[[], None]) -> None:
        """Let all warps go that have something to do, and end with what `then` emits; not so some
        threads that have nothing to do but the body."""
        warp_loop, b = found.warp_loop, self.b
        if found.goes_whole:
            self._each_goes(found, I64(0), found.full, warp_loop.body_blocks, then)
        if warp_loop.body is None or warp_loop.needs_all_threads:
            return
        with b.if_then(b.icmp_unsigned("!=", found.some, I64(0))):
            self.frame.set_warp(found.full)
            on = self.lanes.mask(leading(b, found.some))
            if warp_loop.has_common_work:
                self._go(found, {**dict.fromkeys(warp_loop.blocks), warp_loop.body: on}, then)
            else:
                self._begin(warp_loop, found.inside)
                self._through(found, warp_loop.body, on)
        if warp_loop.has_common_work:
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
        rolled = found.access.accesses_memory
        way = dict.fromkeys((*found.warp_loop.blocks, *own))
        self.each(first, last, lambda: self._go(found, way, then), rolled=rolled)

    def _go(self, found: Found, way: Mapping[int, Value | None], then: Callable[[], None]) -> None:
        """Let the running warp go through some blocks: with all its threads, or those that are
        on."""
        warp_loop = found.warp_loop
        self._begin(warp_loop, found.starts)
        blocks = [
            i for i in (*warp_loop.before, *warp_loop.body_blocks, *warp_loop.after) if i in way
        ]
        for block, following in pairwise((*blocks, warp_loop.next_block)):
            self._through(found, block, way[block])
            with self._standing(block, convergent=True):
                self.frame.transfers.to_varying(block, following)
        then()

    def _begin(self, warp_loop: WarpLoop, registers: Mapping[Register, Value]) -> None:
        """Give the running warp those registers which lie to the first one's, and those of its own
        that it reads."""
        self.set(registers)
        self._fetch(warp_loop)

    def _through(self, found: Found, block: int, on: Value | None) -> None:
        """Let the running warp go through a block; where only lanes `on` do, it is the body, and
        nobody reads what the others compute."""
        warp_loop = found.warp_loop
        with self._standing(block, convergent=True):
            for index in warp_loop.steps((block,)):
                kind, made = warp_loop.kinds[index], self.program.instructions[index]
                self.frame.remaining_in_block = self.program.blocks[block].stop - index
                if kind is StepKind.SHAPED:
                    self.loop_check.emit_affine(
                        index, made, lambda _: None
                    )  # it has been looked at
                elif kind is StepKind.COMPUTED:
                    running = self.frame.active.mask() if on is None else on
                    self.instructions.emit(Copy.REGION, index, made, None, running)
                elif kind is StepKind.ACCESS and made.operation.name == "st":
                    self._store(index, made, found, on)
                elif kind is StepKind.ACCESS:
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
                self.instructions.write(Copy.REGION, None, [(target, value, type)])

    def set(self, registers: Mapping[Register, Value]) -> None:
        """Registers of the running warp, from what they are in the first one."""
        for register, value in registers.items():
            stride = self.frame.registers.here[register].stride
            self.frame.registers.store(
                register, self.loop_check.layout.in_running_warp(value, stride)
            )

    def _fetch(self, warp_loop: WarpLoop) -> None:
        """Load the running warp's other registers that it reads."""
        if warp_loop.site is None:
            return
        behind = self.program.blocks[warp_loop.site].successors[-1]
        steps = warp_loop.steps((*warp_loop.blocks, *warp_loop.body_blocks))
        read = {r for i in steps for r in reads(self.program.instructions[i])}
        live = self.frame.facts.live(behind) & read
        self.saved.fetch_together(live - self.loop_check.alike)
