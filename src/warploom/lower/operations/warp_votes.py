"""Emits the votes, matches and reductions of a warp (PTX ISA, "vote", "match", "redux", "elect",
"activemask"); shuffles are for `lower.operations.shuffle`.

    vote.sync.ballot.b32 %r1, %p1, -1;   ->   bits of %p1 and the executing lanes, in all lanes
"""

from __future__ import annotations

from warploom.core.types import B32, PRED, ScalarType
from warploom.isa.instruction import Immediate, Instruction
from warploom.isa.kinds import OpKind
from warploom.isa.spec import Modifiers
from warploom.isa.terms import CANONICAL_NAN
from warploom.llvm.lanes import (
    I1,
    I32,
    LANES,
    Value,
    lane_type,
    splat_constant,
    vector,
)
from warploom.lower.frame.operands import Operands
from warploom.program.uses import member_mask


class WarpVoteCode:
    """Emits instructions whose result combines the lanes of a group: the executing lanes with equal
    member masks."""

    def __init__(self, operands: Operands) -> None:
        """Allocates the stack slots of the loops over groups and over distinct values."""
        self.operands, self.lanes, self.b = operands, operands.lanes, operands.b
        self._matched = operands.frame.variable(vector(I32))
        self._remaining = operands.frame.variable(I32)
        self._ungrouped = operands.frame.variable(I32)

    def grouped(self, instruction: Instruction, mask: Value) -> list[tuple[Value, ScalarType]]:
        """Returns the results of `vote`, `match`, `redux` and `elect`, with their types; `mask` has
        the executing lanes.

        If the member mask is not a constant, lanes may name different groups: a loop evaluates the
        instruction for each group of lanes with equal masks, and merges the results."""
        members = member_mask(instruction)
        if members is None or isinstance(members, Immediate):
            return self.together(instruction, mask)
        b, lanes = self.b, self.lanes
        named = self.operands.read(members, B32)
        b.store(lanes.bits(mask), self._ungrouped)
        head, body, done = (b.append_basic_block(name) for name in ("groups", "group", "grouped"))
        b.branch(head)
        b.position_at_end(head)
        # Each iteration removes at least the lowest lane that is left, so the loop ends.
        left = b.load(self._ungrouped, typ=I32)
        b.cbranch(b.icmp_unsigned("!=", left, I32(0)), body, done)
        b.position_at_end(body)
        group = self._equal_to(named, self._lowest(left), left)
        own = lanes.mask(group)
        slots: list[tuple[Value, ScalarType]] = []
        for value, type in self.together(instruction, own):
            # The slot is not initialized: lanes in no group do not execute the instruction.
            slot = self.operands.frame.variable(value.type)
            b.store(lanes.blend(own, value, b.load(slot, typ=value.type)), slot)
            slots.append((slot, type))
        b.store(b.and_(left, b.not_(group)), self._ungrouped)
        b.branch(head)
        b.position_at_end(done)
        return [(b.load(slot, typ=lane_type(type)), type) for slot, type in slots]

    def vote(self, instruction: Instruction, mask: Value) -> Value:
        """Returns the result of `vote` over the lanes of `mask`, the same in all lanes: for `all`,
        `any` and `uni` a predicate, for `ballot` the lanes whose predicate is true, an i32."""
        b = self.b
        held = self.lanes.bits(b.and_(self.operands.read(instruction.operands[1], PRED), mask))
        if instruction.operation.modifiers["mode"] == "ballot":
            return self.lanes.splat(held)
        active = self.lanes.bits(mask)
        none = b.icmp_unsigned("==", held, I32(0))
        every = b.icmp_unsigned("==", held, active)
        answer = {"all": every, "any": b.not_(none), "uni": b.or_(every, none)}
        return self.lanes.splat(answer[str(instruction.operation.modifiers["mode"])])

    def active_lanes(self, mask: Value) -> Value:
        """Returns the result of `activemask`: the bits of the executing lanes, `mask`, as an i32 in
        each lane."""
        return self.lanes.splat(self.lanes.bits(mask))

    def together(self, instruction: Instruction, mask: Value) -> list[tuple[Value, ScalarType]]:
        """Returns the results of `vote`, `match`, `redux` and `elect`, with their types, for the
        lanes of `mask` as one group. `match.all`: the lanes if all have one value, else 0; and a
        predicate for that."""
        modifiers = instruction.operation.modifiers
        match instruction.operation.kind:
            case OpKind.VOTE:
                type = B32 if modifiers["mode"] == "ballot" else PRED
                return [(self.vote(instruction, mask), type)]
            case OpKind.ELECT:
                return self._elect(mask)
            case OpKind.WARP_REDUCTION:
                value = self.operands.read(instruction.operands[1], modifiers.scalar())
                return [(self.lanes.splat(self._reduce(modifiers, value, mask)), B32)]
            case OpKind.MATCH:
                return self._match(instruction, mask)
            case kind:
                raise AssertionError(f"no case for {kind}")

    def _match(self, instruction: Instruction, mask: Value) -> list[tuple[Value, ScalarType]]:
        """Returns the results of `match`, with their types: of `any`, for each lane the lanes with
        its value; of `all`, the lanes if all have one value, else 0, and a predicate for that."""
        modifiers = instruction.operation.modifiers
        value = self.operands.read(instruction.operands[1], modifiers.scalar())
        if "any" in modifiers:
            return [(self._match_any(value, mask), B32)]
        lanes = self.lanes.bits(mask)
        equal = self._equal_to(value, self._lowest(lanes), lanes)
        same = self.b.icmp_unsigned("==", equal, lanes)
        common = self.lanes.splat(self.b.select(same, lanes, I32(0)))
        return [(common, B32), (self.lanes.splat(same), PRED)]

    def _elect(self, mask: Value) -> list[tuple[Value, ScalarType]]:
        """Returns the results of `elect`: the number of the lowest executing lane, in all lanes,
        and a predicate that is true in that lane alone."""
        bits = self.lanes.bits(mask)
        # x & -x has the lowest bit of x alone; 0, for an empty mask, stays 0.
        lowest = self.b.and_(bits, self.b.neg(bits))
        return [(self.lanes.splat(self._lowest(bits)), B32), (self.lanes.mask(lowest), PRED)]

    def _lowest(self, bits: Value) -> Value:
        """Returns the number (an i32) of the lowest lane of a mask; 0 if the mask is empty."""
        lane = self.lanes.intrinsic("llvm.cttz.i32", I32, [bits, I1(0)])
        # Of an empty mask `cttz` is 32, which would be no element of a vector: it becomes 0.
        return self.b.and_(lane, I32(LANES - 1))

    def _equal_to(self, value: Value, lane: Value, lanes: Value) -> Value:
        """Returns the lanes (i32) of `lanes` whose value equals that of lane `lane`."""
        lane_value = self.lanes.splat(self.lanes.lane(value, lane))
        return self.b.and_(self.lanes.bits(self.b.icmp_unsigned("==", value, lane_value)), lanes)

    def _match_any(self, value: Value, mask: Value) -> Value:
        """Emits `match.any`: a loop with an iteration for each distinct value, taken from the
        lowest lane that has not been matched. Returns, in each lane of `mask`, the lanes with its
        value, in others 0."""
        b, lanes = self.b, self.lanes.bits(mask)
        b.store(splat_constant(0, I32), self._matched)
        b.store(lanes, self._remaining)
        head, body, done = (
            b.append_basic_block(name) for name in ("match", "match_value", "matched")
        )
        b.branch(head)
        b.position_at_end(head)
        left = b.load(self._remaining, typ=I32)
        b.cbranch(b.icmp_unsigned("!=", left, I32(0)), body, done)
        b.position_at_end(body)
        # Lanes matched before have other values, so the lanes that equal this one are all left.
        equal = self._equal_to(value, self._lowest(left), lanes)
        before = b.load(self._matched, typ=vector(I32))
        b.store(b.select(self.lanes.mask(equal), self.lanes.splat(equal), before), self._matched)
        b.store(b.and_(left, b.not_(equal)), self._remaining)
        b.branch(head)
        b.position_at_end(done)
        return b.load(self._matched, typ=vector(I32))

    def _reduce(self, modifiers: Modifiers, value: Value, mask: Value) -> Value:
        """Returns the result of `redux` over the lanes of a mask, an i32: of floats the extreme, of
        integers `min` and `max` by the type's signedness, or another operation."""
        type = modifiers.scalar()
        name = modifiers.text("op", "")
        if type.is_float:
            return self._float_extreme(modifiers, value, mask)
        if name in ("min", "max"):
            name = ("s" if type.is_signed else "u") + name
        return self._reduce_integers(name, value, mask)

    def _reduce_integers(self, name: str, value: Value, mask: Value) -> Value:
        """Reduces the lanes of a mask to an i32 by LLVM's integer reduction `name`; other lanes
        contribute its identity."""
        identity = splat_constant(_IDENTITY[name], I32)
        chosen = self.b.select(mask, value, identity)
        return self.lanes.intrinsic(f"llvm.vector.reduce.{name}.v{LANES}i32", I32, [chosen])

    def _float_extreme(self, modifiers: Modifiers, value: Value, mask: Value) -> Value:
        """Returns the bits of the least or greatest float (`.abs`: magnitude) of the lanes of a
        mask.

        Bits are mapped so that their order as signed integers is that of the numbers, -0 below +0:
        all but the sign of negative ones are inverted. The result is the canonical NaN if no lane
        has a number, or, with `.NaN`, if some lane has a NaN; else NaNs are ignored."""
        b, size = self.b, splat_constant(0x7FFFFFFF, I32)
        nan = b.and_(b.fcmp_unordered("uno", value, value), mask)
        bits = b.bitcast(value, vector(I32))
        if "abs" in modifiers:
            bits = b.and_(bits, size)
        # The mapping keeps the sign, so applying it again maps the extreme key back to its number.
        key = b.xor(bits, b.and_(b.ashr(bits, splat_constant(31, I32)), size))
        numbers = b.and_(mask, b.not_(nan))
        extreme = self._reduce_integers("s" + modifiers.text("op", ""), key, numbers)
        extreme = b.xor(extreme, b.and_(b.ashr(extreme, I32(31)), I32(0x7FFFFFFF)))
        counted = self.lanes.any(nan) if "NaN" in modifiers else I1(0)
        none = b.or_(counted, b.not_(self.lanes.any(numbers)))
        return b.select(none, I32(CANONICAL_NAN[32]), extreme)


_IDENTITY = {
    "add": 0,
    "and": -1,
    "or": 0,
    "xor": 0,
    "umin": -1,
    "umax": 0,
    "smin": 0x7FFFFFFF,
    "smax": -0x80000000,
}
"""The identity of each reduction, which inactive lanes contribute."""
