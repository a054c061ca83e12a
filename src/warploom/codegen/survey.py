"""What the first warp of a block says of all others, before they go in one sweep
(`codegen.sweep`): where they reach, and how many threads have something to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from warploom.analysis.block_wide import comparison_of, last_of
from warploom.analysis.strides import LANES
from warploom.analysis.sweeps import Kind, Sweep, alike, block_wide
from warploom.codegen.environment import Slot
from warploom.codegen.formations import LAYOUTS
from warploom.codegen.instructions import InstructionCode
from warploom.codegen.lanes import I32, I64, Value
from warploom.codegen.leading import LeadingCode
from warploom.codegen.saved import Saved
from warploom.codegen.sweep_access import SweepAccess
from warploom.ptx.ir import Instruction, Register


@dataclass
class Found:
    """What the first warp says. `starts`, `inside` and `ends` are its registers, those with shapes,
    as it begins, before its body and in the end. `full` is how many warps go through the body with
    all their threads, `some` how many threads of the next one do; both i64. All that `holds` has to
    be true."""

    full: Value
    some: Value
    starts: dict[Register, Value]
    inside: dict[Register, Value] = field(default_factory=dict[Register, Value])
    ends: dict[Register, Value] = field(default_factory=dict[Register, Value])
    holds: list[Value] = field(default_factory=list[Value])


class Survey:
    """Emits the looks at first warps in one warp function. `alike` are the registers of which these
    say what others hold, `layout` says how, `access` where they reach."""

    def __init__(self, saved: Saved, instructions: InstructionCode) -> None:
        self.saved, self.instructions = saved, instructions
        self.frame, self.lanes, self.b = saved.frame, saved.lanes, saved.b
        self.program, memory = self.frame.program, instructions.memory
        lanes = instructions.shaped_access.reading
        reading = block_wide(self.program, lanes.formation)
        self.alike = alike(reading, self.frame.shapes)
        self.layout = LAYOUTS[reading.formation](self.frame)
        self.access = SweepAccess(memory, lanes, reading, self.layout)
        self._leading = LeadingCode(memory.operands, reading)

    def can_be(self, sweep: Sweep) -> bool:
        """Whether code can look at a sweep, which it then begins: its accesses are of forms that go
        on from warp to warp, and the first threads go through the body, if there is one."""
        go_on = self.access.begin(sweep)
        if sweep.body is None:
            return go_on
        opposite, made = self._question(sweep)
        return go_on and self._leading.leads(made, opposite=opposite)

    def _take_up(self, sweep: Sweep) -> None:
        """The first warp begins, or goes on."""
        self.frame.set_warp(I64(0))
        if sweep.site is None:
            self.saved.begin(I32(-1))
        else:
            behind = self.program.blocks[sweep.site].successors[-1]
            self.saved.take_up_together(self.program.live_in[behind], whole=True)

    def look(self, sweep: Sweep) -> Found:
        """Ask of the first warp what all are to do."""
        self._take_up(sweep)
        b, frame = self.b, self.frame
        warps, threads = frame.slot(Slot.WARPS), frame.slot(Slot.THREADS)
        found = Found(warps, I64(0), self._registers(self.alike))
        self.instructions.shaped.block = self.layout
        most = sweep.length((*sweep.blocks, *sweep.own))
        budget = frame.get(self.lanes.slot(frame.environment, int(Slot.BUDGET)))
        found.holds = [
            b.icmp_signed(">=", frame.slot(Slot.FUEL), I64(most)),
            b.icmp_signed(">=", budget, b.mul(warps, I64(most))),
        ]
        for block in sweep.before:
            self._look_through(sweep, block, warps, found)
        if sweep.body is not None:
            found.inside = self._registers(self.alike)
            opposite, made = self._question(sweep)
            count, stays = self._leading.holds_first(made, threads, opposite=opposite)
            found.full = b.lshr(count, I64(5))
            found.some = b.and_(count, I64(LANES - 1))
            found.holds.append(stays)
            if sweep.asks_all:
                found.holds.append(b.icmp_unsigned("==", count, threads))
            self._look_through(sweep, sweep.body, found.full, found)
        for block in sweep.after:
            self._look_through(sweep, block, warps, found)
        found.ends = self._registers(sweep.changed)
        self.instructions.shaped.block = None
        return found

    def _look_through(self, sweep: Sweep, block: int, warps: Value, found: Found) -> None:
        """Go through a block; so many warps are to."""
        for index in sweep.steps((block,)):
            made = self.program.instructions[index]
            if sweep.kinds[index] is Kind.SHAPED:
                self.by_shape(index, made, lambda wraps: found.holds.append(self.b.not_(wraps)))
            elif sweep.kinds[index] is Kind.ACCESS:
                found.holds.append(self.access.look(index, made, warps))
        last = self.program.blocks[block].stop - 1
        if last in sweep.choices:
            guard = self.instructions.guards.agreed(self.program.instructions[last])
            assert guard is not None
            held = self.lanes.lane(guard, 0)
            found.holds.append(held if sweep.choices[last] else self.b.not_(held))

    def _registers(self, registers: Iterable[Register]) -> dict[Register, Value]:
        """What registers hold now, those that lie in the whole block as in a warp."""
        known = sorted(self.alike & set(registers), key=lambda register: register.name)
        return {r: self.frame.load(r, self.frame.width(r)) for r in known}

    def _question(self, sweep: Sweep) -> tuple[bool, Instruction]:
        """Which comparison says who goes through the body, and whether where it does not hold."""
        block = self.program.blocks[sweep.before[-1]]
        made, guard = comparison_of(self.program, block), last_of(self.program, block).guard
        assert made is not None
        assert guard is not None
        return (sweep.body == block.successors[0]) == guard.negated, made

    def by_shape(self, index: int, made: Instruction, wrapped: Callable[[Value], None]) -> None:
        """Emit an instruction that is SHAPED; what to do is `wrapped`, where a lane wraps around
        that must not."""
        self.instructions.by_shape(index, made, self.frame.mask(), wrapped)
