"""Warps of a round that have nothing to do, skipped together (`analysis.idle`).

A warp that has gone an idle way in a round notes it. Where it would hand over to the next, all that
are left are counted as that one was; what it has computed goes into their contexts. That is right
where all warps have passed the same barriers since the block began: the relay says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llvmlite import ir

from warploom.analysis.idle import IdleWay
from warploom.codegen.environment import Slot, Status
from warploom.codegen.frame import Frame
from warploom.codegen.lanes import I1, I64, LANES, Value
from warploom.codegen.saved import Saved
from warploom.rules.plan_words import STATUS


class IdleCode:
    """Emits what it takes to skip warps in one warp function."""

    def __init__(self, frame: Frame, saved: Saved) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.saved, self._ways = saved, frame.facts.idle
        self._noted = frame.variable(I1)

    def begin(self) -> None:
        """Begin a warp's part of a round."""
        self.b.store(I1(0), self._noted)

    def note(self, branch: int, past: int) -> None:
        """Note that all lanes go from the branch at the end of a block to another block."""
        if any(way.branch == branch and way.past == past for way in self._ways):
            self.b.store(I1(1), self._noted)

    def skip(
        self, block: int | None, sites: Mapping[int, int], start: Value, then: Callable[[], None]
    ) -> None:
        """At the barrier at the end of a block, or (None) at the end of the program, where the
        running warp is to hand over to the next: if it has gone an idle way, skip all that are
        left, and go on as `then` emits. `start` is the site from which they go, `sites` numbers
        those by blocks."""
        ways = [w for w in self._ways if (w.ends and block is None) or w.blocks[-1] == block]
        if not ways:
            return
        b, frame = self.b, self.frame
        depth = b.mul(frame.slot(Slot.NTID_Y), frame.slot(Slot.NTID_Z))
        idle = b.and_(b.load(self._noted, typ=I1), b.icmp_unsigned("==", depth, I64(1)))
        skipped, onward = self._append("idle"), self._append("onward")
        b.cbranch(idle, skipped, onward)
        b.position_at_end(skipped)
        switch = b.switch(start, onward)
        for way in ways:
            counted = self._append(f"idle{sites[way.site]}")
            switch.add_case(I64(sites[way.site]), counted)
            b.position_at_end(counted)
            self._skip(way)
            then()
        b.position_at_end(onward)

    def _append(self, name: str) -> ir.Block:
        return self.frame.function.append_basic_block(name)

    def _skip(self, way: IdleWay) -> None:
        """Count all warps behind the running one, which then is the last."""
        b, frame, program = self.b, self.frame, self.frame.program
        following = b.add(frame.warp, I64(1))
        warps = b.sub(frame.slot(Slot.WARPS), following)
        lanes = b.sub(frame.slot(Slot.THREADS), b.mul(following, I64(LANES)))
        if way.ends:
            frame.context.set_state(STATUS, I64(Status.ENDED))
        if way.ends or way.changed:
            self._pass_over(way)
        else:
            frame.set_warp(b.sub(frame.slot(Slot.WARPS), I64(1)))
        length = 0
        for index in way.blocks:
            block = program.blocks[index]
            frame.counters.add(2 * index, warps)
            frame.counters.add(2 * index + 1, lanes)
            inside = range(block.start, block.stop)
            length += len(inside) - len(program.hidden.intersection(inside))
        for branch in way.taken:
            frame.counters.add(frame.layout.guarded[branch], lanes)
        used = b.mul(warps, I64(length))
        b.store(b.sub(b.load(frame.fuel.left, typ=I64), used), frame.fuel.left)

    def _pass_over(self, way: IdleWay) -> None:
        """Put what has changed into the contexts of all warps behind the running one, up to the
        last."""
        b, frame = self.b, self.frame
        body, done = self._append("pass.over"), self._append("passed")
        b.branch(body)
        b.position_at_end(body)
        frame.set_warp(b.add(frame.warp, I64(1)))
        self.saved.keep_together(way.changed)
        if way.ends:
            frame.context.set_state(STATUS, I64(Status.ENDED))
        following = b.add(frame.warp, I64(1))
        b.cbranch(b.icmp_unsigned("<", following, frame.slot(Slot.WARPS)), body, done)
        b.position_at_end(done)
