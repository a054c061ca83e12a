"""Emits the transition from divergent code, which stores registers lane by lane, to convergent
code, which stores them by their vector shapes.

After lanes have diverged and reconverged, %r4 = tid is 32 values in the context. A helper
(`helpers.layout_recovery`) checks that they still are 0, 1, 2, ... and stores the first one, from
which convergent code computes the rest. If a register has lost its shape, the warp stays in
divergent code until its next reconvergence.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.core.types import PRED
from warploom.helpers.calls import call
from warploom.helpers.layout_recovery import ShapedRegister
from warploom.isa.instruction import Register
from warploom.llvm.lanes import I1, I64, Value, constant_table
from warploom.lower.control.masked_loops import MaskedLoopCode
from warploom.lower.frame.blocks import Blocks, Copy
from warploom.lower.frame.spills import SpillCode


class LayoutRecovery:
    """Emits the transitions to the convergent copy. A flag in a stack slot, *stale*, is set where
    registers may have lost their vector shapes since lanes were last together. `reconverge` checks
    shapes only if it is set, `recover` in any case."""

    def __init__(self, blocks: Blocks, spills: SpillCode, masked_loops: MaskedLoopCode) -> None:
        """Allocates the flag; the blocks of transitions are emitted at their first use and stored
        by the basic block that they lead to.
        """
        self.blocks, self.spills, self.masked_loops = blocks, spills, masked_loops
        self.frame, self.b = blocks.frame, blocks.frame.lanes.b
        self._stale = self.frame.variable(I1)
        self._recoveries: dict[int, ir.Block] = {}
        self._convergent_entries: dict[int, ir.Block] = {}

    def set_stale(self, stale: bool) -> None:
        """Emits a store of a constant to the flag *stale*, which `reconverge` tests."""
        self.b.store(I1(int(stale)), self._stale)

    def reconverge(self, index: int) -> None:
        """Emits the jump by which all living lanes continue at block `index` in the convergent
        copy: at once if the flag *stale* is false, else through the check of `recover`, which may
        lead to the divergent copy. Code of one copy jumps there."""
        # Such code stores registers lane by lane.
        if self.frame.variant.has_one_copy:
            self.b.branch(self.blocks.copies[self.blocks.main, index])
            return
        stale = self.b.load(self._stale, typ=I1)
        self.b.cbranch(stale, self.recover(index), self._convergent_entry(index))

    def recover(self, index: int) -> ir.Block:
        """Returns the LLVM block in which all living lanes continue at block `index` after
        registers were stored lane by lane, emitted at the first call for `index`. Whatever *stale*
        is, it checks the shapes of live registers; if all hold, it clears *stale* and enters the
        convergent copy (`_convergent_entry`), else it sets *stale* and enters the divergent one.
        Returns `_convergent_entry` itself, without a check, if the kernel has no shapes, or at the
        program's exit."""
        if not self.frame.shapes or index == self.blocks.program.exit:
            return self._convergent_entry(index)
        if index not in self._recoveries:
            self._recoveries[index] = self.blocks.append(f"recover_layout{index}")
            emitting_block = self.frame.at_block(index, convergent=False)
            with self.b.goto_block(self._recoveries[index]), emitting_block:
                holds = self._recover_shapes(index)
                self.b.store(self.b.not_(holds), self._stale)
                self.b.cbranch(
                    holds, self._convergent_entry(index), self.blocks.copies[Copy.DIVERGENT, index]
                )
        return self._recoveries[index]

    def _recover_shapes(self, index: int) -> Value:
        """Emits the call of `reshape_registers` for the live registers of a block that have a shape
        in it. The helper tests the values of active lanes in the context, and stores the first
        value of each run (0 for a run without active lanes) to the registers' short slots in it.
        Returns true (an i1) if all of them have their shape in the active lanes, also if there are
        none."""
        frame, shaped = self.frame, self.frame.context_layout.shaped
        # Dead registers are not tested: that they lost their shape must not keep the warp in
        # divergent code.
        here = self.blocks.live(index) & frame.position.shapes.keys() & shaped.keys()
        words = [
            word for r in sorted(here, key=lambda r: r.name) for word in self._descriptor_of(r)
        ]
        if not words:
            return I1(1)
        table = constant_table(frame.module, f"shapes{index}", words)
        count, active = (
            I64(len(words) // ShapedRegister.WORDS),
            self.b.zext(frame.active.bits(), I64),
        )
        recovered = call(
            frame.lanes, "reshape_registers", frame.context_registers.base(), table, count, active
        )
        return self.b.icmp_signed("!=", recovered, I64(0))

    def _descriptor_of(self, register: Register) -> list[int]:
        """Returns the words of a register in the helper's table, a `ShapedRegister`; a register of
        more than 64 bits has one for each 64."""
        frame, bits = self.frame, register.type.bits
        shape, layout = frame.position.shapes[register], frame.context_layout
        by_lane, shaped = 8 * layout.by_lane[register], 8 * layout.shaped[register]
        # A predicate is one bit a lane in its wide slot, one byte in its short one.
        lane_bits, step_bits = (1, 8) if register.type == PRED else (bits, bits)
        words: list[int] = []
        for half in range(0, bits, 64):
            words += ShapedRegister.pack(
                lanes_at=by_lane + half,
                lane_bits=lane_bits,
                size=min(64, lane_bits),
                shaped_at=shaped + half,
                step_bits=step_bits,
                written_bits=min(64, step_bits),
                values=shape.width,
                length=shape.length,
                stride=shape.stride,
            )
        return words

    def _convergent_entry(self, index: int) -> ir.Block:
        """Returns the LLVM block through which all living lanes enter a block's convergent copy
        once registers have their shapes, emitted at the first call for `index`. Its code loads live
        registers from the context, marks the SIMT stack in the context as empty if registers are
        spilled, and enters the masked loops around the block. For the program's exit it is the
        convergent copy's own end."""
        regions = self.frame.shapes.around(index)
        if index == self.blocks.program.exit:
            return self.blocks.entrance(Copy.CONVERGENT, index)
        if index not in self._convergent_entries:
            self._convergent_entries[index] = self.blocks.append(f"reconverged{index}")
            emitting_block = self.frame.at_block(index, convergent=True)
            with self.b.goto_block(self._convergent_entries[index]), emitting_block:
                self.frame.transfers.load_reconverged(self.blocks.live(index))
                if self.frame.position.spilled:
                    self.spills.store_empty_stack()
                self.masked_loops.reenter(regions)
                self.b.branch(self.blocks.entrance(Copy.CONVERGENT, index))
        return self._convergent_entries[index]
