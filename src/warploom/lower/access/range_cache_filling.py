"""Emits what fills the access caches where an access is in none (`helpers.range_cache_filling`)."""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.environment import ROW_WIDTH, Slot
from warploom.abi.range_cache import (
    ANY_STRIDE,
    GIVEN_UP,
    MISSES,
    STEP_AT,
)
from warploom.helpers.calls import call
from warploom.llvm.lanes import I64, PTR, Value
from warploom.lower.access.groups import Group
from warploom.lower.access.lane_sets import LaneSet, LaneSets
from warploom.lower.access.memory import MemoryCode
from warploom.ptx.ir import Space


class CacheFilling:
    """Emits such calls, for accesses by the sets of lanes of a kernel."""

    def __init__(self, memory: MemoryCode, sets: LaneSets) -> None:
        self.places, self.sets, self.frame = memory.places, sets, memory.frame
        self.lanes, self.b = memory.lanes, memory.b
        self._layout = self.frame.layout.caches
        self._bases: Value | None = None
        self._limits: dict[Space, Value] = {}

    def learn(self, group: Group, who: LaneSet, entry: Value) -> Value:
        """Have the next accesses like those of a group known; `entry`: the address of theirs.
        Returns 0 where the rules are to count this one, else 1 and where it is counted (an i64)."""
        b = self.b
        before, ask, told = b.block, *(b.append_basic_block(n) for n in ("ask", "told"))
        b.cbranch(self._may_learn(who, entry), ask, told)
        b.position_at_end(ask)
        found = self._ask(group, who)
        asked = b.block
        b.branch(told)
        b.position_at_end(told)
        learned = b.phi(I64)
        learned.add_incoming(I64(0), before)
        learned.add_incoming(found, asked)
        return learned

    def _may_learn(self, who: LaneSet, entry: Value) -> Value:
        """Return whether to ask for an entry: not where lanes never have a key, or where their
        entry has seen too many other pitches that never came again."""
        b = self.b
        misses = b.load(self.lanes.slot(entry, MISSES), typ=I64)
        known = b.icmp_unsigned("<", misses, I64(GIVEN_UP))
        return b.and_(b.not_(self.sets.is_strange(who)), known)

    def _ask(self, group: Group, who: LaneSet) -> Value:
        """Call the function that makes an entry, and return what it does."""
        b = self.b
        if self._bases is None:
            self._bases = self.frame.prologue.alloca(ir.ArrayType(I64, STEP_AT + 1), align=64)
        b.store(group.bases, self._bases, align=8)
        if group.step is not None and not group.accesses.is_laid_out:
            b.store(group.step, self.lanes.slot(self._bases, STEP_AT))
        bounds = self._bounds(group)
        if group.shape.space in (Space.GLOBAL, Space.CONST):
            allocations = self.frame.pointer(Slot.ALLOCATIONS_AT)
            writes = I64(int(group.shape.op == "store"))
            given = group.firsts[0], writes, self.frame.environment, allocations, bounds
            call(self.lanes, "find_bounds", *given)
        sets = self.lanes.slot(self.frame.rows, ROW_WIDTH * len(self.frame.layout.rows))
        given = sets, self._words(group), self._bases, who.key, who.number, bounds
        return call(self.lanes, "learn_access", *given)

    def _bounds(self, group: Group) -> Value:
        """Return the address of where the group's space, or the allocation reached last, begins and
        ends."""
        space, prologue = group.shape.space, self.frame.prologue
        if space in (Space.GLOBAL, Space.CONST):
            return self.places.cache(group.members[0][0], space)
        if space not in self._limits:
            at = prologue.alloca(ir.ArrayType(I64, 2), align=16)
            prologue.b.store(I64(0), at)
            prologue.b.store(self.places.limit(space), prologue.slot(at, 1))
            self._limits[space] = at
        return self._limits[space]

    def _words(self, group: Group) -> Value:
        """Return a constant of the module: what is known of a group before it runs."""
        found = group.step is not None and not group.accesses.is_laid_out
        stride = ANY_STRIDE if found else group.base.stride
        words = [group.base.width, stride, group.shape.size, self._layout.unit]
        words += [len(group.members), self._layout.sets, self._layout.runs]
        for index, offset in group.members:
            place = self._layout.places[self.places.number(index, group.shape.space)]
            words += [place, offset]
        name = ".".join(["group", *map(str, words)])
        module = self.frame.module
        if name not in module.globals:
            type = ir.ArrayType(I64, len(words))
            made = ir.GlobalVariable(module, type, name)
            made.linkage, made.global_constant = "internal", True
            made.initializer = ir.Constant(type, [I64(word) for word in words])
            made.type = PTR
        return module.globals[name]
