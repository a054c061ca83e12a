"""Emits the code between two barriers as a loop over all warps of a thread block
(`analysis.warp_loops`), after the checks of `lower.loops.warp_loop_guards`.

    if (tid < n) part[tid] += part[tid + n];  __syncthreads();
    ->  for warp in 0 .. n / 32: 32-lane load, add, store     without masks or checks
        the n % 32 threads of the next warp, under a mask

Affine registers of each warp are computed from the first warp's, and accesses are counted once for
the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from warploom.abi.environment import Slot
from warploom.ir.kernel_accesses import elements
from warploom.ir.loops import StepKind, WarpLoop
from warploom.isa.instruction import Instruction, Register
from warploom.isa.kinds import OpKind
from warploom.llvm.lanes import I64, Value
from warploom.lower.frame.blocks import Copy
from warploom.lower.frame.spills import SpillCode
from warploom.lower.instructions import InstructionCode
from warploom.lower.loops.warp_loop_guards import WarpLoopCheck, WarpLoopPlan, prefix_mask
from warploom.program.uses import reads
from warploom.shapes.vector_shape import LANES


class WarpLoopBody:
    """Emits the bodies of warp loops: for each warp that has work, its registers, its blocks
    without checks and counts, and what ends it."""

    def __init__(
        self,
        spills: SpillCode,
        instructions: InstructionCode,
        loop_check: WarpLoopCheck,
    ) -> None:
        """Shares the frame of `spills`; emits nothing."""
        self.spills, self.instructions, self.loop_check = spills, instructions, loop_check
        self.frame, self.lanes, self.b = spills.frame, spills.lanes, spills.b
        self.program = self.frame.program

    # ---- each warp ------------------------------------------------------------------------------

    def emit_all(self, plan: WarpLoopPlan, finish: Callable[[], None]) -> None:
        """Emits the records of the loop's accesses, if a tracker needs them
        (`WarpLoopAccess.track`), and then the code of all warps that have work. First comes a loop
        over the full warps, if the warp loop handles any; then the partial warp, which runs the
        body under a mask; then a loop over the warps past it. Without a body, the first loop is
        all.

        The partial warp has code only if the warp loop allows one, and skips it at run time if
        there is none (`plan.partial_threads` is 0). The last loop is emitted only if there is work
        before or after the body that all warps share (`has_common_work`), and does this alone.

        `finish` emits what ends each warp (saves it or ends it), once in each of the three. It is
        left out for a partial warp without common work, which the caller then finishes."""
        warp_loop, b = plan.warp_loop, self.b
        plan.access.track()
        if warp_loop.handles_full_warps:
            self._emit_warps(plan, I64(0), plan.full_warps, warp_loop.body_blocks, finish)
        # Threads of the body are the block's first, so warps come in this order: full ones, at most
        # one partial one, and those past it.
        if warp_loop.body is None:
            return
        if warp_loop.allows_partial_warp:
            with b.if_then(b.icmp_unsigned("!=", plan.partial_threads, I64(0))):
                self._emit_partial_warp(plan, warp_loop.body, finish)
        if warp_loop.has_common_work:
            first_partial = b.add(plan.full_warps, plan.partial_warps(b))
            self._emit_warps(plan, first_partial, self.frame.slot(Slot.WARPS), (), finish)

    def _emit_partial_warp(self, plan: WarpLoopPlan, body: int, finish: Callable[[], None]) -> None:
        """Emits the code of the warp of which only some lanes run the body, with the body under
        their mask. If the blocks that all warps run have work for it (`has_common_work`), emits
        these and `finish`, too; else the body alone."""
        warp_loop = plan.warp_loop
        self.frame.set_warp(plan.full_warps)
        mask = self.lanes.mask(prefix_mask(self.b, plan.partial_threads))
        if warp_loop.has_common_work:
            self._emit_warp(plan, {**dict.fromkeys(warp_loop.blocks), body: mask}, finish)
        else:
            self._load_registers(warp_loop, plan.inside)
            self._emit_block(plan, body, mask)

    def _emit_warps(
        self,
        plan: WarpLoopPlan,
        start: Value,
        end: Value,
        body_blocks: tuple[int, ...],
        finish: Callable[[], None],
    ) -> None:
        """Emits the loop over the warps from number `start` up to, but not including, `end`. All
        threads of each run the loop's blocks and `body_blocks` (empty for warps that skip the body)
        without a mask; `finish` emits what each warp does after its own blocks."""
        # The host's hardware prefetcher learns a stride for each load instruction. In an unrolled
        # loop over few warps, each copy of a load would run once and show none.
        rolled = plan.access.accesses_global_memory
        # No block has a mask (None): all threads of these warps run it.
        masks = dict.fromkeys((*plan.warp_loop.blocks, *body_blocks))
        self.frame.for_each_warp(
            start, end, lambda: self._emit_warp(plan, masks, finish), rolled=rolled
        )

    def _emit_warp(
        self, plan: WarpLoopPlan, masks: Mapping[int, Value | None], finish: Callable[[], None]
    ) -> None:
        """Emits the loop's blocks that are keys of `masks` for the running warp, with all its
        threads (None) or under a mask, after loading its registers, and stores registers that
        become varying between blocks; then `finish`."""
        warp_loop = plan.warp_loop
        self._load_registers(warp_loop, plan.starts)
        blocks = [
            i for i in (*warp_loop.before, *warp_loop.body_blocks, *warp_loop.after) if i in masks
        ]
        for block, following in pairwise((*blocks, warp_loop.next_block)):
            self._emit_block(plan, block, masks[block])
            with self.frame.at_block(block, convergent=True):
                self.frame.transfers.to_varying(block, following)
                if masks.get(following) is not None:
                    # Lanes that skip the body go from here to the block after it.
                    self.frame.transfers.to_varying(block, warp_loop.after[0])
        finish()

    def _load_registers(self, warp_loop: WarpLoop, registers: Mapping[Register, Value]) -> None:
        """Sets the running warp's registers: `registers`, given with the first warp's values,
        extrapolated to it; others that the loop reads, loaded from its context."""
        self.set_registers(registers)
        self._load_spilled(warp_loop)

    def _emit_block(self, plan: WarpLoopPlan, block: int, mask: Value | None) -> None:
        """Emits the instructions of a block that the loop needs for the running warp (accesses, and
        what is computed for them, affine or not), without checks and counts. Under a `mask` it is
        the loop's body, and inactive lanes retain the values of registers that are read later."""
        warp_loop, registers = plan.warp_loop, self.frame.registers
        merged = () if mask is None else sorted(warp_loop.merged, key=lambda r: r.name)
        with self.frame.at_block(block, convergent=True):
            # In convergent code a write replaces all 32 lanes. What inactive lanes have got is
            # replaced below, where something reads it later.
            before = {register: registers.load(register) for register in merged}
            for index in warp_loop.steps((block,)):
                kind, instruction = warp_loop.kinds[index], self.program.instructions[index]
                if kind is StepKind.SHAPED:
                    # Wraparound was checked for all warps at once.
                    self.loop_check.emit_affine(index, instruction, lambda _: None)
                elif kind is StepKind.COMPUTED:
                    running = self.frame.active.mask() if mask is None else mask
                    self.instructions.emit(Copy.REGION, index, instruction, None, running)
                elif kind is StepKind.ACCESS and instruction.operation.kind is OpKind.STORE:
                    self._store(index, instruction, plan, mask)
                elif kind is StepKind.ACCESS:
                    self._load(index, instruction, plan, mask)
            for register, value in before.items():
                registers.store(register, self.b.select(mask, registers.load(register), value))

    def _store(
        self, index: int, instruction: Instruction, plan: WarpLoopPlan, mask: Value | None
    ) -> None:
        """Emits a store: of a full warp, or of the partial one under a mask."""
        if mask is None:
            plan.access.store(index, instruction)
        else:
            plan.partial.store(index, instruction, mask)

    def _load(
        self, index: int, instruction: Instruction, plan: WarpLoopPlan, mask: Value | None
    ) -> None:
        """Emits a load of a full warp, or of the partial one under a mask, and writes its results;
        those of a uniform address have 1 element, of uniform half-warps 2, and stay in that form if
        the register has one in this block (`AffineCode.write`).
        """
        type = instruction.operation.modifiers.scalar()
        is_full = mask is None
        values = (
            plan.access.load(index) if is_full else [plan.partial.load(index, instruction, mask)]
        )
        for target, value in zip(elements(instruction.operands[0]), values, strict=True):
            if value.type.count < LANES:
                self.instructions.shaped.write(target, value, type, None)
            else:
                self.instructions.write(Copy.REGION, None, [(target, value, type)])

    def set_registers(self, registers: Mapping[Register, Value]) -> None:
        """Sets registers of the running warp in their short forms, given their values in the first
        one: adds its number times the step from warp to warp."""
        for register, value in registers.items():
            stride = self.frame.position.shapes[register].stride
            self.frame.registers.store(
                register, self.loop_check.layout.in_running_warp(value, stride)
            )

    def _load_spilled(self, warp_loop: WarpLoop) -> None:
        """Loads from the running warp's context the registers that the loop reads or merges, that
        are live after the barrier at which it begins, and that cannot be extrapolated; nothing in a
        loop that begins the kernel."""
        if warp_loop.site is None:
            return
        following = self.program.blocks[warp_loop.site].successors[-1]
        steps = warp_loop.steps((*warp_loop.blocks, *warp_loop.body_blocks))
        read = {r for i in steps for r in reads(self.program.instructions[i])}
        live = self.frame.warp_ir.live(following) & (read | warp_loop.merged)
        self.spills.restore_registers_convergent(live - self.loop_check.block_affine_registers)
