"""Which way the accesses of a block's groups go: the short one, or by the careful version of the
block; and how those by rows are counted.

Accesses of a basic block from one register are looked at together, once (`codegen.remembered`).
Where there are several, the code hurries: it goes the short way without a look back, and leaves at
the first access that cannot for a second, careful version of the block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from llvmlite import ir

from warploom.analysis.program import Block
from warploom.analysis.shapes import Reading
from warploom.codegen.access import Shape
from warploom.codegen.environment import KINDS_AT, MEMO_KIND, MEMO_PASSES
from warploom.codegen.groups import Form, Group, find_groups
from warploom.codegen.lanes import I1, I32, I64, Value
from warploom.codegen.memory import MemoryCode
from warploom.codegen.put_off import PutOff
from warploom.codegen.remembered import RARELY, Remembered
from warploom.codegen.stepped import find_stepped
from warploom.core.types import unsigned
from warploom.ptx.ir import Address, Instruction, Register

HURRIED = 4
"""Accesses of a block from which on it has two versions."""


class GroupWays:
    """Emits what is asked of the groups of one block at a time, and where code leaves."""

    def __init__(self, memory: MemoryCode, reading: Reading) -> None:
        self.memory, self.reading = memory, reading
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self._remembered, self.puts = Remembered(memory), PutOff(memory)
        self.groups: dict[int, Group] = {}
        self._careful: dict[int, ir.Block] = {}
        self._passing: dict[int, Group] = {}
        """The accesses so far that their groups will count together, at the last of each."""
        self.hurries = False
        """Whether code is made that leaves for the careful one wherever the short way ends."""
        self.fetches_ahead = False
        """Whether the block's loads at consecutive places ask for what lies ahead, as they would
        come to wait behind stores that each wait for a line."""
        self._all_on = False
        """Whether it is known there that all lanes are on where no guard says otherwise."""

    def forget(self) -> None:
        """Begin a block without groups."""
        self.groups.clear()
        self.hurries = False

    def begin(self, block: Block) -> None:
        """Find the groups of a block, before its code."""
        self.groups.clear()
        if self.frame.convergent and not self.memory.never_inlined:
            self.groups = find_groups(self.memory, self.reading, block, walking=True)
        stepped = find_stepped(self.memory, self.reading, block, self.groups)
        self.groups |= stepped
        self._careful.clear()
        self._passing.clear()
        self.puts.forget()
        self._all_on = False
        self.fetches_ahead = bool(stepped)
        self.hurries = self.fetches_ahead or len(self.groups) >= HURRIED

    def careful(self) -> dict[int, ir.Block]:
        """Begin the careful version of a block, if there is to be one: the blocks in which code
        comes to it, by instruction."""
        self.hurries = self._all_on = False
        self._passing.clear()
        self.puts.forget()
        together = {i: g for i, g in self.groups.items() if g.form is not Form.STEPPED}
        self.groups.clear()
        for index, group in together.items():
            own = [member for member in group.members if member[0] == index]
            leader = group.members[0][0]
            alone = replace(group, members=own, firsts=[], strides={}, known=None, leader=leader)
            self.groups[index] = alone
        return dict(self._careful)

    def known(self, index: int, group: Group, made: Instruction, on: Value) -> Value:
        """Whether the accesses of a group can go the short way; where code hurries, it goes on only
        if they can."""
        if group.known is None:
            group.firsts = self._firsts(group, made)
            group.strides = {s: self._stride(s) for s in group.walked}
            if group.leader is not None:
                group.known = self._remembered.looked_at(group, on, group.leader)
            elif self.hurries:
                group.known = self._or_learn(index, group, made, on)
            else:
                group.known = self._remembered.or_learn(group, on)
            self._all_on = self._all_on or (self.hurries and made.guard is None)
        return group.known

    def _or_learn(self, index: int, group: Group, made: Instruction, on: Value) -> Value:
        """Leave unless the short way can be gone. What is learned there is for the next time: a way
        back would cost registers on the short one. What is new of its kind is not learned yet: it
        has to go the general way."""
        holds = self._remembered.holds(group, self._unsure(made, on))
        apart = self.puts.apart(group)

        def learn() -> None:
            matches = self._remembered.matches(group, on)
            with self.b.if_then(self.b.and_(matches, self._remembered.knows_kinds(group))):
                self._remembered.learn(group)

        self._or_leave(index, holds if apart is None else self.b.and_(holds, apart), learn)
        return ir.Constant(I1, 1)

    def _unsure(self, made: Instruction, on: Value) -> Value | None:
        """The lanes that execute an instruction; None where they are known to be all."""
        return None if self._all_on and made.guard is None else on

    def _or_leave(self, index: int, holds: Value, learn: Callable[[], None]) -> None:
        """Leave at an instruction for the careful version, unless a condition holds."""
        b, onward, unknown = self.b, *(self.b.append_basic_block() for _ in range(2))
        b.cbranch(holds, onward, unknown).set_weights(RARELY)
        self._careful[index] = b.append_basic_block(f"careful{index}")
        b.position_at_end(unknown)
        self.leave()
        learn()
        b.branch(self._careful[index])
        b.position_at_end(onward)

    def _firsts(self, group: Group, made: Instruction) -> list[Value]:
        """Where the base leads for the first lane, or that of each row."""
        address = made.operands[0 if group.shape.op == "store" else 1]
        assert isinstance(address, Address)
        assert isinstance(address.base, Register)
        base = self.memory.operands.read(address.base, unsigned(64), width=group.base.width)
        return [self.lanes.lane(base, row) for row in range(group.base.width)]

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
        unsure = self._unsure(made, on)
        if unsure is not None:
            holds = b.and_(holds, b.icmp_unsigned("==", self.lanes.bits(unsure), I32(-1)))
        # Loads that come later look themselves.
        for crossed in {id(g): g for g in map(self.groups.__getitem__, group.crossed)}.values():
            apart = self.puts.apart(crossed) if crossed.known is not None else None
            holds = holds if apart is None else b.and_(holds, apart)
        self._or_leave(index, holds, lambda: None)
        self._all_on = True

    def count(self, index: int, group: Group) -> None:
        """One more access by rows of its kind; where code hurries, a group's are counted as one."""
        leader, last = group.members[0][0], group.members[-1][0]
        if not self.hurries or leader == last:
            self._count_kind(index, group.shape)
        elif index != last:
            self._passing[index] = group
        else:
            self._passing = {i: other for i, other in self._passing.items() if other is not group}
            row = self.memory.places.row(leader, group.shape.space)
            self.lanes.add_to(self.lanes.slot(row, MEMO_PASSES), I64(1))

    def leave(self) -> None:
        """Code leaves the block where some of a group's loads have passed: they count alone. Stores
        that have been put off are done."""
        self.puts.do()
        for index, group in self._passing.items():
            self._count_kind(index, group.shape)

    def _count_kind(self, index: int, shape: Shape) -> None:
        row = self.memory.places.row(index, shape.space)
        at = self.b.add(self._remembered.word(row, MEMO_KIND), I64(KINDS_AT))
        self.lanes.add_to(self.lanes.slot(row, at), I64(1))
