"""Loads, stores and atomics of a warp: checked, counted, and as fast as their addresses allow.

The common access — every lane on, consecutive and aligned — is inlined: a few comparisons, one
count, one vector load or store. Any other goes through a function made once for its kind, which
checks every lane, counts by the device's rules and gathers or scatters.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from warploom.codegen.environment import Slot
from warploom.codegen.helpers import call
from warploom.codegen.lanes import (
    I8,
    I32,
    I64,
    LANES,
    PTR,
    Lanes,
    Value,
    lane_numbers,
    splat_constant,
    vector,
)
from warploom.codegen.lower import Lowering
from warploom.codegen.pattern_places import pattern_place
from warploom.core.types import U64, ScalarType
from warploom.isa.ops.mbarrier import COMPLETE_TX
from warploom.isa.spec import Operation
from warploom.isa.terms import Term
from warploom.ptx.ir import Space
from warploom.rules.caches import LOCAL_BASE
from warploom.rules.choice import AccessRules
from warploom.rules.fields import TRANSACTIONS
from warploom.rules.patterns import DOUBT, MASK, OFFSETS, REPEATS, TRIALS
from warploom.rules.plan_words import (
    CHANGES,
)

STACK = "stack"
"""The route of what a call keeps in local memory: it is not counted."""

DATA_BYTES = 3 * LANES * 16
"""Room for the operands or the result of the widest access, lane by lane, part by part."""


@dataclass(frozen=True)
class Shape:
    """What an access moves in each lane: `parts` elements of `type`.

    `route` is the way that a load asks for (`analysis.accesses`), or STACK.
    """

    op: str
    space: Space
    type: ScalarType
    parts: int = 1
    route: str = ""

    @property
    def size(self) -> int:
        """Bytes a lane."""
        return self.type.bytes * self.parts

    @property
    def part_bytes(self) -> int:
        """Bytes of one part in all lanes: where the next begins in the data buffer."""
        return self.type.bytes * LANES

    @property
    def element(self) -> ir.IntType:
        return ir.IntType(self.type.bits)


ACCESS_SIGNATURE = ir.FunctionType(I64, [PTR, PTR, PTR, vector(I64), I32, PTR, PTR, I64])
"""`fault = access(environment, row, cache, addresses, mask, data, base, limit)`.

