"""Emits `shfl`, by which each lane reads a register of another lane (PTX ISA, "shfl.sync").

With immediate operands it is one `shufflevector`; otherwise source lanes are computed, and the
permutation is `vpermi2d` on AVX-512, else a gather from a stack slot.

    shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;   ->   shufflevector with <1, 0, 3, 2, 5, 4, ...>
"""

from __future__ import annotations

from llvmlite import ir

from warploom.core.types import B32
from warploom.isa.instruction import Immediate, Instruction
from warploom.isa.shuffles import shuffle_source
from warploom.llvm.lanes import (
    I1,
    I32,
    I64,
    LANES,
    MASK,
    Value,
    lane_numbers,
    selection,
    splat_constant,
    vector,
)
from warploom.llvm.masked_memory import gather
from warploom.llvm.target import has_feature
from warploom.lower.frame.operands import Operands

HALF = LANES // 2


class ShuffleCode:
    """Emits the shuffles of a warp function. A lane whose source lane is out of range or inactive
    gets its own value; for an inactive one the manual leaves it undefined."""

    def __init__(self, operands: Operands) -> None:
        """Allocates a stack slot of 32 words, from which `_permute` gathers without AVX-512."""
        self.operands, self.lanes, self.b = operands, operands.lanes, operands.b
        self._exchange = operands.frame.variable(vector(I32))

    def shuffle(self, instruction: Instruction, mask: Value) -> tuple[Value, Value]:
        """Returns the shuffled values (of 32 bits) and the predicates that are true where the
        source lane is in range, executing or not; `mask` has the executing lanes. Source lanes are
        constants in the code if both operands are immediates, else computed at run time."""
        mode = str(instruction.operation.modifiers["mode"])
        value = self.operands.read(instruction.operands[1], B32)
        amount, control = instruction.operands[2:4]
        if isinstance(amount, Immediate) and isinstance(control, Immediate):
            return self._by_constants(mode, value, amount.value & 31, control.value, mask)
        by, clamp = (self.operands.read(operand, B32) for operand in (amount, control))
        return self._by_registers(mode, value, by, clamp, mask)

    def _by_constants(
        self, mode: str, value: Value, amount: int, control: int, mask: Value
    ) -> tuple[Value, Value]:
        """Emits a shuffle whose source lanes are constants, as one `shufflevector`; returns values
        and predicates (true if the source lane is within the segment). A lane whose source is
        outside of it, or not in `mask`, retains its own value."""
        b = self.b
        sources = [shuffle_source(mode, lane, amount, control) for lane in range(LANES)]
        lanes = [source if inside else lane for lane, (source, inside) in enumerate(sources)]
        order = selection(lanes)
        moved = b.shuffle_vector(value, value, order)
        active = b.shuffle_vector(mask, mask, order)
        in_range = ir.Constant(MASK, [I1(int(inside)) for _, inside in sources])
        return b.select(active, moved, value), in_range

    def _by_registers(
        self, mode: str, value: Value, by: Value, clamp: Value, mask: Value
    ) -> tuple[Value, Value]:
        """Emits a shuffle whose source lanes are computed at run time from the operands `by` (the
        distance or lane) and `clamp`, as `isa.shuffles` does; returns values and predicates (true
        if the source lane is within the segment). A lane whose source is outside of it, or not in
        `mask`, retains its own value."""
        b = self.b
        low_bits, lane = splat_constant(31, I32), lane_numbers(I32)
        step = b.and_(by, low_bits)
        # `clamp`: bits 0 to 4 bound the lane number, bits 8 to 12 are the bits of it that name the
        # segment, in which lanes are exchanged.
        segment = b.and_(b.lshr(clamp, splat_constant(8, I32)), low_bits)
        low = b.and_(lane, segment)
        limit = b.or_(low, b.and_(b.and_(clamp, low_bits), b.not_(segment)))
        source = {
            "up": lambda: b.sub(lane, step),
            "down": lambda: b.add(lane, step),
            "bfly": lambda: b.xor(lane, step),
            "idx": lambda: b.or_(low, b.and_(step, b.not_(segment))),
        }[mode]()
        inside = b.icmp_signed(">=" if mode == "up" else "<=", source, limit)
        chosen = b.select(inside, source, lane)
        moved = self._permute(value, chosen)
        # Bit `chosen` of the mask in each lane: a shift in place of a second permutation.
        active = b.trunc(b.lshr(self.lanes.splat(self.lanes.bits(mask)), chosen), MASK)
        return b.select(active, moved, value), inside

    def _permute(self, value: Value, source: Value) -> Value:
        """Returns, in lane l, lane `source[l]` of `value`: by AVX-512's permutation, or a gather
        from a stack slot.
        """
        if has_feature("avx512f"):
            return self._permute_avx512(value, source)
        b = self.b
        b.store(value, self._exchange)
        start = self.lanes.splat(b.ptrtoint(self._exchange, I64))
        offsets = b.shl(b.zext(source, vector(I64)), splat_constant(2, I64))
        pointers = b.inttoptr(b.add(start, offsets), vector(ir.PointerType()))
        # No mask is needed: also in inactive lanes, `source` is the number of a lane.
        all_lanes = ir.Constant(MASK, [I1(1)] * LANES)
        return gather(self.lanes, pointers, all_lanes, I32)

    def _permute_avx512(self, value: Value, source: Value) -> Value:
        """Returns, in lane l, lane `source[l]` of `value`, by `vpermi2d`, which permutes two
        registers of 16 words; LLVM IR has no variable shuffle."""
        b, half = self.b, ir.VectorType(I32, HALF)
        low, high = (range(start, start + HALF) for start in (0, HALF))
        low_half, high_half = (
            b.shuffle_vector(value, value, selection(part)) for part in (low, high)
        )
        parts = [
            self.lanes.intrinsic(
                "llvm.x86.avx512.vpermi2var.d.512",
                half,
                [low_half, b.shuffle_vector(source, source, selection(part)), high_half],
            )
            for part in (low, high)
        ]
        return b.shuffle_vector(*parts, selection(range(LANES)))
