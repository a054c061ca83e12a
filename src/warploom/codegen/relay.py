"""The warps of a block in relay: one call of the warp function runs them all, one after the other.

Where the schedule has nothing to decide — the policy goes in order, and all warps of the block that
live stand whole at one place — a warp that comes to its end or to a barrier hands over to the next
one. When all have come to the same barrier, they go on behind it. Anything else ends the relay; the
schedule is then told how far each warp has come (`codegen.turns.end_relay`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llvmlite import ir

from warploom.codegen.environment import Slot, Status
from warploom.codegen.frame import Frame
from warploom.codegen.lanes import I1, I64, LANES, PTR, Value
from warploom.rules.plan_words import STATUS
from warploom.rules.warp_table import NONE

ROUNDS = 64
"""Barriers that a block may pass before the schedule looks whether others should go on."""

END = 0
"""The site at which a warp ends; where it ends none waits. Others are numbered from 1, as in a
state's RESUME."""


Skip = Callable[[Value, Callable[[], None]], None]
"""Emits what skips warps, from the site from which they go and what then makes the last arrive."""


class Relay:
    """Emits the hand-over from warp to warp in one warp function.

    `start` is the site from which the warps of this round go, `site` the one that they have come
    to, NONE as long as none waits. `together` says whether this call runs the whole block,
    `fewer_before` whether threads of the block may have ended before this round (the frame knows
    whether so by now). `whole` is how many warps go as in a round: each with all of 32 threads.
    """

    def __init__(self, frame: Frame, *, scheduled: bool) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.scheduled = scheduled
        given = frame.slot(Slot.TOGETHER)
        self.together = frame.prologue.b.icmp_unsigned("!=", given, I64(0))
        self._start, self._site, self._rounds, self._at = (frame.variable(I64) for _ in range(4))
        self._fewer_before, self._whole = frame.variable(I1), frame.variable(I64)
        names = ("turn", "round", "arrived", "behind", "over", "sweep")
        blocks = (self._append(f"relay.{name}") for name in names)
        self._turn, self._round, self._arrived, self._behind, self._over, self._sweep = blocks
        self.sweeps: Value = I1(0)
        """Whether the blocks of the launch are such that one sweep may do for all warps."""
        self._waits: dict[int, tuple[int, int]] = {}

    def _append(self, name: str) -> ir.Block:
        return self.frame.function.append_basic_block(name)

    def enter(self, site: Value) -> None:
        """Begin the call: its warp goes on from a site. Only of warps that have been in relay since
        the block began is it known that all live and have passed the same barriers, and skipping
        warps rests on that (`codegen.idle`)."""
        self.b.store(I1(1), self._fewer_before)
        self.b.store(self.b.icmp_unsigned("!=", site, I64(END)), self.frame.active.fewer)
        self._begin_round(site)
        self.b.cbranch(self._all_whole(), self._sweep, self._turn)

    def _all_whole(self) -> Value:
        """Returns whether all warps are in the round, and one sweep may do for them."""
        whole, b = self.frame.get(self._whole), self.b
        every = b.icmp_unsigned("==", whole, self.frame.slot(Slot.WARPS))
        return b.and_(every, self.sweeps)

    def _begin_round(self, site: Value) -> None:
        """Warps are to go on from a site."""
        b, frame = self.b, self.frame
        fewer = b.load(frame.active.fewer, typ=I1)
        b.store(site, self._start)
        b.store(I64(NONE), self._site)
        b.store(fewer, self._fewer_before)
        warps = b.udiv(frame.slot(Slot.THREADS), I64(LANES))
        b.store(b.select(b.and_(self.together, b.not_(fewer)), warps, I64(0)), self._whole)

    def end(self, skip: Skip) -> None:
        """End the running warp; `skip` as in `pass_on`, where all behind it live."""
        b, frame = self.b, self.frame
        with b.if_else(self.together) as (relay, alone):
            with relay:
                more = b.icmp_unsigned("<", b.add(frame.warp, I64(1)), frame.slot(Slot.WARPS))
                all = b.not_(b.load(self._fewer_before, typ=I1))
                with b.if_then(b.and_(more, all)):
                    skip(frame.get(self._start), lambda: self._arrive(END))
                self._arrive(END)
            with alone:
                self.frame.leave(Status.ENDED)
        self.b.unreachable()

    def wait(self, site: int, instruction: int, barrier: int) -> None:
        """Let the running warp, in relay, wait at a barrier of all threads; what it needs later is
        saved. Code goes on where it does not run in relay."""
        self._waits[site] = instruction, barrier
        with self.b.if_then(self.together):
            self._arrive(site)

    def waits_at(self, site: int | None) -> bool:
        """Returns whether warps in relay may wait at a site."""
        return site in self._waits

    def pass_on(self, site: int, skip: Skip) -> None:
        """Let the running warp, in a round, wait at a barrier of all threads; what it needs later
        is saved. Where none before it has come elsewhere, the next one goes on, unless code can
        `skip` all that are left: it is given the site from which they go, and what then makes the
        last one arrive."""
        b, frame = self.b, self.frame
        known = frame.get(self._site)
        first = b.icmp_signed("==", known, I64(NONE))
        with b.if_then(b.not_(b.or_(first, b.icmp_signed("==", known, I64(site)))), likely=False):
            self._arrive(site)
        b.store(I64(site), self._site)
        self._pay()
        following = b.add(frame.warp, I64(1))
        with b.if_then(b.icmp_unsigned("<", following, frame.slot(Slot.WARPS))):
            skip(frame.get(self._start), self._skipped)
        frame.set_warp(following)
        in_round = b.icmp_unsigned("<", following, frame.get(self._whole))
        b.cbranch(in_round, self._round, self._behind)

    def _skipped(self) -> None:
        """Note that all warps that were left have come to the site."""
        self.frame.set_warp(self.frame.slot(Slot.WARPS))
        self._pay()
        self.b.branch(self._over)

    def take_turns(self) -> None:
        """Let the warps of the round go one after the other, where a sweep cannot be."""
        self.b.branch(self._turn)

    def swept(self, site: int, used: Value) -> None:
        """Note that all warps have come to a site at once, or to the end, with so many
        instructions."""
        b, frame = self.b, self.frame
        if self.scheduled:
            budget = self.lanes.slot(frame.environment, int(Slot.BUDGET))
            b.store(b.sub(frame.get(budget), used), budget)
            frame.fuel.begin_turn()
        b.store(I64(NONE if site == END else site), self._site)
        frame.set_warp(frame.slot(Slot.WARPS))
        b.branch(self._over)

    def _arrive(self, site: int) -> None:
        self.b.store(I64(site), self._at)
        self.b.branch(self._arrived)

    def emit(
        self,
        ways: Mapping[int, ir.Block],
        rounds: Mapping[int, ir.Block],
        sweeps: Mapping[int, ir.Block],
    ) -> None:
        """Emit the hand-over. `ways` are the blocks in which a warp goes on, by site; `rounds`
        those in which one in relay does, `sweeps` those in which all do at once."""
        b, frame = self.b, self.frame
        b.position_at_end(self._turn)
        frame.fuel.begin_turn()
        if rounds:
            alone = self._append("relay.alone")
            in_round = b.icmp_unsigned("<", frame.warp, frame.get(self._whole))
            b.cbranch(in_round, self._round, alone)
            b.position_at_end(alone)
        self._choose(ways)
        b.position_at_end(self._round)
        self._choose({**ways, **rounds})
        b.position_at_end(self._sweep)
        self._choose({site: sweeps.get(site, self._turn) for site in ways})
        b.position_at_end(self._arrived)
        if self.scheduled:
            self._pay()
            self._note()
        self._hand_over()

    def _choose(self, ways: Mapping[int, ir.Block]) -> None:
        switch = self.b.switch(self.frame.get(self._start), ways[END])
        for site, block in ways.items():
            if site != END:
                switch.add_case(I64(site), block)

    def record(self) -> None:
        """Tell the caller how far the relay has come; it looks only where there was one."""
        frame = self.frame
        frame.record(Slot.WARP, frame.warp)
        frame.record(Slot.SITE, frame.get(self._site))
        frame.record(Slot.START, frame.get(self._start))

    def sites(self) -> Value:
        """Return a constant of the module: by site, the instruction at which a warp waits, and the
        number of its barrier."""
        last = max(self._waits, default=0)
        words = [n for site in range(last + 1) for n in self._waits.get(site, (0, 0))]
        type = ir.ArrayType(I64, len(words))
        table = ir.GlobalVariable(self.frame.module, type, "sites")
        table.linkage, table.global_constant = "internal", True
        table.initializer = ir.Constant(type, [I64(word) for word in words])
        table.type = PTR
        return table

    def _pay(self) -> None:
        """Take what the turn used from the budget of the launch."""
        b, frame = self.b, self.frame
        budget = self.lanes.slot(frame.environment, int(Slot.BUDGET))
        used = b.sub(frame.slot(Slot.FUEL), frame.get(frame.fuel.left))
        left = b.sub(frame.get(budget), used)
        b.store(left, budget)
        frame.fuel.begin_turn()
        with b.if_then(b.icmp_signed("<", left, I64(0)), likely=False):
            frame.leave(Status.LIMIT)

    def _note(self) -> None:
        """Note where the warp is; leave where others that wait have come elsewhere."""
        b, frame = self.b, self.frame
        at, site = frame.get(self._at), frame.get(self._site)
        with b.if_else(b.icmp_unsigned("==", at, I64(END)), likely=False) as (ended, waits):
            with ended:
                frame.context.set_state(STATUS, I64(Status.ENDED))
                b.store(I1(1), frame.active.fewer)
            with waits:
                first = b.icmp_signed("==", site, I64(NONE))
                same = b.or_(first, b.icmp_signed("==", site, at))
                with b.if_then(b.not_(same), likely=False):
                    frame.record(Slot.OWN_SITE, at)
                    frame.leave(Status.BARRIER)
                b.store(at, self._site)

    def _hand_over(self) -> None:
        """Go on with the next warp that lives, after the last with the first of the next round."""
        b, frame = self.b, self.frame
        following, known, look = (self._append(f"relay.{n}") for n in ("next", "known", "look"))
        b.branch(following)
        b.position_at_end(following)
        frame.set_warp(b.add(frame.warp, I64(1)))
        b.branch(self._behind)
        b.position_at_end(self._behind)
        more = b.icmp_unsigned("<", frame.warp, frame.slot(Slot.WARPS))
        b.cbranch(more, known if self.scheduled else self._turn, self._over)
        b.position_at_end(known)
        b.cbranch(b.load(self._fewer_before, typ=I1), look, self._turn)
        b.position_at_end(look)
        ended = b.icmp_unsigned("==", frame.get(frame.context.state(STATUS)), I64(Status.ENDED))
        b.cbranch(ended, following, self._turn)
        b.position_at_end(self._over)
        if self.scheduled:
            self._next_round()
        else:
            frame.leave(Status.ENDED)

    def _next_round(self) -> None:
        """Go on where all warps have ended, or all that live go on behind the barrier."""
        b, frame = self.b, self.frame
        site = frame.get(self._site)
        rounds = b.add(frame.get(self._rounds), I64(1))
        b.store(rounds, self._rounds)
        none = b.icmp_signed("==", site, I64(NONE))
        long = b.icmp_unsigned(">", rounds, I64(ROUNDS))
        with b.if_then(b.or_(none, long)):
            frame.leave(Status.ENDED)
        self._begin_round(site)
        frame.set_warp(I64(0))
        b.cbranch(self._all_whole(), self._sweep, self._behind)
