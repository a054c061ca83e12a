"""Divergence in native control flow.

Every basic block is emitted twice. In the convergent copy all lanes that still live are active, so
a branch on which they agree is a plain jump. A branch on which they part makes a node in the warp's
table and goes on in the divergent copy; there a block that is some branch's reconvergence point
first asks the table. When all living lanes have met, the code returns to the convergent copy.

Who meets whom is decided by the rules of `machine.reference.splits`; nodes themselves are for
`codegen.nodes`. Where a warp cannot go on so — its turn is used up, lanes wait for others that
another split holds — it leaves with the reason; `rules.scheduling` then says which split it takes
up next, and it comes back there.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from llvmlite import ir

from warploom.analysis.partings import Partings
from warploom.analysis.uses import reads
from warploom.codegen.environment import Slot, Status
from warploom.codegen.frame import Frame
from warploom.codegen.helpers import call
from warploom.codegen.lanes import I1, I32, I64, Value
from warploom.codegen.nodes import NodeCode
from warploom.codegen.relay import Relay
from warploom.codegen.saved import Saved
from warploom.ptx.ir import Register
from warploom.rules.convergence import (
    ARRIVED,
    BLOCK,
    EXPECTED,
    LIVE,
    MASK,
    NONE,
    OTHER_BLOCK,
    OTHER_MASK,
    TOP,
)
from warploom.rules.plan_words import (
    FROM_TABLE,
    RESUME,
)


class Copy(Enum):
    """Which of the two copies of a block."""

    CONVERGENT = "c"
    DIVERGENT = "d"


class Control:
    """The blocks of a warp function in both copies, and every way between them.

    `independent`: each thread has its own program counter (7.0 and later). `mixes`: lanes that part
    take turns by a policy, instead of one side after the other. `chooses`: one side after the
    other, and the policy says which goes first. `asides`: by block, the one that some lanes run
    under a mask while the others wait, where they part at its end (`analysis.asides`).
    """

    def __init__(
        self,
        frame: Frame,
        saved: Saved,
        asides: Mapping[int, int],
        *,
        independent: bool,
        mixes: bool,
        chooses: bool,
    ) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.saved = saved
        self.program, self.independent = frame.program, independent
        self.mixes, self.chooses = mixes, chooses
        count = len(self.program.blocks)
        self.blocks = {
            (copy, index): self._append(f"{copy.value}{index}")
            for copy in Copy
            for index in range(count)
        }
        self._asides = asides
        self.beside = {index: self._append(f"aside{index}") for index in sorted(asides.values())}
        self.nodes = NodeCode(frame)
        self._partings = Partings(frame.program, independent, mixes, chooses)
        self.joins, self.suspends = self._partings.joins, self._partings.suspends
        if self.suspends and frame.shapes:
            saved.keep_steady(self._partings.steady)
        self.relay = Relay(frame, scheduled=self.suspends)
        self._arrivals = {index: self._append(f"arrive{index}") for index in sorted(self.joins)}
        self._headers: dict[tuple[Copy, int], ir.Block] = {}
        self._leaving: dict[tuple[Status, bool], ir.Block] = {}
        """Where a warp leaves, by the reason, and whether it has saved its registers."""
        self.resumes: list[int] = []
        self._stale = frame.variable(I1)
        self.steps: dict[int, ir.Block] = {}
        """By instruction, where the divergent copy is stepped into in the middle of a block."""
        self._reshaped: dict[int, ir.Block] = {}
        self._settlings: dict[int, ir.Block] = {}

    def _append(self, name: str) -> ir.Block:
        return self.frame.function.append_basic_block(name)

    def runs(self, copy: Copy, index: int) -> bool:
        """Whether a block can run in a copy."""
        shaped = bool(self.frame.shapes)
        return copy is Copy.CONVERGENT or index in self._partings.parted or shaped

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
                self.relay.end()
        return self._end

    def _header(self, copy: Copy, index: int) -> ir.Block:
        """The block through which loops come back: there a turn ends that is used up."""
        if (copy, index) not in self._headers:
            header = self._append(f"back.{copy.value}{index}")
            self._headers[copy, index] = header
            with self.b.goto_block(header):
                fuel = self.frame.get(self.frame.fuel)
                with self.b.if_then(self.b.icmp_signed("<", fuel, I64(0)), likely=False):
                    was, self.frame.convergent = self.frame.convergent, copy is Copy.CONVERGENT
                    self.give_way(Status.TURN_END, index)
                    self.frame.convergent = was
                self.b.branch(self._entrance(copy, index))
        return self._headers[copy, index]

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
        if copy is Copy.CONVERGENT and block in self._asides:
            self._step_aside(block, goes, stays, instruction)
        else:
            self._part(copy, block, goes, stays, instruction)

    def _step_aside(self, block: int, goes: Value, stays: Value, instruction: int) -> None:
        """Some lanes run a block, and meet the others right behind it."""
        target, _ = self.program.blocks[block].successors
        body = self._asides[block]
        self.frame.count(self.frame.layout.branches[instruction] + 1, I64(1))
        lanes = goes if body == target else stays
        self.b.store(self.lanes.mask(lanes), self.frame.active)
        self.b.branch(self.beside[body])

    def step_back(self, index: int) -> None:
        """The end of such a block: all living lanes go on behind it."""
        live = self.b.load(self.frame.live, typ=I32)
        self.b.store(self.lanes.mask(live), self.frame.active)
        self.go(Copy.CONVERGENT, self.program.blocks[index].successors[0], index)

    def begin(self) -> None:
        """A warp begins in the convergent copy."""
        self.b.store(I1(0), self._stale)

    def branch_together(self, copy: Copy, block: int, taken: Value) -> None:
        """A branch at the end of `block` that all lanes take, or none."""
        target, following = self.program.blocks[block].successors
        self.b.cbranch(taken, *(self.way(copy, way, block) for way in (target, following)))

    def _part(self, copy: Copy, block: int, goes: Value, stays: Value, instruction: int) -> None:
        """Active lanes go both ways: one side first, the other waits in a node."""
        b = self.b
        self.spread_behind(block)
        target, following = self.program.blocks[block].successors
        point = self.program.reconvergence[block]
        if point not in (target, following):
            self._part_sides(block, (target, goes), (following, stays), instruction)
            return
        first, mask, waiting = (
            (following, stays, goes) if point == target else (target, goes, stays)
        )
        known = self.nodes.gathers_at(point)
        fresh, joined = self._append("push"), self._append("joined")
        b.cbranch(known, joined, fresh)
        b.position_at_end(fresh)
        self.nodes.push(point, I64(NONE), I32(0), instruction)
        b.branch(joined)
        b.position_at_end(joined)
        self.nodes.add_lanes(self.frame.node(self.frame.get(self.frame.top), ARRIVED), waiting)
        self._continue(mask, first, block)

    def _part_sides(
        self, block: int, taken: tuple[int, Value], through: tuple[int, Value], instruction: int
    ) -> None:
        """Two sides of a branch, each a block and its lanes, meet at neither: one waits."""
        b, frame = self.b, self.frame
        point = self.program.reconvergence[block]
        if not self.chooses:
            self.nodes.push(point, I64(taken[0]), taken[1], instruction)
            self._continue(through[1], through[0], block)
            return
        given = frame.pointer(Slot.PLAN_AT), frame.context(0), frame.warp
        taken_first = b.icmp_signed("!=", call(self.lanes, "branch_first", *given), I64(0))
        waits_at = b.select(taken_first, I64(through[0]), I64(taken[0]))
        waiting = b.select(taken_first, through[1], taken[1])
        self.nodes.push(point, waits_at, waiting, instruction)
        take, fall = self._append("take"), self._append("fall")
        b.cbranch(taken_first, take, fall)
        b.position_at_end(take)
        self._continue(taken[1], taken[0], block)
        b.position_at_end(fall)
        self._continue(through[1], through[0], block)

    def _continue(self, bits: Value, index: int, origin: int) -> None:
        self.b.store(self.lanes.mask(bits), self.frame.active)
        if self.mixes:
            self.give_way(Status.PARTED, index)
        else:
            self.go(Copy.DIVERGENT, index, origin)

    def spread_behind(self, block: int) -> None:
        """Lanes may part at the end of a block: keep lane by lane what they will read."""
        if self.frame.convergent:
            ways = self.program.blocks[block].successors
            live = frozenset[Register]().union(*(self._live(way) for way in ways))
            self.frame.part(live)

    def step_apart(self, index: int, condition: Value) -> None:
        """Go on with an instruction in the divergent copy if a condition holds. Its guard has been
        counted."""
        if index not in self.steps:
            self.steps[index] = self._append(f"step{index}")
        block = next(b for b in self.program.blocks if b.start <= index < b.stop)
        with self.b.if_then(condition, likely=False):
            made = self.program.instructions[index : block.stop]
            behind = frozenset[Register]().union(*(self._live(way) for way in block.successors))
            behind = behind.union(*(reads(one) for one in made))
            self.frame.part(behind)
            self.b.store(I1(1), self._stale)
            self.b.branch(self.steps[index])

    def _reshape(self, index: int) -> ir.Block:
        """Where all living lanes go on together at a block, and registers were kept lane by lane:
        in the convergent copy if they still have their shapes."""
        if not self.frame.shapes or index == self.program.exit:
            return self._entrance(Copy.CONVERGENT, index)
        if index not in self._reshaped:
            self._reshaped[index] = self._append(f"reshape{index}")
            with self.b.goto_block(self._reshaped[index]):
                holds = self.frame.gather(self._live(index))
                self.b.store(self.b.not_(holds), self._stale)
                self.b.cbranch(holds, self._settled(index), self.blocks[Copy.DIVERGENT, index])
        return self._reshaped[index]

    def _settled(self, index: int) -> ir.Block:
        """Where all living lanes go on together at a block, and all registers have their shapes."""
        if not self.frame.steady or index == self.program.exit:
            return self._entrance(Copy.CONVERGENT, index)
        if index not in self._settlings:
            self._settlings[index] = self._append(f"settle{index}")
            with self.b.goto_block(self._settlings[index]):
                was, self.frame.convergent = self.frame.convergent, True
                self.saved.settle(self._live(index))
                self.frame.convergent = was
                self.b.branch(self._entrance(Copy.CONVERGENT, index))
        return self._settlings[index]

    def leave_lanes(self, copy: Copy, block: int, leaving: Value | None) -> None:
        """`ret` or `exit` at the end of `block`, for some lanes or (None) for all active ones."""
        if leaving is None:
            self.go(copy, self.program.exit, block)
            return
        b, frame = self.b, self.frame
        following = self.program.blocks[block].successors[-1]
        gone_bits = self.lanes.bits(b.and_(frame.mask(), leaving))
        rest = b.and_(frame.mask(), b.not_(leaving))
        some, none = self._append("remain"), self._append("gone")
        b.cbranch(self.lanes.any(rest), some, none)
        with b.goto_block(none):
            self.go(copy, self.program.exit, block)
        b.position_at_end(some)
        b.store(rest, frame.active)
        self._forget(gone_bits)
        if copy is Copy.DIVERGENT:
            with b.if_then(b.icmp_signed(">=", frame.get(frame.top), I64(0))):
                self.nodes.add_lanes(frame.node(frame.get(frame.top), ARRIVED), gone_bits)
        self.go(copy, following, block)

    def _forget(self, gone: Value) -> None:
        """These lanes have exited."""
        live = self.b.load(self.frame.live, typ=I32)
        self.b.store(self.b.and_(live, self.b.not_(gone)), self.frame.live)

    # ---- nodes ----------------------------------------------------------------------------------

    def emit_arrivals(self) -> None:
        """Emit the blocks in which the divergent copy reaches a possible meeting point."""
        for index, block in self._arrivals.items():
            self.b.position_at_end(block)
            if index == self.program.exit:
                self._arrive_at_exit()
            else:
                self._arrive(index, block)

    def _arrive(self, index: int, arrival: ir.Block) -> None:
        b, frame = self.b, self.frame
        meets = self._append(f"meet{index}")
        b.cbranch(self.nodes.gathers_at(index), meets, self.blocks[Copy.DIVERGENT, index])
        b.position_at_end(meets)
        node = self._gather(index)
        expected = frame.get(frame.node(node, EXPECTED))
        b.store(self.lanes.mask(b.trunc(expected, I32)), frame.active)
        self.nodes.count_meeting(node)
        self.nodes.pop(node)
        together = self._append(f"together{index}")
        b.cbranch(b.icmp_signed("<", frame.get(frame.top), I64(0)), together, arrival)
        b.position_at_end(together)
        whole = b.icmp_unsigned("==", self.lanes.bits(frame.mask()), b.load(frame.live, typ=I32))
        everyone = self._append(f"everyone{index}")
        b.cbranch(whole, everyone, self.blocks[Copy.DIVERGENT, index])
        b.position_at_end(everyone)
        stale = b.load(self._stale, typ=I1)
        b.cbranch(stale, self._reshape(index), self._settled(index))

    def _gather(self, point: int) -> Value:
        """Join the innermost node at its point: begin its other side if that waits, give way if
        lanes are missing, else go on with the node, which is given."""
        b, frame = self.b, self.frame
        node = frame.get(frame.top)
        arrived = self.nodes.add_lanes(frame.node(node, ARRIVED), self.lanes.bits(frame.mask()))
        self._other_side(point, node)
        if self.suspends:
            missing = b.icmp_unsigned("!=", arrived, frame.get(frame.node(node, EXPECTED)))
            with b.if_then(missing, likely=False):
                self.give_way(Status.GATHERS, point)
        return node

    def _arrive_at_exit(self) -> None:
        """The path's lanes are gone; go on with whoever waits. Only nodes that gather at the exit
        can be left: a point that post-dominates a branch is passed before the exit."""
        b, frame = self.b, self.frame
        self._forget(self.lanes.bits(frame.mask()))
        inner, inside, outer = (self._append(name) for name in ("inner", "inside", "outer"))
        b.branch(inner)
        b.position_at_end(inner)
        b.cbranch(b.icmp_signed(">=", frame.get(frame.top), I64(0)), inside, outer)
        b.position_at_end(inside)
        node = self._gather(self.program.exit)
        expected = b.trunc(frame.get(frame.node(node, EXPECTED)), I32)
        b.store(self.lanes.mask(expected), frame.active)
        self.nodes.pop(node)
        b.branch(inner)
        b.position_at_end(outer)
        if self.suspends:
            left = b.icmp_unsigned("!=", b.load(frame.live, typ=I32), I32(0))
            with b.if_then(left, likely=False):
                self.give_way(Status.GATHERS, self.program.exit)
        b.branch(self._ended())

    def _other_side(self, point: int, node: Value) -> None:
        """Switch to the lanes that wait in the node, if any do."""
        b, frame, blocks = self.b, self.frame, self._partings.others[point]
        if not blocks:
            return
        at = frame.node(node, OTHER_MASK)
        waiting = b.trunc(frame.get(at), I32)
        switch, done = self._append(f"switch{point}"), self._append(f"done{point}")
        b.cbranch(b.icmp_unsigned("!=", waiting, I32(0)), switch, done)
        b.position_at_end(switch)
        b.store(self.lanes.mask(waiting), frame.active)
        b.store(I64(0), at)
        chosen = frame.get(frame.node(node, OTHER_BLOCK))
        targets = b.switch(chosen, self.blocks[Copy.DIVERGENT, blocks[0]])
        for block in blocks[1:]:
            targets.add_case(I64(block), self.blocks[Copy.DIVERGENT, block])
        b.position_at_end(done)

    # ---- suspension -----------------------------------------------------------------------------

    def give_way(self, status: Status, index: int | Value) -> None:
        """Leave with a reason; the running lanes, if they can, go on at block `index` later."""
        b, frame = self.b, self.frame
        whole = frame.convergent and status is not Status.PARTED and isinstance(index, int)
        if whole:
            # All lanes will go on there: nobody needs anything else.
            assert isinstance(index, int)
            self.saved.save(self._live(index))
        elif frame.convergent:
            known = isinstance(index, int)
            frame.spread(self._live(index) if known else frame.shared_over_blocks)
        if (status, whole) not in self._leaving:
            name = f"leave.{status.name.lower()}{'.saved' if whole else ''}"
            self._leaving[status, whole] = self._append(name)
        b.store(I64(index) if isinstance(index, int) else index, frame.table(BLOCK))
        b.branch(self._leaving[status, whole])

    def wait_together(self, block: int, instruction: int, simple: int | None) -> None:
        """The warp as a whole waits at a barrier at the end of `block`, all living lanes active.
        `simple` is the barrier's number if that is a constant and it awaits all threads. Code goes
        on where the warp leaves."""
        following = self.program.blocks[block].successors[-1]
        self.saved.save_together(self._live(following))
        self.resumes.append(block)
        if simple is not None:
            self.relay.wait(len(self.resumes), instruction, simple)
        self.frame.set_state(RESUME, I64(len(self.resumes)))

    def emit_leaving(self) -> None:
        """Emit the blocks through which a warp leaves: everything that it may need is saved."""
        for (status, saved), block in self._leaving.items():
            self.b.position_at_end(block)
            if not saved:
                self.saved.save(self.frame.shared_over_blocks)
            self.frame.set_state(RESUME, I64(FROM_TABLE))
            self.frame.leave(status)

    def emit_resumes(self) -> dict[int, ir.Block]:
        """The ways back in, by what the state's RESUME says."""
        ways: dict[int, ir.Block] = {}
        for number, block in enumerate(self.resumes, 1):
            following = self.program.blocks[block].successors[-1]
            ways[number] = self._append(f"resume{number}")
            self.b.position_at_end(ways[number])
            self.frame.convergent = True
            self.saved.take_up_together(self._live(following))
            self.frame.convergent = False
            self.b.store(I1(0), self._stale)
            self.b.branch(self._entrance(Copy.CONVERGENT, following))
        ways[FROM_TABLE] = self._from_table()
        return ways

    def _from_table(self) -> ir.Block:
        """Take up the split that the table names, in the convergent copy if it is everyone."""
        b, frame = self.b, self.frame
        way = self._append("take.up")
        b.position_at_end(way)
        self.saved.restore_head()
        index = frame.get(frame.table(BLOCK))
        everyone = b.icmp_signed("==", frame.get(frame.table(MASK)), frame.get(frame.table(LIVE)))
        alone = b.icmp_signed("<", frame.get(frame.table(TOP)), I64(0))
        switches = {copy: self._append(f"take.up.{copy.value}") for copy in Copy}
        b.cbranch(b.and_(everyone, alone), *switches.values())
        for copy, block in switches.items():
            b.position_at_end(block)
            b.store(I1(1), self._stale)
            if copy is Copy.DIVERGENT:
                self.saved.take_up(frame.shared_over_blocks)
            targets = b.switch(index, self._entrance(copy, self.program.exit))
            for place in sorted(self._partings.resumable):
                apart = copy is Copy.DIVERGENT
                to = self._entrance(copy, place) if apart else self._taken_up(place)
                targets.add_case(I64(place), to)
        return way

    def _taken_up(self, place: int) -> ir.Block:
        """Where all lanes are taken up at a block."""
        block = self._append(f"take.up.{place}")
        with self.b.goto_block(block):
            self.saved.take_up(self._live(place))
            self.b.branch(self._reshape(place))
        return block

    def _live(self, block: int) -> frozenset[Register]:
        return self.program.live_in[block] if block < self.program.exit else frozenset()
