"""Divergence in native control flow.

A branch of the convergent copy on which all lanes agree is a plain jump. One on which they part
makes a node in the warp's table and goes on in the divergent copy; there a block that is some
branch's reconvergence point first asks the table (`codegen.meetings`).

Who meets whom is decided by the rules of `machine.reference.splits`; nodes themselves are for
`codegen.nodes`. Where a warp cannot go on so, it leaves (`codegen.suspension`).
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from warploom.analysis.uses import reads
from warploom.codegen.blocks import Blocks, Copy
from warploom.codegen.environment import Slot, Status
from warploom.codegen.frame import Frame
from warploom.codegen.helper_calls import call
from warploom.codegen.lanes import I32, I64, Value
from warploom.codegen.leaving import LeavingCode
from warploom.codegen.meetings import Meetings
from warploom.codegen.nodes import NodeCode
from warploom.codegen.relay import Relay
from warploom.codegen.reshaping import Reshaping
from warploom.codegen.saved import Saved
from warploom.codegen.suspension import Suspension
from warploom.codegen.warp_ir import BranchKind
from warploom.ptx.ir import Register
from warploom.rules.warp_table import ARRIVED, NONE


class Control:
    """The blocks of a warp function in both copies, and every way between them.

    `independent`: each thread has its own program counter (7.0 and later). `mixes`: lanes that part
    take turns by a policy, instead of one side after the other. `chooses`: one side after the
    other, and the policy says which goes first.
    """

    def __init__(
        self,
        frame: Frame,
        saved: Saved,
        *,
        independent: bool,
        mixes: bool,
        chooses: bool,
    ) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.program, self.independent = frame.program, independent
        self.mixes, self.chooses = mixes, chooses
        self.suspends = frame.facts.reconvergence.suspends
        saved.keep_steady(frame.facts.steady)
        self.blocks = Blocks(frame)
        self.nodes = NodeCode(frame)
        self.relay = Relay(frame, scheduled=self.suspends)
        self.leaving = LeavingCode(frame, self.nodes)
        self.reshaping = Reshaping(self.blocks, saved, self.leaving)
        self.suspension = Suspension(self.blocks, saved, self.relay, self.reshaping)
        self.meetings = Meetings(self.blocks, self.nodes, self.suspension, self.reshaping)
        self._headers: dict[tuple[Copy, int], ir.Block] = {}
        self.steps: dict[int, ir.Block] = {}
        """By instruction, where the divergent copy is stepped into in the middle of a block."""
        self._beside = frame.variable(I32)
        """The lanes that run together, or wait for those that have stepped aside."""

    def finish(self) -> dict[int, ir.Block]:
        """Emit what the blocks lead to beside each other; gives the ways back in by the sites at
        which a warp waits."""
        with self.b.goto_block(self.blocks.ended):
            self.relay.end(self.suspension.skip_to_end)
        self.meetings.emit()
        resumes = self.suspension.emit_resumes() if self.suspends else {}
        self.suspension.emit_leaving()
        return resumes

    # ---- ways between blocks --------------------------------------------------------------------

    def go(self, copy: Copy, index: int, origin: int) -> None:
        """Jump from block `origin` to block `index` in a copy; `exit` ends the path."""
        self.b.branch(self.way(copy, index, origin))

    def way(self, copy: Copy, index: int, origin: int) -> ir.Block:
        """Returns where to jump to get there, from code for block `origin`."""
        if copy is Copy.DIVERGENT:
            return self._straight_way(copy, index, origin)
        before, behind = (self.frame.shapes.around(block) for block in (origin, index))
        left = [one for one in before if one not in behind and copy is not Copy.ROUND]
        entered = [one for one in behind if one not in before]
        if not (left or entered or self.frame.transfers.loosened(origin, index)):
            return self._straight_way(copy, index, origin)
        edge = self.blocks.append(f"edge{origin}.{index}")
        with self.b.goto_block(edge):
            self.frame.transfers.loosen(origin, index)
            for region in left:
                self.leaving.rest_leaves(region)
            self.leaving.enter(entered)
            self.b.branch(self._straight_way(copy, index, origin))
        return edge

    def _straight_way(self, copy: Copy, index: int, origin: int) -> ir.Block:
        """Return the same, where nothing changes on the way. A way back looks at the fuel first."""
        if index != self.program.exit and index <= origin:
            return self._header(self.blocks.reached(copy, index), index)
        return self.blocks.entrance(copy, index)

    def _header(self, copy: Copy, index: int) -> ir.Block:
        """Return the block through which loops come back: there a turn ends that is used up."""
        if (copy, index) not in self._headers:
            header = self.blocks.append(f"back.{copy.value}{index}")
            self._headers[copy, index] = header
            with self.b.goto_block(header):
                with self.b.if_then(self.frame.fuel.ends_turn(), likely=False):
                    self._end_turn(copy, index)
                self.b.branch(self.blocks.entrance(copy, index))
        return self._headers[copy, index]

    def _end_turn(self, copy: Copy, index: int) -> None:
        """Let the running lanes go on at a block when it is their turn again."""
        together = copy is not Copy.DIVERGENT
        if together and self.frame.shapes.around(index):
            with (
                self.b.if_then(self.leaving.have_left(index)),
                self.frame.registers.standing(index, convergent=True),
            ):
                self._part_from(index, self.blocks.live(index))
                self.frame.registers.convergent = False
                self.suspension.give_way(Status.TURN_END, index)
        with self.frame.registers.standing(index, convergent=together):
            self.suspension.give_way(Status.TURN_END, index)

    # ---- branches -------------------------------------------------------------------------------

    def branch(self, copy: Copy, block: int, guard: Value, instruction: int) -> None:
        """Emit a guarded branch at the end of `block`; active lanes in which the guard holds take
        it."""
        target, following = self.program.blocks[block].successors
        b, lanes = self.b, self.lanes
        active = self.frame.active.bits()
        goes = b.and_(lanes.bits(guard), active)
        stays = b.xor(active, goes)
        all_stay, some_stay = self.blocks.append("stay"), self.blocks.append("some")
        b.cbranch(b.icmp_unsigned("==", goes, I32(0)), all_stay, some_stay)
        with b.goto_block(all_stay):
            self._go_together(copy, following, block)
        b.position_at_end(some_stay)
        all_go, parted = self.blocks.append("go"), self.blocks.append("parted")
        weights = b.cbranch(b.icmp_unsigned("==", stays, I32(0)), all_go, parted)
        if copy is not Copy.DIVERGENT:
            weights.set_weights([99, 1])
        with b.goto_block(all_go):
            self._go_together(copy, target, block)
        b.position_at_end(parted)
        self.frame.counters.add(self.frame.layout.branches[instruction], I64(1))
        kind = self.frame.facts.blocks[block].branch
        if copy is not Copy.DIVERGENT and kind is BranchKind.EXIT:
            self._leave_region(block, goes, stays, instruction)
        elif copy is not Copy.DIVERGENT and kind is BranchKind.PREDICATED:
            self._step_aside(copy, block, goes, stays, instruction)
        else:
            self._part(copy, block, goes, stays, instruction)

    def _leave_region(self, block: int, goes: Value, stays: Value, instruction: int) -> None:
        """Let some lanes leave a region, and wait behind it for those that go on."""
        region = self.leaving.left_at(block)
        assert region is not None
        target, following = self.program.blocks[block].successors
        inside, rest, gone = (
            (following, stays, goes) if target == region.point else (target, goes, stays)
        )
        self.leaving.some_leave(region, gone, instruction)
        self.frame.active.set(rest)
        self.go(Copy.CONVERGENT, inside, block)

    def _go_together(self, copy: Copy, index: int, origin: int) -> None:
        """Let all active lanes go one way at a branch on which they could have parted."""
        if copy is Copy.ROUND:
            self.suspension.idle.note(origin, index)
        self.go(copy, index, origin)

    def _step_aside(
        self, copy: Copy, block: int, goes: Value, stays: Value, instruction: int
    ) -> None:
        """Let some lanes run a block, and meet the others right behind it."""
        target, following = self.program.blocks[block].successors
        body = self.frame.facts.asides[block]
        self.frame.counters.add(self.frame.layout.branches[instruction] + 1, I64(1))
        lanes = goes if body == target else stays
        for way in (target, following):
            self.frame.transfers.loosen(block, way)
        self.b.store(self.frame.active.bits(), self._beside)
        self.frame.active.set(lanes)
        self.b.branch(self.blocks.beside[self.blocks.reached(copy, body), body])

    def step_back(self, copy: Copy, index: int) -> None:
        """End such a block: all lanes that run together go on behind it."""
        self.frame.active.set(self.b.load(self._beside, typ=I32))
        self.go(copy, self.program.blocks[index].successors[0], index)

    def branch_together(self, copy: Copy, block: int, taken: Value) -> None:
        """Emit a branch at the end of `block` that all lanes take, or none."""
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
        fresh, joined = self.blocks.append("push"), self.blocks.append("joined")
        b.cbranch(known, joined, fresh)
        b.position_at_end(fresh)
        self.nodes.push(point, I64(NONE), I32(0), I64(instruction))
        b.branch(joined)
        b.position_at_end(joined)
        self.nodes.add_lanes(
            self.frame.nodes.node(self.frame.get(self.frame.nodes.top), ARRIVED), waiting
        )
        self._continue(mask, first, block)

    def _part_sides(
        self, block: int, taken: tuple[int, Value], through: tuple[int, Value], instruction: int
    ) -> None:
        """Part two sides of a branch, each a block and its lanes, which meet at neither: one
        waits."""
        b, frame = self.b, self.frame
        point = self.program.reconvergence[block]
        if not self.chooses:
            self.nodes.push(point, I64(taken[0]), taken[1], I64(instruction))
            self._continue(through[1], through[0], block)
            return
        given = frame.pointer(Slot.PLAN_AT), frame.context.at(0), frame.warp
        taken_first = b.icmp_signed("!=", call(self.lanes, "branch_first", *given), I64(0))
        waits_at = b.select(taken_first, I64(through[0]), I64(taken[0]))
        waiting = b.select(taken_first, through[1], taken[1])
        self.nodes.push(point, waits_at, waiting, I64(instruction))
        take, fall = self.blocks.append("take"), self.blocks.append("fall")
        b.cbranch(taken_first, take, fall)
        b.position_at_end(take)
        self._continue(taken[1], taken[0], block)
        b.position_at_end(fall)
        self._continue(through[1], through[0], block)

    def _continue(self, bits: Value, index: int, origin: int) -> None:
        self.frame.active.set(bits)
        if self.mixes:
            self.suspension.give_way(Status.PARTED, index)
        else:
            self.go(Copy.DIVERGENT, index, origin)

    def spread_behind(self, block: int) -> None:
        """Lanes may part at the end of a block: keep lane by lane what they will read."""
        if self.frame.registers.convergent:
            ways = self.program.blocks[block].successors
            live = frozenset[Register]().union(*(self.blocks.live(way) for way in ways))
            self._part_from(block, live)

    def _part_from(self, block: int, live: frozenset[Register]) -> None:
        """Lanes that were together in a block are about to part, and will read these registers."""
        self.frame.transfers.part(live)
        if self.frame.shapes.around(block):
            self.leaving.note(block, live)

    def step_apart(self, index: int, condition: Value, leave: Callable[[], None]) -> None:
        """Go on with an instruction in the divergent copy if a condition holds. Its guard has been
        counted; `leave` emits what else is to be before."""
        if index not in self.steps:
            self.steps[index] = self.blocks.append(f"step{index}")
        block = next(b for b in self.program.blocks if b.start <= index < b.stop)
        with self.b.if_then(condition, likely=False):
            leave()
            made = self.program.instructions[index : block.stop]
            behind = frozenset[Register]().union(
                *(self.blocks.live(way) for way in block.successors)
            )
            behind = behind.union(*(reads(one) for one in made))
            self._part_from(block.index, behind)
            self.reshaping.set_stale(True)
            self.b.branch(self.steps[index])

    def leave_lanes(self, copy: Copy, block: int, leaving: Value | None) -> None:
        """`ret` or `exit` at the end of `block`, for some lanes or (None) for all active ones.
        A warp that has lost lanes has left the round."""
        if leaving is None:
            self.go(copy, self.program.exit, block)
            return
        b, frame = self.b, self.frame
        following = self.program.blocks[block].successors[-1]
        gone_bits = self.lanes.bits(b.and_(frame.active.mask(), leaving))
        rest = b.and_(frame.active.mask(), b.not_(leaving))
        some, none = self.blocks.append("remain"), self.blocks.append("gone")
        b.cbranch(self.lanes.any(rest), some, none)
        with b.goto_block(none):
            self.go(copy, self.program.exit, block)
        b.position_at_end(some)
        frame.active.set(self.lanes.bits(rest))
        frame.active.forget(gone_bits)
        if copy is Copy.DIVERGENT:
            with b.if_then(b.icmp_signed(">=", frame.get(frame.nodes.top), I64(0))):
                self.nodes.add_lanes(
                    frame.nodes.node(frame.get(frame.nodes.top), ARRIVED), gone_bits
                )
        self.go(Copy.CONVERGENT if copy is Copy.ROUND else copy, following, block)
