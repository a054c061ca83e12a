"""Atomics: read, combine and write in each active lane in turn."""

from __future__ import annotations

from llvmlite import ir

from warploom.codegen.access import Call, count_change
from warploom.codegen.access_moves import AccessMoves
from warploom.codegen.environment import Slot
from warploom.codegen.helper_calls import call
from warploom.codegen.lanes import I8, I32, I64, LANES, PTR, Value, vector
from warploom.codegen.lower import Lowering
from warploom.isa.terms import Term


class LaneByLane:
    """Emits the turns of the lanes of one atomic; `combine` gives the new value from the old one
    and the operands."""

    def __init__(self, access: Call, moves: AccessMoves, combine: Term) -> None:
        self.access, self.lanes, self.b = access, access.lanes, access.lanes.b
        self._moves, self._term = moves, combine

    def emit(self, bits: Value, offsets: Value) -> None:
        """Read, combine and write in each active lane in turn, the lowest first unless a policy
        chooses."""
        pointers = self.lanes.alloca(vector(I64))
        self.b.store(self._addresses_of(offsets), pointers)
        loop = self.access.function.append_basic_block("lane")
        done = self.access.function.append_basic_block("done")
        if self.access.shuffles:
            changed = self._by_policy(self.access.told(offsets), bits, pointers, loop, done)
        else:
            changed = self._rising(pointers, loop, done)
        self.b.position_at_end(done)
        count_change(self.lanes, self.access.environment, changed)

    def _rising(self, pointers: Value, loop: ir.Block, done: ir.Block) -> Value:
        b = self.b
        entry = b.block
        b.branch(loop)
        b.position_at_end(loop)
        left, changed = b.phi(I32), b.phi(I64)
        left.add_incoming(self.access.bits, entry)
        changed.add_incoming(I64(0), entry)
        found = self.lanes.intrinsic("llvm.cttz.i32", I32, [left, ir.Constant(ir.IntType(1), 1)])
        more = b.add(changed, self._one_lane(pointers, b.zext(found, I64)))
        rest = b.and_(left, b.sub(left, I32(1)))
        left.add_incoming(rest, b.block)
        changed.add_incoming(more, b.block)
        b.cbranch(b.icmp_unsigned("!=", rest, I32(0)), loop, done)
        return more

    def _by_policy(
        self, scratch: Value, bits: Value, pointers: Value, loop: ir.Block, done: ir.Block
    ) -> Value:
        """In the order that `rules.atomics.lane_order` gives."""
        b = self.b
        plan = b.inttoptr(self.access.slot(Slot.PLAN_AT), PTR)
        order = call(self.lanes, "lane_order", scratch, bits, plan, self.access.slot(Slot.BLOCK))
        entry, turned, behind = (
            b.block,
            *(self.access.function.append_basic_block() for _ in range(2)),
        )
        b.branch(loop)
        b.position_at_end(loop)
        turn, changed = b.phi(I64), b.phi(I64)
        turn.add_incoming(I64(0), entry)
        changed.add_incoming(I64(0), entry)
        step = b.mul(turn, b.lshr(order, I64(5)))
        lane = b.and_(b.add(order, step), I64(LANES - 1))
        b.cbranch(b.trunc(b.lshr(bits, lane), ir.IntType(1)), turned, behind)
        b.position_at_end(turned)
        more = b.add(changed, self._one_lane(pointers, lane))
        after = b.block
        b.branch(behind)
        b.position_at_end(behind)
        whole = b.phi(I64)
        whole.add_incoming(changed, loop)
        whole.add_incoming(more, after)
        following = b.add(turn, I64(1))
        turn.add_incoming(following, behind)
        changed.add_incoming(whole, behind)
        b.cbranch(b.icmp_unsigned("<", following, I64(LANES)), loop, done)
        return whole

    def _one_lane(self, pointers: Value, lane: Value) -> Value:
        """Read, combine and write in one lane; gives how many elements changed."""
        b = self.b
        at = b.inttoptr(b.load(self.lanes.slot(pointers, lane), typ=I64), PTR)
        changed: Value = I64(0)
        for part in range(self.access.shape.parts):
            here = b.gep(at, [I64(part * self.access.shape.type.bytes)], source_etype=I8)
            changed = b.add(changed, self._combine(here, part, lane, self._term))
        return changed

    def _combine(self, at: Value, part: int, lane: Value, term: Term) -> Value:
        """One element of one lane: read it, combine, write it, and keep what was there. Gives 1
        where that changed it."""
        b, count = self.b, self.access.shape.parts
        single = ir.VectorType(Lowering(self.lanes, 1).type(self.access.shape.type).element, 1)
        old = b.load(at, typ=single, align=1)
        given = [self._operand(n * count + part, lane, single) for n in (0, 1)]
        new = Lowering(self.lanes, 1)(term, [old, *given])
        b.store(new, at, align=1)
        bits = ir.VectorType(self.access.shape.element, 1)
        differs = b.icmp_unsigned("!=", b.bitcast(old, bits), b.bitcast(new, bits))
        b.store(old, self._place(2 * count + part, lane), align=1)
        return b.zext(self.lanes.lane(differs, 0), I64)

    def _addresses_of(self, offsets: Value) -> Value:
        return self.b.ptrtoint(self._moves.pointers(offsets), vector(I64))

    def _place(self, part: int, lane: Value) -> Value:
        offset = self.b.mul(lane, I64(self.access.shape.type.bytes))
        return self.b.gep(
            self.access.data,
            [self.b.add(offset, I64(part * self.access.shape.part_bytes))],
            source_etype=ir.IntType(8),
        )

    def _operand(self, part: int, lane: Value, type: ir.Type) -> Value:
        return self.b.load(self._place(part, lane), typ=type, align=1)
