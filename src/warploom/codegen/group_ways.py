"""Emits the guards of accesses at addresses with shapes, and the exits where these fail.

Accesses of a basic block from one register are looked at together, once (`codegen.access_cache`).
Where a block has several, its code is a fast version: it leaves at the first access that is not
known for a slow version of the block, in which all accesses go the general way.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.analysis.program import Block
from warploom.analysis.shapes import Reading
from warploom.codegen.access_cache import AccessCache
from warploom.codegen.groups import Form, Group, find_groups
from warploom.codegen.lanes import I1, I32, I64, LANES, Value, selection
from warploom.codegen.memory import MemoryCode
from warploom.codegen.passes import Pass
from warploom.codegen.put_off import PutOff
from warploom.codegen.stepped import find_stepped
from warploom.codegen.transfers import WORD_BYTES
from warploom.core.types import unsigned
from warploom.ptx.ir import Address, Instruction, Register, Symbol

EIGHT = ir.VectorType(I64, 8)

RARELY = (1 << 20, 1)
"""The weights of a way that is hardly ever left: what is live there stays in registers."""

HURRIED = 4
"""Accesses of a block from which on it has two versions."""


class GroupWays:
    """Emits what is asked of the groups of one block at a time, and where code leaves."""

    def __init__(self, memory: MemoryCode, reading: Reading) -> None:
        self.memory, self.reading = memory, reading
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self.cache, self.puts = AccessCache(memory, reading), PutOff(memory)
        self.groups: dict[int, Group] = {}
        self._careful: dict[int, ir.Block] = {}
        self._all_on = False
        """True where it is known that all lanes are on where no guard says otherwise."""
        self._passing: dict[int, Group] = {}
        """The accesses so far that their groups will count together, at the last of each."""
        self.hurries = False
        """True while the fast version of a block is emitted."""
        self.fetches_ahead = False
        """Whether the block's loads at consecutive places ask for what lies ahead, as they would
        come to wait behind stores that each wait for a line."""

    def begin(self, block: Block, *, masked: bool) -> None:
        """Find the groups of a block, before its code. `masked`: some lanes run it while others
        wait; such a block has one version."""
        self._forget()
        self.cache.begin(straight=True)
        self.groups.clear()
        self._careful.clear()
        does = self.frame.variant.does
        if self.frame.convergent and not self.memory.never_inlined and does(Pass.GROUPS):
            walking = not masked and does(Pass.WALKS)
            self.groups = find_groups(self.memory, self.reading, block, walking=walking)
        sure = {i: group for i, group in self.groups.items() if group.form is Form.SHAPE}
        stepped: dict[int, Group] = {}
        if not masked and does(Pass.PUT_OFF):
            stepped = find_stepped(self.memory, self.reading, block, sure)
        self.groups = _without(self.groups, stepped) | stepped
        for group in {id(group): group for group in self.groups.values()}.values():
            if len(group.members) > 1:
                group.unknown = self.frame.variable(I1)
        self.fetches_ahead = bool(stepped)
        several = len(sure) >= HURRIED and does(Pass.VERSIONS)
        self.hurries = not masked and (self.fetches_ahead or several)

    def careful(self) -> dict[int, ir.Block]:
        """Begin the slow version of a block, if there is to be one: the blocks in which code comes
        to it, by instruction. There each access is on its own."""
        self._forget()
        self.cache.begin(straight=False)
        self.hurries = False
        groups, self.groups = self.groups, {}
        for index, group in groups.items():
            if group.form is Form.ANY or self._has_shape(index, group):
                self.groups[index] = group.without_values(index)
        return dict(self._careful)

    def _has_shape(self, index: int, group: Group) -> bool:
        """Returns whether an access's own register has the shape of its group's, from which it may
        have walked."""
        made = self.frame.program.instructions[index]
        address = made.operands[0 if group.shape.op == "store" else 1]
        assert isinstance(address, Address)
        if isinstance(address.base, Symbol):
            return True
        known = self.frame.here.get(address.base) if isinstance(address.base, Register) else None
        return group.form is Form.SHAPE and known == group.base

    def _forget(self) -> None:
        self._passing.clear()
        self.puts.forget()
        self._all_on = False

    def mask(self, group: Group, made: Instruction, on: Value) -> Value | None:
        """Return the mask of a known access: None where all lanes are on, as they are in fast
        code."""
        return None if self.leaves(group) else on

    def leaves(self, group: Group) -> bool:
        """Returns whether code leaves for the slow version where a group is not known. It does not
        where a group may well be at any places."""
        return self.hurries and group.form is not Form.ANY

    def known(self, index: int, group: Group, made: Instruction, on: Value) -> Value:
        """Returns whether the accesses of a group are like earlier ones; a fast version goes on
        only if they are."""
        if group.known is None:
            follows = self._find(group, made, on)
            if self.leaves(group):
                self._or_leave(index, self._is_known(group, made, on))
                group.known = ir.Constant(I1, 1)
                self._tell(group, group.known)
            elif group.alone in (None, group.members[0][0]):
                group.known = self._or_learn(group, made, on, follows)
                self._tell(group, group.known)
            else:
                group.known = self._like_first(group, made, on, follows)
        assert group.known is not None
        return group.known

    def _or_learn(self, group: Group, made: Instruction, on: Value, follows: Value | None) -> Value:
        """Returns whether a group is known, by now or from now on."""
        b, who = self.b, self.cache.lane_set(made, on)
        known = self.cache.knows(group, who)
        unknown = b.not_(known)
        if follows is not None:
            known, unknown = b.and_(known, follows), b.and_(unknown, follows)
        before, learn, done = b.block, *(b.append_basic_block(n) for n in ("learn", "learned"))
        b.cbranch(unknown, learn, done).set_weights([1, 1 << 20])
        assert group.place is not None
        _, there = group.place
        b.position_at_end(learn)
        learned = self.cache.learn(group, who)
        can = b.icmp_unsigned("!=", learned, I64(0))
        counter, behind = b.sub(learned, I64(1)), b.block
        b.branch(done)
        b.position_at_end(done)
        result, place = b.phi(I1), b.phi(I64)
        for phi, value, origin in (
            (result, known, before), (result, can, behind),
            (place, there, before), (place, counter, behind),
        ):  # fmt: skip
            phi.add_incoming(value, origin)
        self.cache.found(group, who, place)
        return result

    def _find(self, group: Group, made: Instruction, on: Value) -> Value | None:
        """Find where a group reaches; at addresses without a shape, returns whether the lanes that
        are on follow the first of their run by one step."""
        b = self.b
        group.strides = {s: self._stride(s) for s in group.walked}
        address = made.operands[0 if group.shape.op == "store" else 1]
        if group.form is Form.SHAPE:
            group.bases = self.memory.operands.base(address, group.base.width)
            back = self._back(group)
            if back is not None:
                group.bases = b.sub(group.bases, self.lanes.splat(back, group.base.width))
            group.firsts = [self.lanes.lane(group.bases, run) for run in range(group.base.width)]
            return None
        places = self.memory.operands.base(address)
        back = self._back(group)
        if back is not None:
            places = b.sub(places, self.lanes.splat(back))
        if group.is_apart:
            # What lanes that are off reach does not matter: they have the place of the first.
            first = self.lanes.lane(places, 0)
            group.bases, group.firsts = b.select(on, places, self.lanes.splat(first)), [first]
            return None
        heads = selection(range(0, LANES, LANES // group.base.width))
        group.bases = b.shuffle_vector(places, places, heads)
        group.firsts = [self.lanes.lane(group.bases, run) for run in range(group.base.width)]
        group.step = b.sub(self.lanes.lane(places, 1), group.firsts[0])
        follows = self._follows(places, LANES // group.base.width, group.step, on)
        if group.shape.type.bytes < WORD_BYTES:  # what is no vector needs words
            size = I64(group.shape.size)
            follows = b.and_(follows, b.icmp_unsigned("==", group.step, size))
        return follows

    def _back(self, group: Group) -> Value | None:
        """Returns how far the register of an access lies behind that of its group."""
        back: Value | None = None
        for stride, laps in (group.ahead(group.alone) if group.alone is not None else {}).items():
            further = self.b.mul(group.strides[stride], I64(laps))
            back = further if back is None else self.b.add(back, further)
        return back

    def _follows(self, places: Value, length: int, step: Value, on: Value) -> Value:
        """Returns whether in each run of so many lanes those that are on reach where its first lane
        does, and on from there by a step."""
        b, lanes, zeros = self.b, self.lanes, ir.Constant(EIGHT, None)
        numbers = ir.Constant(EIGHT, [I64(lane % length) for lane in range(EIGHT.count)])
        behind = b.mul(numbers, lanes.splat(step, EIGHT.count))
        differ: Value = zeros
        for begin in range(0, LANES, EIGHT.count):
            part = range(begin, begin + EIGHT.count)
            heads = b.shuffle_vector(places, places, selection(n // length * length for n in part))
            expected = b.add(heads, behind)
            if begin % length:
                further = lanes.splat(b.mul(step, I64(begin % length)), EIGHT.count)
                expected = b.add(expected, further)
            other = b.xor(b.shuffle_vector(places, places, selection(part)), expected)
            here = b.shuffle_vector(on, on, selection(part))
            differ = b.or_(differ, b.select(here, other, zeros))
        return b.not_(lanes.some(b.icmp_unsigned("!=", differ, zeros)))

    def _tell(self, group: Group, known: Value) -> None:
        """Tell the others of a group, which may be in other code, if the first is known."""
        if len(group.members) > 1:
            self.b.store(self.b.not_(known), group.unknown)

    def _like_first(
        self, group: Group, made: Instruction, on: Value, follows: Value | None
    ) -> Value:
        """Returns whether an access on its own is known, as the first of its group was."""
        known = self.cache.knows(group, self.cache.lane_set(made, on))
        known = known if follows is None else self.b.and_(known, follows)
        return self.b.and_(known, self.b.not_(self.b.load(group.unknown, typ=I1)))

    def _is_known(self, group: Group, made: Instruction, on: Value) -> Value:
        """Returns whether fast code can go on: the group is known, and all lanes are on."""
        b = self.b
        holds = self.cache.knows(group, self.cache.everyone())
        if not self._all_on or made.guard is not None:
            holds = b.and_(holds, b.icmp_unsigned("==", self.lanes.bits(on), I32(-1)))
            self._all_on = self._all_on or made.guard is None
        apart = self.puts.apart(group)
        return holds if apart is None else b.and_(holds, apart)

    def _or_leave(self, index: int, holds: Value) -> None:
        """Leave at an instruction for the slow version, unless a condition holds."""
        b, onward, unknown = self.b, *(self.b.append_basic_block() for _ in range(2))
        b.cbranch(holds, onward, unknown).set_weights(RARELY)
        self._careful[index] = b.append_basic_block(f"careful{index}")
        b.position_at_end(unknown)
        self.leave()
        b.branch(self._careful[index])
        b.position_at_end(onward)

    def _stride(self, register: Register) -> Value:
        return self.lanes.lane(self.memory.operands.read(register, unsigned(64), width=1), 0)

    def put_off(self, index: int, group: Group, made: Instruction, on: Value) -> None:
        """Leave at the first store of a group unless all can be put off to the last."""
        if index != group.members[0][0]:
            return
        b, address = self.b, made.operands[0]
        assert isinstance(address, Address)
        assert isinstance(address.base, Register)
        holds = self.puts.look(group, self.memory.operands.read(address.base, unsigned(64)))
        holds = b.and_(holds, b.icmp_unsigned("==", self.lanes.bits(on), I32(-1)))
        # Loads that come later look themselves.
        for crossed in {id(g): g for g in map(self.groups.__getitem__, group.crossed)}.values():
            apart = self.puts.apart(crossed) if crossed.known is not None else None
            holds = holds if apart is None else b.and_(holds, apart)
        self._or_leave(index, holds)
        self._all_on = True

    def count(self, index: int, group: Group) -> None:
        """Count one more access of a group that is known; the last of them counts for all."""
        if group.alone is not None:
            self.cache.count_alone(group, index)
            return
        if index != group.members[-1][0]:
            self._passing[index] = group
            return
        self._passing = {i: other for i, other in self._passing.items() if other is not group}
        self.cache.count(group, I64(1))

    def leave(self) -> None:
        """Code leaves the block where some of a group's accesses have passed: they are counted now.
        Stores that have been put off are done."""
        self.puts.do()
        groups = {id(group): group for group in self._passing.values()}
        for group in groups.values():
            assert group.known is not None
            with self.b.if_then(group.known):
                self.cache.count(group, I64(1))
                for index, _ in group.members:
                    if index not in self._passing:
                        self.cache.take_back(group, index)


def _without(groups: dict[int, Group], stepped: dict[int, Group]) -> dict[int, Group]:
    """Groups of which no access is put off."""
    others = {id(groups[index]) for index in stepped if index in groups}
    return {index: group for index, group in groups.items() if id(group) not in others}
