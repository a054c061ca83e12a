"""What lies between two barriers, done for all warps of a block at once (`analysis.sweeps`).

The first warp's registers say where all others reach, and how many threads have something to do.
Where all can go the short way, those of which every thread works go through a short loop, one after
the other; one of which some work goes as where lanes step aside; of others only registers are
written. Where not, nothing has happened yet, and the warps take their turns (`codegen.relay`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import reduce
from typing import Protocol

from llvmlite import ir

from warploom.analysis.block_wide import comparison_of, last_of
from warploom.analysis.program import Block
from warploom.analysis.strides import LANES
from warploom.analysis.sweeps import Kind, Sweep, alike, block_wide
from warploom.analysis.uses import reads
from warploom.codegen.blocks import Copy
from warploom.codegen.environment import Slot
from warploom.codegen.formations import LAYOUTS
from warploom.codegen.instructions import InstructionCode
from warploom.codegen.lanes import I32, I64, Value
from warploom.codegen.leading import LeadingCode
from warploom.codegen.memory import elements
from warploom.codegen.relay import END, Relay
from warploom.codegen.saved import Saved
from warploom.codegen.sweep_access import SweepAccess
from warploom.ptx.ir import Instruction, Register


class Standing(Protocol):
    """Has code made as in a block, while it is open."""

    def __call__(self, index: int, /, *, convergent: bool) -> AbstractContextManager[None]: ...


@dataclass
class _Found:
    """What the first warp says. `starts`, `inside` and `ends` are its registers, those with shapes,
    as it begins, before its body and in the end. `full` is how many warps go through the body with
    all their threads, `some` how many threads of the next one do; both i64."""

    full: Value
    some: Value
    starts: dict[Register, Value]
    inside: dict[Register, Value] = field(default_factory=dict[Register, Value])
    ends: dict[Register, Value] = field(default_factory=dict[Register, Value])
    holds: list[Value] = field(default_factory=list[Value])


class SweepCode:
    """Emits the sweeps of one warp function. `masked` emits a block for some lanes only; `standing`
    has code made as in a block."""

    def __init__(
        self,
        saved: Saved,
        relay: Relay,
        instructions: InstructionCode,
        masked: Callable[[Block], None],
        standing: Standing,
    ) -> None:
        self.saved, self.relay, self.instructions = saved, relay, instructions
        self.frame, self.lanes, self.b = saved.frame, saved.lanes, saved.b
        self.program, self._masked, self._standing = self.frame.program, masked, standing
        memory = instructions.memory
        lanes = instructions.shaped_access.reading
        reading = block_wide(self.program, lanes.formation)
        self.layout = LAYOUTS[reading.formation](self.frame)
        self._access = SweepAccess(memory, lanes, self.layout)
        self._alike = alike(reading, self.frame.shapes)
        self._leading = LeadingCode(memory.operands, reading)

    def emit(self, ways: Iterable[Sweep], sites: Mapping[int, int]) -> dict[int, ir.Block]:
        """Emit what can be; gives where they begin, by site. `sites` numbers those by blocks."""
        found: dict[int, ir.Block] = {}
        for sweep in ways:
            last = sites.get(sweep.blocks[-1], END)
            if self.relay.waits_at(last) and self._access.begin(sweep) and self._leads(sweep):
                site = END if sweep.site is None else sites[sweep.site]
                found[site] = self.frame.function.append_basic_block(f"sweep{site}")
                self.b.position_at_end(found[site])
                steady, self.frame.steady = self.frame.steady, {}
                with self._standing(sweep.blocks[0], convergent=True):
                    self._emit(sweep, last)
                self.frame.steady = steady
        return found

    def _emit(self, sweep: Sweep, site: int) -> None:
        b = self.b
        self._take_up(sweep)
        found = self._look(sweep)
        with b.if_then(b.not_(reduce(b.and_, found.holds)), likely=False):
            self.relay.take_turns()
        self._each(I64(0), found.full, lambda: self._go(sweep, found))
        if sweep.body is not None:
            with b.if_then(b.icmp_unsigned("!=", found.some, I64(0))):
                self._go_partly(sweep, sweep.body, found)
            if not sweep.asks_all and (sweep.changed or sweep.site is None):
                rest = self.frame.slot(Slot.WARPS)
                self._each(found.full, rest, lambda: self._pass(sweep, found))
        self.relay.swept(site, self._count(sweep, found))

    # ---- the first warp -------------------------------------------------------------------------

    def _take_up(self, sweep: Sweep) -> None:
        """The first warp begins, or goes on."""
        self.frame.set_warp(I64(0))
        if sweep.site is None:
            self.saved.begin(I32(-1))
        else:
            behind = self.program.blocks[sweep.site].successors[-1]
            self.saved.take_up_together(self.program.live_in[behind], whole=True)

    def _look(self, sweep: Sweep) -> _Found:
        """Ask of the first warp what all are to do."""
        b, frame = self.b, self.frame
        warps, threads = frame.slot(Slot.WARPS), frame.slot(Slot.THREADS)
        found = _Found(warps, I64(0), self._shaped(self._alike))
        self.instructions.shaped.block = self.layout
        most = sum(map(self._length, (*sweep.blocks, *sweep.own)))
        budget = frame.get(self.lanes.slot(frame.environment, int(Slot.BUDGET)))
        found.holds = [
            b.icmp_signed(">=", frame.slot(Slot.FUEL), I64(most)),
            b.icmp_signed(">=", budget, b.mul(warps, I64(most))),
        ]
        for block in sweep.before:
            self._look_through(sweep, block, warps, found)
        if sweep.body is not None:
            found.inside = self._shaped(self._alike)
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
        found.ends = self._shaped(sweep.changed)
        self.instructions.shaped.block = None
        return found

    def _look_through(self, sweep: Sweep, block: int, warps: Value, found: _Found) -> None:
        """Go through a block; so many warps are to."""
        for index in sweep.steps((block,)):
            made = self.program.instructions[index]
            if sweep.kinds[index] is Kind.SHAPED:
                self._by_shape(index, made, lambda wraps: found.holds.append(self.b.not_(wraps)))
            elif sweep.kinds[index] is Kind.ACCESS:
                found.holds.append(self._access.look(index, made, warps))
        last = self.program.blocks[block].stop - 1
        if last in sweep.choices:
            guard = self.instructions.guards.agreed(self.program.instructions[last])
            assert guard is not None
            held = self.lanes.lane(guard, 0)
            found.holds.append(held if sweep.choices[last] else self.b.not_(held))

    def _shaped(self, registers: Iterable[Register]) -> dict[Register, Value]:
        """What registers hold now, those that lie in the whole block as in a warp."""
        known = self._alike & set(registers)
        return {
            register: self.frame.load(register, self.frame.width(register)) for register in known
        }

    def _question(self, sweep: Sweep) -> tuple[bool, Instruction]:
        """Which comparison says who goes through the body, and whether where it does not hold."""
        block = self.program.blocks[sweep.before[-1]]
        made, guard = comparison_of(self.program, block), last_of(self.program, block).guard
        assert made is not None
        assert guard is not None
        return (sweep.body == block.successors[0]) == guard.negated, made

    def _leads(self, sweep: Sweep) -> bool:
        """Whether the first threads go through the body, if there is one."""
        if sweep.body is None:
            return True
        opposite, made = self._question(sweep)
        return self._leading.leads(made, opposite=opposite)

    # ---- each warp ------------------------------------------------------------------------------

    def _each(self, first: Value, last: Value, body: Callable[[], None]) -> None:
        """Emit `for warp in range(first, last): body()`."""
        b, frame = self.b, self.frame
        head, inside, done = (b.append_basic_block(f"warps.{n}") for n in ("head", "body", "done"))
        frame.set_warp(first)
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(b.icmp_unsigned("<", frame.warp, last), inside, done)
        b.position_at_end(inside)
        body()
        frame.set_warp(b.add(frame.warp, I64(1)))
        b.branch(head)
        b.position_at_end(done)

    def _go(self, sweep: Sweep, found: _Found) -> None:
        """The running warp goes all the way, with all its threads."""
        self._set(found.starts)
        self._fetch(sweep)
        for block in (*sweep.before, *sweep.own, *sweep.after):
            for index in sweep.steps((block,)):
                self.frame.ahead = self.program.blocks[block].stop - index
                self._do(sweep.kinds[index], index, self.program.instructions[index])
        self._pass(sweep, found)

    def _do(self, kind: Kind, index: int, made: Instruction) -> None:
        on = self.frame.mask()
        if kind is Kind.SHAPED:
            self._by_shape(index, made, lambda _: None)  # it has been looked at
        elif kind is Kind.COMPUTED:
            self.instructions.emit(Copy.ROUND, index, made, None, on)
        elif kind is Kind.ACCESS and made.operation.name == "st":
            self._access.store(index, made)
        elif kind is Kind.ACCESS:
            self._load(index, made)

    def _load(self, index: int, made: Instruction) -> None:
        """A load of the running warp; what its lanes or rows agree on comes in 1 lane or in 2."""
        type, values = made.operation.modifiers.scalar(), self._access.load(index)
        for target, value in zip(elements(made.operands[0]), values, strict=True):
            if value.type.count < LANES:
                self.instructions.shaped.write(target, value, type, None)
            else:
                self.instructions.write(Copy.ROUND, None, [(target, value, type)])

    def _go_partly(self, sweep: Sweep, body: int, found: _Found) -> None:
        """Some threads of a warp go through the body."""
        b, frame = self.b, self.frame
        frame.set_warp(found.full)
        self._set(found.inside)
        self._fetch(sweep)
        leading = b.sub(b.shl(I64(1), found.some), I64(1))
        frame.activate(b.trunc(leading, I32))
        self._masked(self.program.blocks[body])
        frame.activate(I32(-1))
        branch = frame.layout.branches[self.program.blocks[sweep.before[-1]].stop - 1]
        for count in (branch, branch + 1):
            frame.count(count, I64(1))

    def _pass(self, sweep: Sweep, found: _Found) -> None:
        """The running warp has come to the barrier."""
        if sweep.site is None:
            self.saved.save_head()
        self._set(found.ends)
        self.saved.keep_together(sweep.changed)

    def _set(self, registers: Mapping[Register, Value]) -> None:
        """Registers of the running warp, from what they are in the first one."""
        for register, value in registers.items():
            stride = self.frame.here[register].stride
            self.frame.store(register, self.layout.ahead(value, stride))

    def _fetch(self, sweep: Sweep) -> None:
        """The running warp's other registers that it reads."""
        if sweep.site is None:
            return
        behind = self.program.blocks[sweep.site].successors[-1]
        steps = sweep.steps((*sweep.blocks, *sweep.own))
        read = {r for i in steps for r in reads(self.program.instructions[i])}
        live = self.program.live_in[behind] & read
        self.saved.fetch_together(live - self._alike)

    def _by_shape(self, index: int, made: Instruction, wrapped: Callable[[Value], None]) -> None:
        self.instructions.by_shape(index, made, self.frame.mask(), wrapped)

    # ---- counts ---------------------------------------------------------------------------------

    def _length(self, block: int) -> int:
        """Instructions of a block."""
        return self.program.blocks[block].stop - self.program.blocks[block].start

    def _count(self, sweep: Sweep, found: _Found) -> Value:
        """Count what all warps have done, but what some lanes of one; gives their instructions."""
        b, frame = self.b, self.frame
        warps, threads = frame.slot(Slot.WARPS), frame.slot(Slot.THREADS)
        whole = b.mul(found.full, I64(LANES))
        through = dict.fromkeys(sweep.blocks, (warps, threads))
        through |= dict.fromkeys(sweep.own, (found.full, whole))
        for block, (times, lanes) in through.items():
            frame.count(2 * block, times)
            frame.count(2 * block + 1, lanes)
            for index in sweep.steps((block,)):
                if sweep.kinds[index] is Kind.ACCESS:
                    self._access.count(index, times)
        for branch, taken in sweep.choices.items():
            if taken:
                frame.count(frame.layout.guarded[branch], threads)
        used = b.mul(warps, I64(sum(map(self._length, sweep.blocks))))
        if sweep.body is None:
            return used
        block, inside = self.program.blocks[sweep.before[-1]], b.add(whole, found.some)
        goes = inside if sweep.body == block.successors[0] else b.sub(threads, inside)
        frame.count(frame.layout.guarded[block.stop - 1], goes)
        partly = b.zext(b.icmp_unsigned("!=", found.some, I64(0)), I64)
        entered = b.add(found.full, partly)
        return b.add(used, b.mul(entered, I64(self._length(sweep.body))))
