"""Surveys a sweep (`lower.loops.warp_loop`) before it begins: from the first warp's registers,
where all warps reach, and how many threads have something to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from warploom.abi.environment import Slot
from warploom.analysis.block_uniformity import comparison_of, last_of
from warploom.analysis.shape_transfer import WHOLE, Reading
from warploom.analysis.vector_shape import LANES
from warploom.analysis.warp_loops import Kind, WarpLoop, alike
from warploom.llvm.lanes import I32, I64, Value
from warploom.lower.frame.block_layout import LAYOUTS
from warploom.lower.frame.spills import Saved
from warploom.lower.instructions import InstructionCode
from warploom.lower.loops.partial_access import PartAccess
from warploom.lower.loops.warp_loop_access import WarpLoopAccess
from warploom.lower.operations.prefix_masks import LeadingCode
from warploom.ptx.ir import Instruction, Register


@dataclass
class Found:
    """The result of a survey. `starts`, `inside` and `ends` are the first warp's registers, those
    with shapes, as it begins, before its body and in the end. `full` is how many warps go through
    the body with all their threads, `some` how many threads of the next one do; both i64. All that
    `holds` has to be true. `access` and `part` make the accesses, of whole warps and of that
    one."""

    warp_loop: WarpLoop
    access: WarpLoopAccess
    part: PartAccess
    full: Value
    some: Value
    starts: dict[Register, Value]
    inside: dict[Register, Value] = field(default_factory=dict[Register, Value])
    ends: dict[Register, Value] = field(default_factory=dict[Register, Value])
    holds: list[Value] = field(default_factory=list[Value])

    def partly(self, b: Value) -> Value:
        """Returns how many warps go through the body with some of their threads: one or none."""
        return b.zext(b.icmp_unsigned("!=", self.some, I64(0)), I64)

    @property
    def goes_whole(self) -> bool:
        """Returns whether whole warps can go all the way: all its accesses are such as go on."""
        kinds = self.warp_loop.kinds.items()
        return self.access.goes_on.issuperset(i for i, kind in kinds if kind is Kind.ACCESS)


class WarpLoopCheck:
    """Emits the looks at first warps in one warp function. `alike` are the registers of which these
    say what others hold, `layout` says how."""

    def __init__(self, saved: Saved, instructions: InstructionCode) -> None:
        self.saved, self.instructions = saved, instructions
        self.frame, self.lanes, self.b = saved.frame, saved.lanes, saved.b
        self.program, self.memory = self.frame.program, instructions.memory
        self._lanes = instructions.affine_access.reading
        whole = WHOLE[self._lanes.warp_layout]
        self._reading = Reading(self.program, whole, self.frame.facts.block_shapes)
        self.alike = alike(self._reading, self.frame.shapes)
        self.layout = LAYOUTS[self._reading.warp_layout](self.frame)
        self._leading = LeadingCode(self.memory.operands, self._reading)

    def can_be(self, warp_loop: WarpLoop) -> bool:
        """Returns whether code can look at a sweep: its accesses are of forms that go on from warp
        to warp, and the first threads go through the body, if there is one. What only the first
        warp can access, some of its threads may."""
        made, access, part = self.program.instructions, self._access(warp_loop), self._part()
        others = {i for i, kind in warp_loop.kinds.items() if kind is Kind.ACCESS} - access.goes_on
        inside = [i for i in warp_loop.steps(warp_loop.own) if warp_loop.kinds[i] is Kind.ACCESS]
        if warp_loop.body is None or warp_loop.asks_all:
            go_on = not others
        else:
            go_on = others <= set(inside) and all(part.can_be(i, made[i]) for i in inside)
        if warp_loop.body is None or not go_on:
            return go_on
        opposite, asked = self._question(warp_loop)
        return self._leading.leads(asked, opposite=opposite, one=not warp_loop.asks_all)

    def _access(self, warp_loop: WarpLoop) -> WarpLoopAccess:
        return WarpLoopAccess(self.memory, self._lanes, self._reading, self.layout, warp_loop)

    def _part(self) -> PartAccess:
        return PartAccess(self.memory, self._lanes)

    def take_up(self, warp_loop: WarpLoop) -> None:
        """Begin the first warp, or let it go on."""
        self.frame.set_warp(I64(0))
        if warp_loop.site is None:
            self.saved.begin(I32(-1))
        else:
            behind = self.program.blocks[warp_loop.site].successors[-1]
            self.saved.take_up_together(self.frame.facts.live(behind), whole=True)

    def look(self, warp_loop: WarpLoop) -> Found:
        """Ask of the first warp, whose registers are in place, what all are to do; they are then
        as behind the sweep."""
        warps = self.frame.slot(Slot.WARPS)
        starts = self._registers(self.alike)
        found = Found(warp_loop, self._access(warp_loop), self._part(), warps, I64(0), starts)
        operands = self.memory.operands
        self.instructions.shaped.block = operands.specials.block = self.layout
        for block in warp_loop.before:
            self._look_through(warp_loop, block, warps, found)
        if warp_loop.body is not None:
            found.inside = self._registers(self.alike)
            self._ask(warp_loop, found)
            self._look_through(warp_loop, warp_loop.body, found.full, found)
        for block in warp_loop.after:
            self._look_through(warp_loop, block, warps, found)
        found.ends = self._registers(warp_loop.changed)
        self.instructions.shaped.block = operands.specials.block = None
        return found

    def _ask(self, warp_loop: WarpLoop, found: Found) -> None:
        """Return how many threads go through the body."""
        b, threads = self.b, self.frame.slot(Slot.THREADS)
        opposite, made = self._question(warp_loop)
        count, stays = self._leading.holds_first(made, threads, opposite=opposite)
        found.holds.append(stays)
        if warp_loop.asks_all:
            found.holds.append(b.icmp_unsigned("==", count, threads))
        else:
            found.full = b.lshr(count, I64(5))
            found.some = b.and_(count, I64(LANES - 1))

    def _look_through(self, warp_loop: WarpLoop, block: int, warps: Value, found: Found) -> None:
        """Go through a block; so many warps are to."""
        for index in warp_loop.steps((block,)):
            made = self.program.instructions[index]
            if warp_loop.kinds[index] is Kind.SHAPED:
                self.by_shape(index, made, lambda wraps: found.holds.append(self.b.not_(wraps)))
            elif warp_loop.kinds[index] is Kind.ACCESS:
                self._look_at(index, made, warps, found)
                if block == warp_loop.body and not warp_loop.asks_all:
                    self._look_at_part(index, made, found)
        last = self.program.blocks[block].stop - 1
        if last in warp_loop.choices:
            guard = self.instructions.guards.agreed(self.program.instructions[last])
            assert guard is not None
            held = self.lanes.lane(guard, 0)
            found.holds.append(held if warp_loop.choices[last] else self.b.not_(held))

    def _look_at(self, index: int, made: Instruction, warps: Value, found: Found) -> None:
        if index in found.access.goes_on:
            found.holds.append(found.access.look(index, made, warps))
        else:
            found.holds.append(self.b.icmp_unsigned("==", warps, I64(0)))

    def _look_at_part(self, index: int, made: Instruction, found: Found) -> None:
        b = self.b
        like = found.part.look(index, made, found.full, leading(b, found.some))
        found.holds.append(b.or_(like, b.icmp_unsigned("==", found.some, I64(0))))

    def _registers(self, registers: Iterable[Register]) -> dict[Register, Value]:
        """Returns what registers hold now, those that lie in the whole block as in a warp."""
        known = sorted(self.alike & set(registers), key=lambda register: register.name)
        return {r: self.frame.registers.load(r, self.frame.registers.width(r)) for r in known}

    def _question(self, warp_loop: WarpLoop) -> tuple[bool, Instruction]:
        """Return which comparison says who goes through the body, and whether where it does not
        hold."""
        block = self.program.blocks[warp_loop.before[-1]]
        made, guard = comparison_of(self.program, block), last_of(self.program, block).guard
        assert made is not None
        assert guard is not None
        return (warp_loop.body == block.successors[0]) == guard.negated, made

    def by_shape(self, index: int, made: Instruction, wrapped: Callable[[Value], None]) -> None:
        """Emit an instruction that is SHAPED; what to do is `wrapped`, where a lane wraps around
        that must not."""
        self.instructions.by_shape(index, made, self.frame.active.mask(), wrapped)


def leading(b: Value, count: Value) -> Value:
    """Return the first lanes, so many (an i64, below 32), as an i32."""
    return b.trunc(b.sub(b.shl(I64(1), count), I64(1)), I32)
