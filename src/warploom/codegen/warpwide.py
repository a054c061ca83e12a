"""What the lanes of a warp do together: shuffles and votes (PTX ISA, shfl, vote, activemask)."""

from __future__ import annotations

from llvmlite import ir

from warploom.codegen.lanes import I1, I32, I64, LANES, Value, lane_numbers, splat_constant, vector
from warploom.codegen.operands import Operands
from warploom.core.types import B32, PRED
from warploom.ptx.ir import Instruction


class WarpwideCode:
    """Emits the instructions by which lanes read one another."""

    def __init__(self, operands: Operands) -> None:
        self.operands, self.lanes, self.b = operands, operands.lanes, operands.b
        self._exchange = operands.frame.variable(vector(I32))

    def shuffle(self, made: Instruction, mask: Value) -> tuple[Value, Value]:
        """Values and in-range predicates of `shfl`.

        A source lane that is not active gives the reader its own value; the manual leaves it open.
        """
        b = self.b
        value, amount, clamp = (self.operands.read(o, B32) for o in made.operands[1:4])
        five, lane = splat_constant(31, I32), lane_numbers(I32)
        step = b.and_(amount, five)
        segment = b.and_(b.lshr(clamp, splat_constant(8, I32)), five)
        low = b.and_(lane, segment)
        limit = b.or_(low, b.and_(b.and_(clamp, five), b.not_(segment)))
        mode = made.operation.modifiers["mode"]
        source = {
            "up": lambda: b.sub(lane, step),
            "down": lambda: b.add(lane, step),
            "bfly": lambda: b.xor(lane, step),
            "idx": lambda: b.or_(low, b.and_(step, b.not_(segment))),
        }[str(mode)]()
        inside = b.icmp_signed(">=" if mode == "up" else "<=", source, limit)
        chosen = b.select(inside, source, lane)
        return self._permute(value, chosen, mask), inside

    def _permute(self, value: Value, source: Value, mask: Value) -> Value:
        """Lane `source[l]` of `value` in lane l, where that lane is in `mask`."""
        b = self.b
        b.store(value, self._exchange)
        start = self.lanes.splat(b.ptrtoint(self._exchange, I64))
        offsets = b.shl(b.zext(source, vector(I64)), splat_constant(2, I64))
        pointers = b.inttoptr(b.add(start, offsets), vector(ir.PointerType()))
        everyone = ir.Constant(vector(I1), [I1(1)] * LANES)
        moved = self.lanes.gather(pointers, everyone, I32)
        active = b.lshr(self.lanes.splat(self.lanes.bits(mask)), source)
        return b.select(b.trunc(active, vector(I1)), moved, value)

    def vote(self, made: Instruction, mask: Value) -> Value:
        """The common result of `vote`, in every lane: a predicate, or an i32 for a ballot."""
        b = self.b
        held = self.lanes.bits(b.and_(self.operands.read(made.operands[1], PRED), mask))
        if made.operation.modifiers["mode"] == "ballot":
            return self.lanes.splat(held)
        active = self.lanes.bits(mask)
        none = b.icmp_unsigned("==", held, I32(0))
        every = b.icmp_unsigned("==", held, active)
        answer = {"all": every, "any": b.not_(none), "uni": b.or_(every, none)}
        return self.lanes.splat(answer[str(made.operation.modifiers["mode"])])

    def active_lanes(self, mask: Value) -> Value:
        """`activemask`: the lanes that execute it, those that a guard leaves out not among them."""
        return self.lanes.splat(self.lanes.bits(mask))
