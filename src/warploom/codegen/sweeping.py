"""Sweeps and courses of blocks as ways through a warp function: what they ask before they begin,
and where they lead.

Where all warps of a block can go one way (`analysis.sweeps`), or it is known all that it does
(`analysis.courses`), that is done at once; where not, nothing has happened yet, and the warps take
their turns (`codegen.relay`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce

from llvmlite import ir

from warploom.analysis.courses import Course
from warploom.analysis.sweeps import Sweep
from warploom.codegen.environment import Slot, Status
from warploom.codegen.instructions import InstructionCode
from warploom.codegen.lanes import I1, I64, Value
from warploom.codegen.registers import Standing
from warploom.codegen.relay import Relay
from warploom.codegen.relay_state import END
from warploom.codegen.saved import Saved
from warploom.codegen.survey import Found, Survey
from warploom.codegen.sweep import SweepWork
from warploom.codegen.sweep_counts import SweepCounts
from warploom.ptx.ir import Register
from warploom.rules.plan_words import STATUS


class SweepCode:
    """Emits the sweeps and the course of one warp function. `standing` has code made as in a
    block."""

    def __init__(
        self, saved: Saved, relay: Relay, instructions: InstructionCode, standing: Standing
    ) -> None:
        self.saved, self.relay = saved, relay
        self.frame, self.b = saved.frame, saved.b
        self.survey = Survey(saved, instructions)
        self._work = SweepWork(saved, instructions, self.survey, standing)
        self._counts, self._standing = SweepCounts(self.frame), standing

    def emit(self, ways: Iterable[Sweep], sites: Mapping[int, int]) -> dict[int, ir.Block]:
        """Emit what can be; gives where they begin, by site. `sites` numbers those by blocks."""
        found: dict[int, ir.Block] = {}
        for sweep in ways:
            if self._can_be(sweep, sites):
                site = END if sweep.site is None else sites[sweep.site]
                found[site] = self._begin(f"sweep{site}")
                self._sweep(sweep, END if sweep.ends else sites[sweep.blocks[-1]])
        return found

    def _can_be(self, sweep: Sweep, sites: Mapping[int, int]) -> bool:
        """Returns whether code can look at a sweep, and it leads to the end or to where warps in
        relay may wait."""
        waits = sites.get(sweep.blocks[-1]) in self.relay.sites
        return (sweep.ends or waits) and self.survey.can_be(sweep)

    def emit_course(
        self, course: Course, sites: Mapping[int, int], otherwise: ir.Block | None
    ) -> ir.Block | None:
        """Emit all that a block does, if that can be; gives where it begins. Where a block cannot
        go so, it goes `otherwise`, or its warps take their turns."""
        if not course or not all(self._can_be(sweep, sites) for sweep in course):
            return otherwise
        begin = self._begin("course")
        founds = self._survey(course, otherwise)
        for found in founds:
            with self._beginning(found.sweep):
                self._work.go(found, partial(self._keep_own, found))
        self._work.each(I64(0), self.frame.slot(Slot.WARPS), self._end)
        self.relay.swept(END, self._counts.count(founds))
        return begin

    def _begin(self, name: str) -> ir.Block:
        block = self.frame.function.append_basic_block(name)
        self.b.position_at_end(block)
        return block

    @contextmanager
    def _beginning(self, sweep: Sweep) -> Generator[None]:
        """Have code made as where a sweep begins. What is steady need not be so before its end."""
        steady, self.frame.registers.steady = self.frame.registers.steady, {}
        with self._standing(sweep.blocks[0], convergent=True):
            yield
        self.frame.registers.steady = steady

    def _survey(self, sweeps: Sequence[Sweep], otherwise: ir.Block | None) -> list[Found]:
        """Ask what all warps are to do in one sweep after the other; go on where they can."""
        b, founds = self.b, list[Found]()
        with self._beginning(sweeps[0]):
            self.survey.take_up(sweeps[0])
        for sweep in sweeps:
            with self._beginning(sweep):
                founds.append(self.survey.look(sweep))
        holds = [*self._enough(sweeps), *(holds for found in founds for holds in found.holds)]
        with b.if_then(b.not_(reduce(b.and_, holds)), likely=False):
            if otherwise is None:
                self.relay.take_turns()
            else:
                b.branch(otherwise)
        return founds

    def _enough(self, sweeps: Sequence[Sweep]) -> list[Value]:
        """Returns whether there are instructions enough for all warps, in the turn and in the
        launch."""
        if not self.relay.state.scheduled:
            return [I1(1)]
        b, frame = self.b, self.frame
        lengths = [sweep.length((*sweep.blocks, *sweep.own)) for sweep in sweeps]
        budget = frame.get(frame.lanes.slot(frame.environment, int(Slot.BUDGET)))
        return [
            b.icmp_signed(">=", frame.slot(Slot.FUEL), I64(max(lengths))),
            b.icmp_signed(">=", budget, b.mul(frame.slot(Slot.WARPS), I64(sum(lengths)))),
        ]

    # ---- one sweep ------------------------------------------------------------------------------

    def _sweep(self, sweep: Sweep, site: int) -> None:
        [found] = self._survey([sweep], None)
        with self._beginning(sweep):
            self._work.go(found, partial(self._pass, found))
            kept = sweep.changed or sweep.site is None or sweep.ends
            if sweep.body is not None and not sweep.asks_all and not sweep.busy and kept:
                rest = self.frame.slot(Slot.WARPS)
                self._work.each(found.full, rest, partial(self._pass, found))
            self.relay.swept(site, self._counts.count([found]))

    def _pass(self, found: Found) -> None:
        """Take the running warp past the barrier, or to its end."""
        if found.sweep.ends:
            self._end()
            return
        if found.sweep.site is None:
            self.saved.save_head()
        self._work.set(found.ends)
        self._keep(found, found.sweep.changed)

    def _end(self) -> None:
        """End the running warp."""
        if self.relay.state.scheduled:
            self.frame.context.set_state(STATUS, I64(Status.ENDED))

    # ---- one of several -------------------------------------------------------------------------

    def _keep_own(self, found: Found) -> None:
        """Keep what the running warp has computed itself."""
        self._keep(found, found.sweep.changed - self.survey.alike)

    def _keep(self, found: Found, registers: Iterable[Register]) -> None:
        if not found.sweep.ends:
            with self._standing(found.sweep.behind, convergent=True):
                self.saved.keep_together(registers)
