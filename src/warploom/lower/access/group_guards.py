"""Emits the guards of accesses at addresses with shapes, and the exits where these fail.

Accesses of a basic block from one register are looked at together, once
(`lower.access.range_cache`). Where a block has several, its code is a fast version: it leaves at
the first access that is not known for a slow version of the block, in which all accesses go the
general way. A warp with lanes off leaves at the first of all: for the slow version, or, where that
would look at accesses one by one that can be looked at together, for a masked version of the block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from llvmlite import ir

from warploom.analysis.shape_transfer import OperandShapes
from warploom.core.types import unsigned
from warploom.ir.access_groups import AccessGroup
from warploom.ir.access_plans import Exit, Guard
from warploom.ir.warp_ir import BlockAccesses
from warploom.llvm.lanes import I1, I32, I64, Value
from warploom.lower.access.group_places import GroupPlaces
from warploom.lower.access.groups import Group
from warploom.lower.access.memory import MemoryCode
from warploom.lower.access.range_cache import AccessCache
from warploom.lower.access.store_batching import StoreBatch
from warploom.program.program import ProgramBlock
from warploom.ptx.ir import Address, Instruction, Register

RARELY = (1 << 20, 1)
"""The weights of a way that is hardly ever left: what is live there stays in registers."""

SOMETIMES = (8, 1)
"""The weights of a way that warps at the edges of a grid leave, which may be most of all."""


class GroupGuards:
    """Emits what is asked of the groups of one block at a time, and where code leaves."""

    def __init__(self, memory: MemoryCode, reading: OperandShapes) -> None:
        self.memory, self.reading = memory, reading
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self.cache, self.puts = AccessCache(memory, reading), StoreBatch(memory)
        self._places = GroupPlaces(memory)
        self.groups: dict[int, Group] = {}
        self._slow_paths: dict[int, ir.Block] = {}
        self._masked: dict[int, ir.Block] = {}
        self._accesses = BlockAccesses()
        self._all_on = False
        """True where it is known that all lanes are on where no guard says otherwise."""
        self._passing: dict[int, Group] = {}
        """The accesses so far that their groups will count together, at the last of each."""
        self.fetches_ahead = False
        """Whether the block's loads at consecutive places ask for what lies ahead, as they would
        come to wait behind stores that each wait for a line."""

    def begin(self, block: ProgramBlock, *, masked: bool) -> None:
        """Take up the groups of a block, before its code. `masked`: some lanes run it while others
        wait; such a block has one version."""
        self._forget()
        self.cache.sets.begin(straight=True)
        self.groups.clear()
        self._slow_paths.clear()
        self._masked.clear()
        if not self.frame.registers.convergent:
            self.fetches_ahead, self._accesses = False, BlockAccesses()
            return
        facts = self.frame.facts.blocks[block.index]
        self._accesses = facts.masked if masked else facts.accesses
        self.fetches_ahead = self._accesses.defers
        for found in self._accesses.groups:
            self._take_up(Group(found))

    def _take_up(self, group: Group) -> None:
        """Takes up a group of the block, by each of its accesses."""
        if len(group.members) > 1:
            group.unknown = self.frame.variable(I1)
        self.groups |= dict.fromkeys((index for index, _ in group.members), group)

    def begin_batch(
        self, groups: Iterable[AccessGroup], checked: Collection[int], fetches: Value
    ) -> None:
        """Begins a block of a loop in a batch of iterations, whose `groups` of accesses are given;
        those are `checked` that begin with these accesses. `fetches` says whether they ask for what
        the next warps access."""
        self._forget()
        self.cache.sets.begin(straight=True)
        self.groups.clear()
        self._slow_paths.clear()
        self.fetches_ahead = False
        for found in groups:
            batched = found.members[0][0] in checked
            self._take_up(Group(found, batched=batched, fetches=fetches if batched else None))

    def place(self, found: AccessGroup) -> Group:
        """Returns a group at its places as of now, where its first access stands."""
        group = Group(found)
        made = self.frame.program.instructions[found.members[0][0]]
        self._places.find(group, made, self.frame.active.mask())
        return group

    def slow_path(self) -> dict[int, ir.Block]:
        """Begin the slow version of a block, if there is to be one: the blocks in which code comes
        to it, by instruction. There each access is on its own, and none is deferred."""
        self._forget()
        self.cache.sets.begin(straight=False)
        groups, self.groups = self.groups, {}
        for index, group in groups.items():
            if group.plan.guard is not Guard.COMPARED:
                self.groups[index] = group.without_values(index)
        return dict(self._slow_paths)

    def masked(self) -> dict[int, ir.Block]:
        """Begins the masked version of a block, if there is to be one: the block in which code
        comes to it, by the instruction that it begins with."""
        self._forget()
        self.cache.sets.begin(straight=True)
        self.groups.clear()
        for found in self._accesses.groups:
            if found.plan.guard is not Guard.COMPARED:
                self._take_up(Group(replace(found, plan=found.plan.in_one_version())))
        return dict(self._masked)

    def _forget(self) -> None:
        self._passing.clear()
        self.puts.forget()
        self._all_on = False

    def mask(self, group: Group, on: Value) -> Value | None:
        """Return the mask of a known access: None where all lanes are on, as they are in fast
        code."""
        return None if self.leaves(group) else on

    def leaves(self, group: Group) -> bool:
        """Returns whether code for an access goes on only where its group is known: it has left for
        the slow version where that is not so, or the batch has been checked."""
        return group.batched or group.plan.exit is Exit.SLOW_VERSION

    def known(self, index: int, group: Group, made: Instruction, on: Value) -> Value:
        """Returns whether the accesses of a group are like earlier ones; a fast version goes on
        only if they are."""
        if group.known is None:
            follows = self._places.find(group, made, on)
            if group.batched:
                group.known = ir.Constant(I1, 1)
            elif self.leaves(group):
                if not self._all_on and made.guard is None and self._has_masked():
                    self._leave_masked(index, on)
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
        b, who = self.b, self.cache.sets.of(made, on)
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

    def _tell(self, group: Group, known: Value) -> None:
        """Tell the others of a group, which may be in other code, if the first is known."""
        if len(group.members) > 1:
            self.b.store(self.b.not_(known), group.unknown)

    def _like_first(
        self, group: Group, made: Instruction, on: Value, follows: Value | None
    ) -> Value:
        """Returns whether an access on its own is known, as the first of its group was."""
        known = self.cache.knows(group, self.cache.sets.of(made, on))
        known = known if follows is None else self.b.and_(known, follows)
        return self.b.and_(known, self.b.not_(self.b.load(group.unknown, typ=I1)))

    def _is_known(self, group: Group, made: Instruction, on: Value) -> Value:
        """Returns whether fast code can go on: the group is known, and all lanes are on."""
        b = self.b
        holds = self.cache.knows(group, self.cache.sets.everyone())
        if not self._all_on or made.guard is not None:
            holds = b.and_(holds, b.icmp_unsigned("==", self.lanes.bits(on), I32(-1)))
            self._all_on = self._all_on or made.guard is None
        disjoint = self.puts.disjoint(group)
        return holds if disjoint is None else b.and_(holds, disjoint)

    def _or_leave(self, index: int, holds: Value) -> None:
        """Leave at an instruction for the slow version, unless a condition holds."""
        b, onward, unknown = self.b, *(self.b.append_basic_block() for _ in range(2))
        b.cbranch(holds, onward, unknown).set_weights(RARELY)
        self._slow_paths[index] = b.append_basic_block(f"slow_path{index}")
        b.position_at_end(unknown)
        self.leave()
        b.branch(self._slow_paths[index])
        b.position_at_end(onward)

    def _has_masked(self) -> bool:
        """Returns whether warps with lanes off have a version: accesses are looked at together
        that the slow one looks at one by one, and nothing of the block is underway."""
        groups = [one for one in self._accesses.groups if one.plan.guard is Guard.CACHE]
        return any(len(one.members) > 1 for one in groups) and not (
            self._passing or self._slow_paths
        )

    def _leave_masked(self, index: int, on: Value) -> None:
        """Leaves at the first access of a block for the masked version, where lanes are off."""
        b, onward = self.b, self.b.append_basic_block()
        self._masked[index] = b.append_basic_block(f"masked{index}")
        all_on = b.icmp_unsigned("==", self.lanes.bits(on), I32(-1))
        b.cbranch(all_on, onward, self._masked[index]).set_weights(SOMETIMES)
        b.position_at_end(onward)
        self._all_on = True

    def batch_store(self, index: int, group: Group, made: Instruction, on: Value) -> None:
        """Leave at the first store of a group unless all can be put off to the last."""
        if index != group.members[0][0]:
            return
        b, address = self.b, made.operands[0]
        assert isinstance(address, Address)
        assert isinstance(address.base, Register)
        holds = self.puts.look(group, self.memory.operands.read(address.base, unsigned(64)))
        holds = b.and_(holds, b.icmp_unsigned("==", self.lanes.bits(on), I32(-1)))
        # Loads that come later look themselves.
        loads = map(self.groups.__getitem__, group.accesses.crossed)
        for crossed in {id(one): one for one in loads}.values():
            disjoint = self.puts.disjoint(crossed) if crossed.known is not None else None
            holds = holds if disjoint is None else b.and_(holds, disjoint)
        self._or_leave(index, holds)
        self._all_on = True

    def count(self, index: int, group: Group) -> None:
        """Count one more access of a group that is known; the last of them counts for all."""
        if group.batched:
            return
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