`base` and `limit` are where the space's memory begins on the host and how long it is; global memory
needs neither. `data` holds what is stored, or receives what is loaded.
"""


SAME_RESULT = ("sem", "scope", "space", "L2::cache_hint")
"""Modifiers of an atomic that do not change what it computes."""


class AccessFunctions:
    """The out-of-line functions of a module, made when they are first asked for."""

    def __init__(self, module: ir.Module, rules: AccessRules, *, shuffles: bool) -> None:
        self.module, self.rules, self.shuffles = module, rules, shuffles

    def plain(self, shape: Shape) -> Value:
        """The function for a load or a store."""
        moved = f"{shape.space.value}.{shape.type.name}x{shape.parts}.{shape.route}"
        return self._get(f"access.{shape.op}.{moved}", shape, None)

    def atomic(self, shape: Shape, operation: Operation, count: int) -> Value:
        """The function for an atomic with `count` operands: the data hold their elements, at most
        two of them, then those of the old value."""
        chosen = operation.modifiers.values.items()
        text = ".".join(choice for slot, choice in chosen if slot not in SAME_RESULT)
        name = f"access.atomic.{text}x{shape.parts}.{count}.{shape.space.value}"
        return self._get(name, shape, operation.combine(count))

    def completion(self) -> Value:
        """The function that tells an mbarrier of bytes which have come; counted as a store."""
        shape = Shape("store", Space.SHARED, U64)
        return self._get("access.complete_tx", shape, COMPLETE_TX)

    def _get(self, name: str, shape: Shape, combine: Term | None) -> Value:
        if name not in self.module.globals:
            _AccessBody(self.module, name, shape, combine, self.rules, self.shuffles).emit()
        return self.module.globals[name]


class _AccessBody:
    """Emits one access function."""

    def __init__(
        self,
        module: ir.Module,
        name: str,
        shape: Shape,
        combine: Term | None,
        rules: AccessRules,
        shuffles: bool,
    ) -> None:
        self.shape, self.combine, self.rules, self.shuffles = shape, combine, rules, shuffles
        self.function = ir.Function(module, ACCESS_SIGNATURE, name)
        self.function.linkage = "internal"
        self.function.attributes.add("noinline")
        block = self.function.append_basic_block("entry")
        self.lanes = Lanes(module, ir.IRBuilder(block))
        self.b = self.lanes.b
        self._scratch = self.lanes.alloca(vector(I64))
        (
            self.environment,
            self.row,
            self.cache,
            self.addresses,
            self.bits,
            self.data,
            self.base,
            self.limit,
        ) = self.function.args

    def emit(self) -> None:
        with self.b.if_then(self.b.icmp_unsigned("==", self.bits, I32(0))):
            self.b.ret(I64(0))
        wide = self.b.zext(self.bits, I64)
        fault = self._check(wide)
        with self.b.if_then(self.b.icmp_unsigned("!=", fault, I64(0))):
            self.b.ret(fault)
        offsets = self._physical(self.addresses)
        if self.shape.space is not Space.PARAM and self.shape.route != STACK:
            self._count(wide, offsets)
            self._look_up(wide, offsets)
        if self.combine is not None:
            self._lane_by_lane(wide, offsets)
        else:
            chosen = self.shuffles and self.shape.space is not Space.LOCAL
            if self.shape.op == "store" and chosen:
                self.bits = self.b.trunc(self._lasting(wide, offsets), I32)
            self._move()
        if self.shape.op == "store":
            count_change(self.lanes, self.environment, I64(1))
        self.b.ret(I64(0))

    def _told(self, places: Value) -> Value:
        """The lanes' places in memory, for a helper that is to look at them."""
        self.b.store(places, self._scratch)
        return self._scratch

    def _first(self, bits: Value, places: Value) -> Value:
        """The place of the lowest lane that is on; mostly that is lane 0."""
        b, names = self.b, ("lowest", "other", "first")
        lowest, other, done = (self.function.append_basic_block(name) for name in names)
        on = b.icmp_unsigned("!=", b.and_(bits, I64(1)), I64(0))
        b.cbranch(on, lowest, other)
        b.position_at_end(lowest)
        zero = self.lanes.lane(places, 0)
        b.branch(done)
        b.position_at_end(other)
        lane = self.lanes.intrinsic("llvm.cttz.i64", I64, [bits, ir.Constant(ir.IntType(1), 1)])
        found = b.load(self.lanes.slot(self._told(places), lane), typ=I64)
        b.branch(done)
        b.position_at_end(done)
        first = b.phi(I64)
        first.add_incoming(zero, lowest)
        first.add_incoming(found, other)
        return first

    def _count(self, bits: Value, offsets: Value) -> None:
        """Count the access: one more like an earlier one of its row, or by the device's rules."""
        b = self.b
        place = pattern_place(self.lanes, self.rules, bits, self._first(bits, offsets))
        pattern = self.lanes.slot(self.row, place.at)
        relative = b.sub(offsets, self.lanes.splat(place.base))
        known = b.load(self.lanes.slot(pattern, OFFSETS), typ=vector(I64), align=8)
        moved = b.icmp_unsigned("!=", relative, known)
        moved = self.lanes.any(b.and_(moved, self.lanes.mask(self.bits)))
        other = b.icmp_unsigned("!=", b.load(self.lanes.slot(pattern, MASK), typ=I64), bits)
        with b.if_else(b.or_(moved, other), likely=False) as (new, again):
            with new:
                scratch = self._told(offsets)
                kept = self._worth_keeping(pattern)
                with b.if_then(kept):
                    call(self.lanes, "settle_pattern", scratch, bits, place.slot, self.row)
                self._count_by_rules(scratch, bits)
                with b.if_then(kept):
                    told = self._told(relative)
                    call(self.lanes, "keep_pattern", told, bits, place.slot, self.row)
            with again:
                self.lanes.add_to(self.lanes.slot(pattern, REPEATS), I64(1))

    def _worth_keeping(self, pattern: Value) -> Value:
        """Whether a new pattern is kept in place of one (`rules.patterns`)."""
        b, at = self.b, self.lanes.slot(self.row, DOUBT)
        repeats = b.load(self.lanes.slot(pattern, REPEATS), typ=I64)
        came_again = b.icmp_unsigned("!=", repeats, I64(0))
        doubt = b.select(came_again, I64(0), b.add(b.load(at, typ=I64), I64(1)))
        b.store(doubt, at)
        few = b.icmp_unsigned("<", doubt, I64(TRIALS))
        turn = b.icmp_unsigned("==", b.and_(doubt, I64(TRIALS - 1)), I64(0))
        return b.or_(few, turn)

    def _count_by_rules(self, scratch: Value, bits: Value) -> None:
        """Count the access by the device's rules, and keep it if it is the worst of its row."""
        shape, size = self.shape, I64(self.shape.size)
        space = shape.space.value
        before = self.b.load(self.lanes.slot(self.row, TRANSACTIONS), typ=I64)
        cost = self.rules.cost(space, shape.op, route=shape.route)
        call(self.lanes, cost, scratch, bits, size, self.row)
        call(self.lanes, "keep_example", scratch, bits, before, self.row)
        if shape.op == "atomic":
            call(self.lanes, "count_passes", scratch, bits, size, self.row)
        writes = self.rules.writes(space) if shape.op == "store" else None
        if writes is not None:
            call(self.lanes, writes, scratch, bits, size, self.row)

    def _look_up(self, bits: Value, offsets: Value) -> None:
        """Count what the caches have of it, where they are counted."""
        shape, size = self.shape, I64(self.shape.size)
        path = self.rules.path(shape.space.value, shape.op, route=shape.route)
        if path is not None:
            caches = self.b.inttoptr(self._slot(Slot.HIERARCHY_AT), PTR)
            where = (self._slot(Slot.BLOCK), self._place_of_local())
            given = self._told(offsets), bits, size, self.row, caches, I64(path)
            call(self.lanes, "count_cached", *given, *where)

    def _lasting(self, bits: Value, offsets: Value) -> Value:
        """The lanes whose stores last, of those that name one address, where a policy chooses;
        else all store, and the highest lasts (`rules.writes.lasting`)."""
        plan = self.b.inttoptr(self._slot(Slot.PLAN_AT), PTR)
        return call(self.lanes, "lasting", self._told(offsets), bits, plan, self._slot(Slot.BLOCK))

    def _slot(self, slot: Slot) -> Value:
        return self.b.load(self.lanes.slot(self.environment, int(slot)), typ=I64)

    def _place_of_local(self) -> Value:
        """Where the warp's local memory begins among the lines of the caches; else 0."""
        if self.shape.space is not Space.LOCAL:
            return I64(0)
        b, block = self.b, self._slot(Slot.BLOCK)
        inside = b.sub(b.ptrtoint(self.base, I64), self._slot(Slot.LOCAL_AT))
        before = b.mul(block, self._slot(Slot.LOCAL_BYTES))
        return b.add(I64(LOCAL_BASE), b.add(before, inside))

    def _check(self, bits: Value) -> Value:
        """The fault of an access, 0 for none; lanes are looked at one by one only where some lane
        leaves what is known to be its own."""
        b, size = self.b, I64(self.shape.size)
        in_global = self.shape.space in (Space.GLOBAL, Space.CONST)
        low = b.load(self.cache, typ=I64) if in_global else I64(0)
        high = b.load(self.lanes.slot(self.cache, 1), typ=I64) if in_global else self.limit
        room = b.sub(b.sub(high, low), size)
        behind = b.sub(self.addresses, self.lanes.splat(low))
        outside = b.icmp_unsigned(">", behind, self.lanes.splat(room))
        crooked = b.and_(self.addresses, splat_constant(self.shape.size - 1, I64))
        bad = b.or_(outside, b.icmp_unsigned("!=", crooked, splat_constant(0, I64)))
        some = self.lanes.any(b.and_(bad, self.lanes.mask(self.bits)))
        known = b.block
        look, seen = (self.function.append_basic_block(name) for name in ("look", "seen"))
        b.cbranch(b.or_(some, b.icmp_signed("<", room, I64(0))), look, seen)
        b.position_at_end(look)
        fault = self._look(self._told(self.addresses), bits, in_global=in_global)
        b.branch(seen)
        b.position_at_end(seen)
        result = b.phi(I64)
        result.add_incoming(I64(0), known)
        result.add_incoming(fault, look)
        return result

    def _look(self, scratch: Value, bits: Value, *, in_global: bool) -> Value:
        """Check the lanes one by one."""
        size = I64(self.shape.size)
        if not in_global:
            return call(self.lanes, "check_span", scratch, bits, size, self.limit, self.environment)
        write = I64(int(self.shape.op != "load"))
        tables = [
            self.b.inttoptr(self._slot(slot), PTR)
            for slot in (Slot.STARTS_AT, Slot.ENDS_AT, Slot.FLAGS_AT)
        ]
        given = (scratch, bits, size, write, self.environment, *tables, self.cache)
        return call(self.lanes, "check_global", *given)

    def _physical(self, addresses: Value, ahead: int = 0) -> Value:
        """Offsets from the base, `ahead` bytes into the access.

        Local memory is interleaved: word w of lane l is word w * 32 + l.
        """
        b = self.b
        moved = b.add(addresses, splat_constant(ahead, I64)) if ahead else addresses
        if self.shape.space is not Space.LOCAL:
            return moved
        words = b.shl(b.lshr(moved, splat_constant(2, I64)), splat_constant(7, I64))
        inside = b.and_(moved, splat_constant(3, I64))
        return b.add(b.add(words, lane_numbers(I64, 4)), inside)

    def _pointers(self, offsets: Value) -> Value:
        if self.shape.space in (Space.GLOBAL, Space.CONST):
            return self.b.inttoptr(offsets, vector(PTR))
        start = self.lanes.splat(self.b.ptrtoint(self.base, I64))
        return self.b.inttoptr(self.b.add(start, offsets), vector(PTR))

    def _move(self) -> None:
        """Gather into the data buffer or scatter out of it, one piece of an element at a time.

        In local memory an element of 8 or 16 bytes lies in several words.
        """
        element, mask = self.shape.element, self.lanes.mask(self.bits)
        split = self.shape.space is Space.LOCAL and self.shape.type.bytes > 4
        for part in range(self.shape.parts):
            at = self.b.gep(
                self.data, [I64(part * self.shape.part_bytes)], source_etype=ir.IntType(8)
            )
            ahead = part * self.shape.type.bytes
            if split:
                self._move_words(at, ahead, mask)
            elif self.shape.op == "load":
                pointers = self._pointers(self._physical(self.addresses, ahead))
                self.b.store(self.lanes.gather(pointers, mask, element), at, align=16)
            else:
                pointers = self._pointers(self._physical(self.addresses, ahead))
                value = self.b.load(at, typ=vector(element), align=16)
                self.lanes.scatter(value, pointers, mask)

    def _move_words(self, at: Value, ahead: int, mask: Value) -> None:
        """An element of several 4-byte words, each on its own."""
        b, whole, element = self.b, vector(self.shape.element), self.shape.element
        value = b.load(at, typ=whole, align=16)
        if self.shape.op == "load":
            value = ir.Constant(whole, None)
        for word in range(self.shape.type.bytes // 4):
            pointers = self._pointers(self._physical(self.addresses, ahead + 4 * word))
            shift = splat_constant(32 * word, element)
            if self.shape.op == "load":
                found = b.zext(self.lanes.gather(pointers, mask, I32), whole)
                value = b.or_(value, b.shl(found, shift))
            else:
                narrow = b.trunc(b.lshr(value, shift), vector(I32))
                self.lanes.scatter(narrow, pointers, mask)
        if self.shape.op == "load":
            b.store(value, at, align=16)

    def _lane_by_lane(self, bits: Value, offsets: Value) -> None:
        """Read, combine and write in each active lane in turn, the lowest first unless a policy
        chooses."""
        pointers = self.lanes.alloca(vector(I64))
        self.b.store(self._addresses_of(offsets), pointers)
        loop = self.function.append_basic_block("lane")
        done = self.function.append_basic_block("done")
        if self.shuffles:
            changed = self._by_policy(self._told(offsets), bits, pointers, loop, done)
        else:
            changed = self._rising(pointers, loop, done)
        self.b.position_at_end(done)
        count_change(self.lanes, self.environment, changed)

    def _rising(self, pointers: Value, loop: ir.Block, done: ir.Block) -> Value:
        b = self.b
        entry = b.block
        b.branch(loop)
        b.position_at_end(loop)
        left, changed = b.phi(I32), b.phi(I64)
        left.add_incoming(self.bits, entry)
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
        plan = b.inttoptr(self._slot(Slot.PLAN_AT), PTR)
        order = call(self.lanes, "lane_order", scratch, bits, plan, self._slot(Slot.BLOCK))
        entry, turned, behind = b.block, *(self.function.append_basic_block() for _ in range(2))
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
        assert self.combine is not None
        b = self.b
        at = b.inttoptr(b.load(self.lanes.slot(pointers, lane), typ=I64), PTR)
        changed: Value = I64(0)
        for part in range(self.shape.parts):
            here = b.gep(at, [I64(part * self.shape.type.bytes)], source_etype=I8)
            changed = b.add(changed, self._combine(here, part, lane, self.combine))
        return changed

    def _combine(self, at: Value, part: int, lane: Value, term: Term) -> Value:
        """One element of one lane: read it, combine, write it, and keep what was there. Gives 1
        where that changed it."""
        b, count = self.b, self.shape.parts
        single = ir.VectorType(Lowering(self.lanes, 1).type(self.shape.type).element, 1)
        old = b.load(at, typ=single, align=1)
        given = [self._operand(n * count + part, lane, single) for n in (0, 1)]
        new = Lowering(self.lanes, 1)(term, [old, *given])
        b.store(new, at, align=1)
        bits = ir.VectorType(self.shape.element, 1)
        differs = b.icmp_unsigned("!=", b.bitcast(old, bits), b.bitcast(new, bits))
        b.store(old, self._place(2 * count + part, lane), align=1)
        return b.zext(self.lanes.lane(differs, 0), I64)

    def _addresses_of(self, offsets: Value) -> Value:
        return self.b.ptrtoint(self._pointers(offsets), vector(I64))

    def _place(self, part: int, lane: Value) -> Value:
        offset = self.b.mul(lane, I64(self.shape.type.bytes))
        return self.b.gep(
            self.data,
            [self.b.add(offset, I64(part * self.shape.part_bytes))],
            source_etype=ir.IntType(8),
        )

    def _operand(self, part: int, lane: Value, type: ir.Type) -> Value:
        return self.b.load(self._place(part, lane), typ=type, align=1)


def count_change(lanes: Lanes, environment: Value, amount: Value) -> None:
    """Memory may not be what it was: whoever waits for a change may go on (`rules.scheduling`)."""
    plan = lanes.b.load(lanes.slot(environment, int(Slot.PLAN_AT)), typ=I64)
    lanes.add_to(lanes.slot(lanes.b.inttoptr(plan, PTR), CHANGES), amount)
