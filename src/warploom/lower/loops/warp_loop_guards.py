"""Emits the checks that precede a warp loop (`lower.loops.warp_loop`): whether the addresses of all
warps, extrapolated from the first warp's registers, hit the range cache, and how many threads run
the loop's body.

For `if (tid < n) ...` in a block of 256 threads, n = 100: three full warps, 4 threads of warp 3,
and nothing for the others. If a check fails, nothing has been executed, and the warps run in order
instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from warploom.abi.environment import Slot
from warploom.ir.loops import StepKind, WarpLoop
from warploom.isa.instruction import Instruction, Register
from warploom.llvm.lanes import I32, I64, Value
from warploom.lower.frame.block_layout import LAYOUTS
from warploom.lower.frame.spills import SpillCode
from warploom.lower.instructions import InstructionCode
from warploom.lower.loops.partial_access import PartialAccess
from warploom.lower.loops.warp_loop_access import WarpLoopAccess
from warploom.lower.operations.prefix_masks import PrefixMaskCode
from warploom.shapes.operand_shapes import OperandShapes
from warploom.shapes.vector_shape import LANES
from warploom.shapes.warp_layout import BLOCK_LAYOUT


@dataclass
class WarpLoopPlan:
    """Holds the results of the checks of one warp loop, from which its code is emitted. `starts`,
    `inside` and `ends` are the first warp's affine registers at the beginning, before the body and
    at the end. `full_warps` is how many warps run the body (without a body, the loop) with all
    their threads, `partial_threads` how many threads of the next warp do; both i64. All
    `conditions` (i1) must hold. `access` and `partial` emit the accesses of full warps and of that
    next one."""

    warp_loop: WarpLoop
    access: WarpLoopAccess
    partial: PartialAccess
    full_warps: Value
    partial_threads: Value
    starts: dict[Register, Value]
    inside: dict[Register, Value] = field(default_factory=dict[Register, Value])
    ends: dict[Register, Value] = field(default_factory=dict[Register, Value])
    conditions: list[Value] = field(default_factory=list[Value])

    def partial_warps(self, b: Value) -> Value:
        """Returns the number of warps that run the body with some of their threads: 0 or 1 (an
        i64)."""
        return b.zext(b.icmp_unsigned("!=", self.partial_threads, I64(0)), I64)


class WarpLoopCheck:
    """Emits the checks on the first warp in one warp function. `block_affine_registers` are the
    registers whose values in all warps follow from those in the first one; `layout` computes
    them."""

    def __init__(self, spills: SpillCode, instructions: InstructionCode) -> None:
        """Computes which registers are affine in the whole block, and selects how they are
        extrapolated for the block's layout of threads.
        """
        self.spills, self.instructions = spills, instructions
        self.frame, self.lanes, self.b = spills.frame, spills.lanes, spills.b
        self.program, self.memory = self.frame.program, instructions.memory
        block_layout = BLOCK_LAYOUT[self.frame.variant.warp_layout]
        self._operand_shapes = OperandShapes(
            self.program, block_layout, self.frame.warp_ir.block_shapes
        )
        self.block_affine_registers = self.frame.warp_ir.block_affine_registers
        self.layout = LAYOUTS[self._operand_shapes.warp_layout](self.frame)
        self._prefix_masks = PrefixMaskCode(self.memory.operands)

    def _access(self, warp_loop: WarpLoop) -> WarpLoopAccess:
        """Returns a new emitter of the full warps' accesses in a warp loop."""
        return WarpLoopAccess(self.memory, self._operand_shapes, self.layout, warp_loop)

    def _partial_access(self, warp_loop: WarpLoop) -> PartialAccess:
        """Returns a new emitter of the partial warp's accesses in a warp loop."""
        return PartialAccess(self.memory, warp_loop)

    def resume_first_warp(self, warp_loop: WarpLoop) -> None:
        """Makes warp 0 the running one, with all 32 lanes active: begins it with zero registers if
        the loop begins the kernel, else restores its live registers from its context."""
        self.frame.set_warp(I64(0))
        if warp_loop.site is None:
            self.spills.begin(I32(-1))
        else:
            following = self.program.blocks[warp_loop.site].successors[-1]
            self.spills.restore_convergent(self.frame.warp_ir.live(following), whole=True)

    def make_plan(self, warp_loop: WarpLoop) -> WarpLoopPlan:
        """Emits the index arithmetic of the loop for the first warp, whose registers are loaded,
        and the checks that it holds for all warps. Returns the plan with their conditions, which
        the caller tests; registers are then as after the loop in the first warp."""
        warps = self.frame.slot(Slot.WARPS)
        starts = self._registers(self.block_affine_registers)
        plan = WarpLoopPlan(
            warp_loop,
            self._access(warp_loop),
            self._partial_access(warp_loop),
            warps,
            I64(0),
            starts,
        )
        with self.frame.at(replace(self.frame.position, thread_layout=self.layout)):
            for block in warp_loop.before:
                self._check_block(warp_loop, block, warps, plan)
            if warp_loop.body is not None:
                plan.inside = self._registers(self.block_affine_registers)
                self._count_body_threads(warp_loop, plan)
                self._check_block(warp_loop, warp_loop.body, plan.full_warps, plan)
            for block in warp_loop.after:
                self._check_block(warp_loop, block, warps, plan)
            plan.ends = self._registers(warp_loop.live_out)
        return plan

    def _count_body_threads(self, warp_loop: WarpLoop, plan: WarpLoopPlan) -> None:
        """Emits the number of threads for which the body's condition holds, and adds the condition
        that these are the block's first threads. The plan gets the number as full warps and threads
        of a partial one, which must be none unless the loop allows a partial warp.
        """
        b, threads = self.b, self.frame.slot(Slot.THREADS)
        assert warp_loop.condition is not None
        instruction = self.program.instructions[warp_loop.condition]
        count, is_prefix = self._prefix_masks.count_prefix(
            instruction, self._operand_shapes, threads, opposite=warp_loop.condition_is_negated
        )
        # Code is emitted as if the condition held: if it does not, what follows computes with a
        # count that means nothing, but only computes, and the conjunction of all conditions is
        # false.
        plan.conditions.append(is_prefix)
        plan.full_warps, partial_threads = b.lshr(count, I64(5)), b.and_(count, I64(LANES - 1))
        if warp_loop.allows_partial_warp:
            plan.partial_threads = partial_threads
        else:
            plan.conditions.append(b.icmp_unsigned("==", partial_threads, I64(0)))

    def _check_block(
        self, warp_loop: WarpLoop, block: int, warps: Value, plan: WarpLoopPlan
    ) -> None:
        """Emits the checks of a block that the first `warps` warps run, as conditions of `plan`:
        affine values do not wrap around, accesses hit (those of the body also in the partial warp),
        and its branch goes the way that the loop assumes."""
        for index in warp_loop.steps((block,)):
            instruction = self.program.instructions[index]
            if warp_loop.kinds[index] is StepKind.SHAPED:
                self.emit_affine(
                    index, instruction, lambda wraps: plan.conditions.append(self.b.not_(wraps))
                )
            elif warp_loop.kinds[index] is StepKind.ACCESS:
                self._check_access(index, instruction, warps, plan)
                if block == warp_loop.body and warp_loop.allows_partial_warp:
                    self._check_partial_access(index, instruction, plan)
        last = self.program.blocks[block].stop - 1
        if last in warp_loop.choices:
            guard = self.instructions.guards.uniform_value(self.program.instructions[last])
            assert guard is not None
            held = self.lanes.lane(guard, 0)
            plan.conditions.append(held if warp_loop.choices[last] else self.b.not_(held))

    def _check_access(
        self, index: int, instruction: Instruction, warps: Value, plan: WarpLoopPlan
    ) -> None:
        """Adds the condition that an access hits in the first `warps` warps, which are full; for
        one that is not extrapolated, the condition that `warps` is 0."""
        if index in plan.warp_loop.extrapolated:
            plan.conditions.append(plan.access.check(index, instruction, warps))
        else:
            plan.conditions.append(self.b.icmp_unsigned("==", warps, I64(0)))

    def _check_partial_access(
        self, index: int, instruction: Instruction, plan: WarpLoopPlan
    ) -> None:
        """Adds the condition that an access of the partial warp hits, if there is such a warp."""
        b = self.b
        hit = plan.partial.check(
            index, instruction, plan.full_warps, prefix_mask(b, plan.partial_threads)
        )
        plan.conditions.append(b.or_(hit, b.icmp_unsigned("==", plan.partial_threads, I64(0))))

    def _registers(self, registers: Iterable[Register]) -> dict[Register, Value]:
        """Returns the current values, in their short forms, of those of `registers` that are affine
        in the whole block.
        """
        block_affine = sorted(
            self.block_affine_registers & set(registers), key=lambda register: register.name
        )
        return {
            r: self.frame.registers.load(r, self.frame.registers.width(r)) for r in block_affine
        }

    def emit_affine(
        self, index: int, instruction: Instruction, wrapped: Callable[[Value], None]
    ) -> None:
        """Emits an instruction with affine results; `wrapped` gets the condition (an i1) that a
        lane wraps around where it must not."""
        self.instructions.emit_affine(index, instruction, self.frame.active.mask(), wrapped)


def prefix_mask(b: Value, count: Value) -> Value:
    """Returns a mask of the first `count` lanes (an i64 below 32), as an i32."""
    # Shifted in 64 bits, so that no count is as large as the type; a count of 0 gives 0.
    return b.trunc(b.sub(b.shl(I64(1), count), I64(1)), I32)
