"""Divergence in native control flow.

Every basic block is emitted twice. In the convergent copy all lanes that still live are active, so
a branch on which they agree is a plain jump. A branch on which they part pushes an entry on the
warp's reconvergence stack and goes on in the divergent copy; there a block that is some branch's
reconvergence point first asks the stack. When the stack is empty again, all lanes have met and the
code returns to the convergent copy.

The rules of the stack are those of the reference machine (`machine.reference`): one program counter
and an active mask for a warp, immediate post-dominators as reconvergence points.
"""

from __future__ import annotations

from enum import Enum

from llvmlite import ir

from warploom.codegen.environment import Slot, State, Status
from warploom.codegen.frame import ENTRY_WORDS, Frame
from warploom.codegen.helpers import call
from warploom.codegen.lanes import I32, I64, PTR, Value
from warploom.ptx.ir import Instruction, Register

NO_BLOCK = -1
"""Stands where a stack entry or the top register names no block."""

RECONVERGENCE, JOIN_MASK, OTHER_BLOCK, OTHER_MASK, BRANCH = range(5)
"""The words of a stack entry."""


class Copy(Enum):
    """Which of the two copies of a block."""

    CONVERGENT = "c"
    DIVERGENT = "d"


class Control:
    """The blocks of a warp function in both copies, and every way between them."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.program = frame.program
        count = len(self.program.blocks)
        self.blocks = {
            (copy, index): self._append(f"{copy.value}{index}")
            for copy in Copy
            for index in range(count)
        }
        self.joins = self._joins()
        self.others = self._others()
        self._arrivals = {index: self._append(f"arrive{index}") for index in sorted(self.joins)}
        self._headers: dict[tuple[Copy, int], ir.Block] = {}
        self.resumes: list[tuple[Copy, int]] = []

    def _append(self, name: str) -> ir.Block:
        return self.frame.function.append_basic_block(name)

    def _branches(self) -> list[tuple[int, int, int]]:
        """(block, taken target, next block) of every guarded branch."""
        found: list[tuple[int, int, int]] = []
        for block in self.program.blocks:
            last = self.program.instructions[block.stop - 1]
            if splits(last) and len(block.successors) == 2:
                found.append((block.index, *block.successors))  # type: ignore[arg-type]
        return found

    def _joins(self) -> frozenset[int]:
        """Blocks at which parted lanes may meet; the virtual exit always is one."""
        points = {self.program.reconvergence[b] for b, _, _ in self._branches()}
        return frozenset(points | {self.program.exit})

    def _others(self) -> dict[int, list[int]]:
        """By reconvergence point, the blocks at which lanes may wait for their turn."""
        waiting: dict[int, set[int]] = {index: set() for index in self.joins}
        for block, taken, following in self._branches():
            point = self.program.reconvergence[block]
            if point not in (taken, following):
                waiting[point].add(taken)
        return {point: sorted(blocks) for point, blocks in waiting.items()}

    # ---- ways between blocks --------------------------------------------------------------------

    def go(self, copy: Copy, index: int, origin: int) -> None:
        """Jump from block `origin` to block `index` in a copy; `exit` ends the path."""
        self.b.branch(self.way(copy, index, origin))

    def way(self, copy: Copy, index: int, origin: int) -> ir.Block:
        """Where to jump to get there. A way back looks at the fuel first."""
        if index != self.program.exit and index <= origin:
            return self._header(copy, index)
        return self._entrance(copy, index)

    def _entrance(self, copy: Copy, index: int) -> ir.Block:
        if index == self.program.exit and copy is Copy.CONVERGENT:
            return self._ended()
        if index in self.joins and copy is Copy.DIVERGENT:
            return self._arrivals[index]
        return self.blocks[copy, index]

    def _ended(self) -> ir.Block:
        if not hasattr(self, "_end"):
            self._end = self._append("ended")
            with self.b.goto_block(self._end):
                self.frame.leave(Status.ENDED)
        return self._end

    def _header(self, copy: Copy, index: int) -> ir.Block:
        """The block through which loops come back: ends the call where the host wants it."""
        if (copy, index) not in self._headers:
            header = self._append(f"back.{copy.value}{index}")
            self._headers[copy, index] = header
            with self.b.goto_block(header):
                self._poll()
                self.b.branch(self._entrance(copy, index))
        return self._headers[copy, index]

    def _poll(self) -> None:
        b, frame = self.b, self.frame
        spent = b.icmp_signed("<", b.load(frame.fuel, typ=I64), I64(0))
        with b.if_then(spent, likely=False):
            frame.record(Slot.FUEL, b.load(frame.fuel, typ=I64))
            status = call(self.lanes, "poll", frame.environment)
            at = self.lanes.slot(frame.environment, int(Slot.FUEL))
            b.store(b.load(at, typ=I64), frame.fuel)
            with b.if_then(b.icmp_unsigned("!=", status, I64(0)), likely=False):
                b.ret(status)

    # ---- branches -------------------------------------------------------------------------------

    def branch(self, copy: Copy, block: int, taken: Value, instruction: int) -> None:
        """A guarded branch at the end of `block`; `taken` are the active lanes that take it."""
        target, following = self.program.blocks[block].successors
        b, lanes = self.b, self.lanes
        mask = self.frame.mask()
        goes, stays = lanes.bits(taken), lanes.bits(b.and_(mask, b.not_(taken)))
        all_stay, some_stay = self._append("stay"), self._append("some")
        b.cbranch(b.icmp_unsigned("==", goes, I32(0)), all_stay, some_stay)
        with b.goto_block(all_stay):
            self.go(copy, following, block)
        b.position_at_end(some_stay)
        all_go, parted = self._append("go"), self._append("parted")
        weights = b.cbranch(b.icmp_unsigned("==", stays, I32(0)), all_go, parted)
        if copy is Copy.CONVERGENT:
            weights.set_weights([99, 1])
        with b.goto_block(all_go):
            self.go(copy, target, block)
        b.position_at_end(parted)
        self.frame.count(self.frame.layout.branches[instruction], I64(1))
        self._part(copy, block, goes, stays, instruction)

    def _part(self, copy: Copy, block: int, goes: Value, stays: Value, instruction: int) -> None:
        """Active lanes go both ways: one side first, the other waits on the stack."""
        target, following = self.program.blocks[block].successors
        point = self.program.reconvergence[block]
        everyone = self.lanes.bits(self.frame.mask())
        if point not in (target, following):
            self._push(point, everyone, target, goes, instruction)
            self._continue(stays, following, block)
            return
        onwards, mask = (following, stays) if point == target else (target, goes)
        if copy is Copy.DIVERGENT and target != following:
            fresh, joined = self._append("push"), self._append("joined")
            known = self.b.icmp_signed("==", self.b.load(self.frame.top, typ=I32), I32(point))
            self.b.cbranch(known, joined, fresh)
            self.b.position_at_end(fresh)
            self._push(point, everyone, NO_BLOCK, I32(0), instruction)
            self.b.branch(joined)
            self.b.position_at_end(joined)
        else:
            self._push(point, everyone, NO_BLOCK, I32(0), instruction)
        self._continue(mask, onwards, block)

    def _continue(self, bits: Value, index: int, origin: int) -> None:
        self.b.store(self.lanes.mask(bits), self.frame.active)
        self.go(Copy.DIVERGENT, index, origin)

    def leave_lanes(self, copy: Copy, block: int, leaving: Value | None) -> None:
        """`ret` or `exit` at the end of `block`, for some lanes or (None) for all active ones."""
        if leaving is None:
            self.go(copy, self.program.exit, block)
            return
        b = self.b
        following = self.program.blocks[block].successors[-1]
        rest = b.and_(self.frame.mask(), b.not_(leaving))
        some, none = self._append("remain"), self._append("gone")
        b.cbranch(self.lanes.any(rest), some, none)
        with b.goto_block(none):
            self.go(copy, self.program.exit, block)
        b.position_at_end(some)
        b.store(rest, self.frame.active)
        self.go(copy, following, block)

    # ---- the stack ------------------------------------------------------------------------------

    def _word(self, depth: Value, word: int) -> Value:
        index = self.b.add(self.b.mul(depth, I32(ENTRY_WORDS)), I32(word))
        return self.b.gep(self.frame.context(0), [self.b.zext(index, I64)], source_etype=I32)

    def _push(
        self, point: int, join: Value, other: int, other_mask: Value, instruction: int
    ) -> None:
        b = self.b
        depth = b.load(self.frame.depth, typ=I32)
        entry = (I32(point), join, I32(other), other_mask, I32(instruction))
        for word, value in enumerate(entry):
            b.store(value, self._word(depth, word))
        b.store(b.add(depth, I32(1)), self.frame.depth)
        b.store(I32(point), self.frame.top)

    def emit_arrivals(self) -> None:
        """Emit the blocks in which the divergent copy reaches a possible meeting point."""
        for index, block in self._arrivals.items():
            self.b.position_at_end(block)
            if index == self.program.exit:
                self._arrive_at_exit(block)
            else:
                self._arrive(index, block)

    def _arrive(self, index: int, arrival: ir.Block) -> None:
        b, frame = self.b, self.frame
        meets = self._append(f"meet{index}")
        top = b.load(frame.top, typ=I32)
        onwards = self.blocks[Copy.DIVERGENT, index]
        b.cbranch(b.icmp_signed("==", top, I32(index)), meets, onwards)
        b.position_at_end(meets)
        entry = b.sub(b.load(frame.depth, typ=I32), I32(1))
        self._other_side(index, entry)
        b.store(self.lanes.mask(b.load(self._word(entry, JOIN_MASK), typ=I32)), frame.active)
        self._count_meeting(entry)
        self._pop(entry)
        empty = b.icmp_unsigned("==", entry, I32(0))
        b.cbranch(empty, self.blocks[Copy.CONVERGENT, index], arrival)

    def _arrive_at_exit(self, arrival: ir.Block) -> None:
        """The path's lanes are gone; go on with whoever waits. Only entries that meet at the exit
        can be left: a point that post-dominates a branch is passed before the exit."""
        b, frame = self.b, self.frame
        entry = b.sub(b.load(frame.depth, typ=I32), I32(1))
        self._other_side(self.program.exit, entry)
        self._pop(entry)
        b.cbranch(b.icmp_unsigned("==", entry, I32(0)), self._ended(), arrival)

    def _other_side(self, point: int, entry: Value) -> None:
        """Switch to the lanes that wait in the entry, if any do."""
        b, blocks = self.b, self.others[point]
        if not blocks:
            return
        at = self._word(entry, OTHER_MASK)
        waiting = b.load(at, typ=I32)
        switch, done = self._append(f"switch{point}"), self._append(f"done{point}")
        b.cbranch(b.icmp_unsigned("!=", waiting, I32(0)), switch, done)
        b.position_at_end(switch)
        b.store(self.lanes.mask(waiting), self.frame.active)
        b.store(I32(0), at)
        chosen = b.load(self._word(entry, OTHER_BLOCK), typ=I32)
        targets = b.switch(chosen, self.blocks[Copy.DIVERGENT, blocks[0]])
        for block in blocks[1:]:
            targets.add_case(I32(block), self.blocks[Copy.DIVERGENT, block])
        b.position_at_end(done)

    def _count_meeting(self, entry: Value) -> None:
        """One more reconvergence for the branch that pushed the entry."""
        b = self.b
        branch = b.zext(b.load(self._word(entry, BRANCH), typ=I32), I64)
        table = self.frame.module.globals["meetings"]
        place = b.load(b.gep(table, [I64(0), branch], source_etype=table.value_type), typ=I64)
        self.lanes.add_to(self.lanes.slot(self.frame.counts, place), I64(1))

    def _pop(self, entry: Value) -> None:
        b = self.b
        b.store(entry, self.frame.depth)
        below = b.select(b.icmp_unsigned("==", entry, I32(0)), I32(0), b.sub(entry, I32(1)))
        point = b.load(self._word(below, RECONVERGENCE), typ=I32)
        empty = b.icmp_unsigned("==", entry, I32(0))
        b.store(b.select(empty, I32(NO_BLOCK), point), self.frame.top)

    # ---- suspension -----------------------------------------------------------------------------

    def suspend(self, copy: Copy, block: int, state: dict[State, Value]) -> None:
        """Leave at the end of `block`, to come back at the one that follows it."""
        following = self.program.blocks[block].successors[-1]
        frame = self.frame
        frame.save(self._kept(copy, following))
        self.resumes.append((copy, block))
        frame.set_state(State.RESUME, I64(len(self.resumes)))
        for field, value in state.items():
            frame.set_state(field, value)
        frame.leave(Status.BARRIER)

    def emit_resumes(self) -> dict[int, ir.Block]:
        """The ways back in, by the number that `suspend` left in the state."""
        ways: dict[int, ir.Block] = {}
        for number, (copy, block) in enumerate(self.resumes, 1):
            following = self.program.blocks[block].successors[-1]
            ways[number] = self._append(f"resume{number}")
            self.b.position_at_end(ways[number])
            self.frame.restore(self._kept(copy, following))
            self.go(copy, following, block)
        return ways

    def _kept(self, copy: Copy, following: int) -> frozenset[Register]:
        """What a warp must keep that goes on at a block: in the divergent copy also what lanes
        that wait elsewhere will read."""
        if copy is Copy.DIVERGENT:
            return self.frame.shared_over_blocks
        return self.program.live_in[following] if following < self.program.exit else frozenset()


def splits(instruction: Instruction) -> bool:
    """Whether it can send lanes of a warp both ways."""
    return instruction.guard is not None and instruction.operation.name == "bra"


def meeting_table(frame: Frame) -> None:
    """A constant of the module: where each branch instruction's meetings are counted."""
    branches = frame.layout.branches
    size = len(frame.program.instructions)
    places = [I64(branches[i] + 1 if i in branches else 0) for i in range(size)]
    type = ir.ArrayType(I64, size)
    table = ir.GlobalVariable(frame.module, type, "meetings")
    table.linkage, table.global_constant = "internal", True
    table.initializer = ir.Constant(type, places)
    table.type = PTR
