"""Rounds of a block whose warps all come to one barrier: the short way through the schedule.

What `rules.scheduling` would decide, where nothing is left to decide: under the policy that goes in
order, every warp of the current block has its turn, and where all that live have come to the same
barrier, all go on. Anything else — a turn used up, lanes that part and wait — goes back to the
schedule, at the warp where it happened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from warploom.codegen.environment import Status
from warploom.codegen.lanes import I64, Lanes, Value
from warploom.rules import plan_words
from warploom.rules.convergence import CONVERGE


@dataclass(frozen=True)
class Turns:
    """What the rounds need of the function that they are emitted into.

    `variables` are three places for numbers. `timed(warp, state)` runs a warp's turn and gives its
    status; `general(warp, status)` hands a turn that ended in another way to the schedule.
    """

    lanes: Lanes
    append: Callable[[str], ir.Block]
    plan: Value
    states: Value
    warps: Value
    variables: tuple[Value, Value, Value]
    timed: Callable[[Value, Value], Value]
    general: Callable[[Value, Value], None]


def emit_rounds(turns: Turns, warp: Value, alone: ir.Block, schedule: ir.Block) -> None:
    """Where the chosen warp is the first of a round under the policy that goes in order, and whole,
    run rounds as long as they end at one barrier; then go on at `schedule`. Else go on at `alone`.
    """
    b = turns.lanes.b
    rounds = _Rounds(turns)
    in_order = b.icmp_unsigned("==", rounds.plan(plan_words.POLICY), I64(CONVERGE))
    first = b.icmp_unsigned("==", warp, I64(0))
    whole = b.not_(rounds.parted(rounds.state(warp)))
    begin = turns.append("rounds")
    b.cbranch(b.and_(b.and_(in_order, first), whole), begin, alone)
    b.position_at_end(begin)
    rounds.emit(schedule)


class _Rounds:
    """The loop over rounds, and in it that over warps."""

    def __init__(self, turns: Turns) -> None:
        self.turns, self.lanes, self.b = turns, turns.lanes, turns.lanes.b
        self.slot_first = self.b.mul(self.plan(plan_words.SLOT), turns.warps)
        self.waiting, self.barrier, self.living = turns.variables

    def emit(self, schedule: ir.Block) -> None:
        b, turns = self.b, self.turns
        begin, done = turns.append("round"), turns.append("round.done")
        b.branch(begin)
        b.position_at_end(begin)
        for place, value in ((self.waiting, 0), (self.barrier, plan_words.NONE), (self.living, 0)):
            b.store(I64(value), place)
        self._each_warp(schedule)
        together = b.icmp_unsigned("==", self._get(self.waiting), self._get(self.living))
        some = b.icmp_unsigned("!=", self._get(self.living), I64(0))
        again = turns.append("round.again")
        b.cbranch(b.and_(together, some), again, done)
        b.position_at_end(again)
        self._release()
        self.lanes.add_to(self.lanes.slot(turns.plan, plan_words.ROUND), I64(1))
        b.branch(begin)
        b.position_at_end(done)
        self._set_plan(plan_words.POSITION, turns.warps)
        b.branch(schedule)

    def _each_warp(self, schedule: ir.Block) -> None:
        """Run every warp that lives; leave for the schedule where one comes to no barrier."""
        b, turns = self.b, self.turns
        warp, following, done = self._loop("turns")
        state = self.state(warp)
        lives, ended, other = (turns.append(f"warp.{n}") for n in ("lives", "ended", "other"))
        was_ended = b.icmp_unsigned("==", self._word(state, plan_words.STATUS), I64(Status.ENDED))
        b.cbranch(was_ended, ended, lives)
        b.position_at_end(lives)
        runs, general = turns.append("warp.runs"), turns.append("warp.general")
        b.cbranch(self.parted(state), general, runs)
        b.position_at_end(general)
        self._set_plan(plan_words.POSITION, warp)
        b.branch(schedule)
        b.position_at_end(runs)
        self.lanes.add_to(self.lanes.slot(turns.plan, plan_words.TURNS), I64(1))
        status = turns.timed(warp, state)
        waits = b.icmp_unsigned("==", status, I64(Status.BARRIER))
        whole = b.not_(self.parted(state))
        all_threads = b.icmp_unsigned("==", self._word(state, plan_words.BARRIER_THREADS), I64(0))
        at_barrier = b.and_(b.and_(waits, whole), all_threads)
        gone = b.icmp_unsigned("==", status, I64(Status.ENDED))
        simple = turns.append("warp.simple")
        b.cbranch(b.or_(at_barrier, gone), simple, other)
        b.position_at_end(other)
        self._set_plan(plan_words.POSITION, b.add(warp, I64(1)))
        turns.general(warp, status)
        b.branch(schedule)
        b.position_at_end(simple)
        b.store(status, self.lanes.slot(state, plan_words.STATUS))
        self._note(state, at_barrier)
        b.branch(ended)
        b.position_at_end(ended)
        following()
        b.position_at_end(done)

    def _note(self, state: Value, at_barrier: Value) -> None:
        """Count a warp that lives, and whether it waits at the barrier of those before it."""
        b = self.b
        with b.if_then(at_barrier):
            self.lanes.add_to(self.living, I64(1))
            number, known = self._word(state, plan_words.BARRIER), self._get(self.barrier)
            fresh = b.icmp_signed("==", known, I64(plan_words.NONE))
            b.store(b.select(fresh, number, known), self.barrier)
            same = b.or_(fresh, b.icmp_signed("==", known, number))
            self.lanes.add_to(self.waiting, b.zext(same, I64))

    def _release(self) -> None:
        """Let every warp that waits go on."""
        b = self.b
        warp, following, done = self._loop("release")
        place = self.lanes.slot(self.state(warp), plan_words.STATUS)
        ended = b.icmp_unsigned("==", b.load(place, typ=I64), I64(Status.ENDED))
        b.store(b.select(ended, I64(Status.ENDED), I64(Status.RUNNABLE)), place)
        following()
        b.position_at_end(done)

    def _loop(self, name: str) -> tuple[Value, Callable[[], None], ir.Block]:
        """Begin a loop over the block's warps: the warp, what ends the body, the block after it."""
        b, turns = self.b, self.turns
        head, body, done = (turns.append(f"{name}.{part}") for part in ("head", "body", "done"))
        before = b.block
        b.branch(head)
        b.position_at_end(head)
        warp = b.phi(I64)
        warp.add_incoming(I64(0), before)
        b.cbranch(b.icmp_signed("<", warp, turns.warps), body, done)
        b.position_at_end(body)

        def following() -> None:
            warp.add_incoming(b.add(warp, I64(1)), b.block)
            b.branch(head)

        return warp, following, done

    def state(self, warp: Value) -> Value:
        index = self.b.add(self.slot_first, warp)
        return self.lanes.slot(self.turns.states, self.b.mul(index, I64(plan_words.STATE_WORDS)))

    def parted(self, state: Value) -> Value:
        """Whether a warp's lanes go on from its table, not all together."""
        resume = self._word(state, plan_words.RESUME)
        return self.b.icmp_signed("==", resume, I64(plan_words.FROM_TABLE))

    def _word(self, state: Value, word: int) -> Value:
        return self.b.load(self.lanes.slot(state, word), typ=I64)

    def plan(self, word: int) -> Value:
        return self._word(self.turns.plan, word)

    def _set_plan(self, word: int, value: Value) -> None:
        self.b.store(value, self.lanes.slot(self.turns.plan, word))

    def _get(self, place: Value) -> Value:
        return self.b.load(place, typ=I64)
