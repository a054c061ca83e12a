"""A session of the debugger: one launch, which goes forward and back, and where it stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePath

from warploom.debug.breakpoints import Breaking
from warploom.debug.inspection import DebugError, Focus
from warploom.debug.stepper import Stepper
from warploom.debug.stops import Breakpoint, Hit, Step, Stops
from warploom.debug.target import Target
from warploom.debug.timeline import Interrupted
from warploom.host.loaded import LoadedKernel
from warploom.machine.reference.state import Warp

__all__ = ["LOCKING", "DebugError", "Focus", "Session", "Stop"]

LOCKING = ("off", "step", "on")
"""Says when the warp in focus runs alone: never, while it is stepped, or always."""


@dataclass(frozen=True)
class Stop:
    """Gives the reason why the launch stands where it does: "breakpoint", "step", "exited",
    "error", "end", "begin", "interrupted" or "goto"; what a message says of it."""

    reason: str
    message: str = ""
    breakpoints: tuple[Breakpoint, ...] = ()


class Session(Breaking):
    """Debugs one launch of a kernel, from its begin on."""

    def __init__(self, kernel: LoadedKernel, target: Target) -> None:
        super().__init__(kernel, target)
        self.stop = Stop("begin")
        self.locking = "off"
        """Holds one of LOCKING."""
        self._look_at(self.stepper.warp if self.stepper.has_warp else None, 0)

    def begin(self) -> Stop:
        """Moves to the start of the launch, then runs to the first position where it stops."""
        self._stand(self.timeline.at(0))
        return self._stopped(Stop("begin"))

    def start(self) -> Stop:
        """Moves to the start of the launch, then runs until it stops."""
        self._stand(self.timeline.at(0))
        stops = self._stops()
        if self.stepper.has_warp and stops.before(self.stepper):
            return self._hit(stops.hit)
        return self._forward(stops)

    def go_on(self) -> Stop:
        """Runs to the next breakpoint, or the end."""
        return self._forward(self._stops())

    def step(self, kind: str, count: int = 1) -> Stop:
        """Steps the thread in focus: `kind` is "instruction"; "line", into functions; "over" or
        "out" of them."""
        stop = self.stop
        for _ in range(count):
            stop = self._forward(self._stops(self._step(kind)))
            if stop.reason != "step":
                break
        return stop

    def reverse_step(self, kind: str, count: int = 1) -> Stop:
        """Steps the thread in focus backwards: "instruction", "line" or "over"."""
        stop = self.stop
        for _ in range(count):
            stop = self._reverse_step(kind)
            if stop.reason != "step":
                break
        return stop

    def reverse(self) -> Stop:
        """Moves back to the last breakpoint before this position, or to the start."""
        stops = self._stops()
        found = self._search_back(stops, self.position)
        if found is None:
            self._stand(self.timeline.at(0))
            return self._stopped(Stop("begin", "No more reverse-execution history."))
        return self._arrive(found, stops)

    def last_access(self, text: str, kind: str = "write") -> Stop:
        """Moves back to before the last access to what an expression denotes."""
        watched = self.watched(text)
        seeker = Breakpoint(0, text, watched=watched, kind=kind, place=text)
        stops = self._only(seeker)
        found = self._search_back(stops, self.position)
        if found is None:
            what = "wrote" if kind == "write" else "accessed"
            return Stop("none", f"No earlier instruction in this launch {what} {text}.")
        return self._arrive(found, stops)

    def last_divergence(self) -> Stop:
        """Moves back to the last branch at which the warp in focus diverged."""
        focus = self.focus
        seeker = Breakpoint(0, "divergence", event="divergence")
        seeker.blocks = range(focus.block, focus.block + 1)
        seeker.condition = lambda _, warp, lane: warp.number == focus.warp
        stops = self._only(seeker)
        found = self._search_back(stops, self.position)
        if found is None:
            return Stop(
                "none", f"Warp {focus.warp} of block {focus.block} has not diverged so far."
            )
        return self._arrive(found, stops)

    def goto(self, position: int) -> Stop:
        """Moves to a position."""
        if position < 0:
            raise DebugError("positions start at 0")
        self._stand(self.timeline.at(position))
        return self._stopped(Stop("goto"))

    def finish(self) -> Stop:
        """Runs until the thread in focus has left the function that it is in."""
        if len(self.frames()) < 2:
            raise DebugError(
                "the thread is not in a called function; `continue` runs to the end of the kernel"
            )
        return self.step("out")

    def until(self, location: str) -> Stop:
        """Runs until the thread in focus arrives at a location, or at a breakpoint."""
        instructions, _ = self.resolve(location)
        focus = self.focus
        goal = Step(focus.block, focus.warp, focus.lane, lambda _, index: index in instructions)
        return self._forward(self._stops(goal))

    # ---- how it goes ----------------------------------------------------------------------------

    def _stops(self, step: Step | None = None) -> Stops:
        rules = self.kernel.context.rules
        warps = self.launch.warps_per_block
        return Stops(self.program, rules, warps, self.breakpoints, step)

    def _only(self, breakpoint: Breakpoint) -> Stops:
        rules, warps = self.kernel.context.rules, self.launch.warps_per_block
        return Stops(self.program, rules, warps, [breakpoint])

    def _step(self, kind: str) -> Step:
        """Returns where a step ends that begins here."""
        focus = self.focus
        thread = self.thread()
        index = self.instruction_of(thread)
        if index is None:
            raise DebugError("this thread has ended")
        return Step(focus.block, focus.warp, focus.lane, self._ends(kind, index))

    def _ends(self, kind: str, index: int) -> Callable[[Warp, int], bool]:
        """Returns which instructions end a step of a kind that begins at one."""
        here, lane, depth_of = self.places.statement(index), self.focus.lane, self.calls.depth
        depth = depth_of(self.thread().warp, lane, index)
        if kind == "instruction" or here is None:
            return lambda _, __: True
        prologue = self.places.prologue
        if kind == "out":
            return lambda warp, other: depth_of(warp, lane, other) < depth

        def ends(warp: Warp, other: int) -> bool:
            there = self.places.statement(other)
            now = depth_of(warp, lane, other)
            # The same line in another call is another statement.
            same = there == here and now == depth
            if there is None or not there.line or same or other in prologue:
                return False
            return kind != "over" or now <= depth

        return ends

    def _forward(self, stops: Stops) -> Stop:
        if self.stepper.ended:
            return self._ended()
        self._lock(alone=self.locking == "on" or (self.locking == "step" and stops.steps))
        before = self.stepper
        try:
            stepper, found = self.timeline.forward(stops, before)
        except (Interrupted, KeyboardInterrupt):
            return self._interrupted(before.position)
        self._stand(stepper)
        return self._hit(stops.hit) if found else self._ended()

    def _lock(self, *, alone: bool) -> None:
        """Runs only the warp in focus from here on, or all warps. That changes the launch, as `set
        variable` does."""
        wanted = (self.focus.block, self.focus.warp) if alone else None
        if self.stepper.grid.locked != wanted:
            self.timeline.edit(self.stepper, lambda stepper: stepper.lock(wanted))

    def _search_back(self, stops: Stops, position: int) -> int | None:
        try:
            return self.timeline.backward(stops, position)
        except (Interrupted, KeyboardInterrupt):
            self._stand(self.timeline.at(position))
            raise DebugError("interrupted; the launch is still at the same position") from None

    def _reverse_step(self, kind: str) -> Stop:
        focus, end = self.focus, self.position
        depth_of, depth = self.calls.depth, (1 << 30, 0)
        if kind == "over" and self._is_live():
            index = self.instruction_of(self.thread())
            assert index is not None
            depth = depth_of(self.thread().warp, focus.lane, index)

        prologue = frozenset[int]() if kind == "instruction" else self.places.prologue

        def own(warp: Warp, index: int) -> bool:
            return index not in prologue and depth_of(warp, focus.lane, index) <= depth

        def back(ends: Callable[[Warp, int], bool], before: int) -> int | None:
            goal = Step(focus.block, focus.warp, focus.lane, ends)
            stops = Stops(
                self.program, self.kernel.context.rules, self.launch.warps_per_block, [], goal
            )
            return self._search_back(_BeforeOnly(stops), before)

        found = back(own, end)
        if found is None:
            self._stand(self.timeline.at(end))
            self.focus = focus
            return self._stopped(Stop("begin", "No more reverse-execution history."))
        if kind == "instruction":
            return self._at_step(found, focus)
        self._stand(self.timeline.at(found))
        statement = self.places.statement(self.stepper.index)

        def differs(warp: Warp, index: int) -> bool:
            there = self.places.statement(index)
            known = there is None or there.line > 0
            return own(warp, index) and there != statement and known

        before = back(differs, found)
        start = self.timeline.at(0 if before is None else before)
        goal = Step(focus.block, focus.warp, focus.lane, own)
        stops = Stops(
            self.program, self.kernel.context.rules, self.launch.warps_per_block, [], goal
        )
        if before is None and start.has_warp and goal.is_here(start):
            return self._at_step(0, focus)
        stepper, _ = self.timeline.forward(stops, start)
        self._stand(stepper)
        self.focus = focus
        return self._stopped(Stop("step"))

    def _is_live(self) -> bool:
        warp = self.warp(self.focus.block, self.focus.warp)
        return warp is not None and bool(warp.splits.live >> self.focus.lane & 1)

    def _at_step(self, position: int, focus: Focus) -> Stop:
        self._stand(self.timeline.at(position))
        self.focus = replace(focus, frame=0)
        return self._stopped(Stop("step"))

    def _arrive(self, position: int, stops: Stops) -> Stop:
        """Moves to where a search backwards has found something."""
        self._stand(self.timeline.at(position))
        if not stops.before(self.stepper):
            # It is what the next instruction does: look at who does it.
            ahead = self.timeline.at(position)
            ahead.step()
            stops.after(ahead)
            hit = replace(stops.hit, warp=None)
            self._stand(self.timeline.at(position))
            hit.warp = self.stepper.warp
            return self._hit(hit, done=False)
        return self._hit(stops.hit, done=False)

    def _hit(self, hit: Hit, *, done: bool = True) -> Stop:
        """Sets the focus to the thread in which a search has found something; `done` says that
        events and accesses have happened by now."""
        self._look_at(hit.warp, hit.lanes)
        for each in hit.breakpoints:
            each.hits += 1
            if each.temporary and each in self.breakpoints:
                self.breakpoints.remove(each)
        if hit.breakpoints:
            late = any(each.event or each.watched is not None for each in hit.breakpoints)
            here = self._place(self.stepper.executed) if done and late else ""
            message = f"The access or event was at {here}." if here else ""
            for each in hit.breakpoints:
                message = each.site.finding.message if each.site else message
            return self._stopped(Stop("breakpoint", message, tuple(hit.breakpoints)))
        return self._stopped(Stop(hit.step))

    def _place(self, instruction: int) -> str:
        """Returns the place of an instruction, as `file:line`."""
        frame = self.places.frames(instruction)[0]
        return f"{PurePath(frame.file).name}:{frame.line}" if frame.line else f"*{instruction}"

    def _ended(self) -> Stop:
        """Notes that the launch has ended, well or not."""
        self.end_position = self.stepper.position
        error = self.stepper.error
        if error is None:
            return self._stopped(Stop("end", "The kernel has ended."))
        if self.stepper.has_warp:
            thread = getattr(error, "thread", None)
            lane = 0
            if thread is not None:
                x, y, _ = self.launch.block
                linear = thread[0] + x * (thread[1] + y * thread[2])
                lane = linear % self.launch.warp_size
            self._look_at(self.stepper.warp, 1 << lane)
        return self._stopped(Stop("error", str(error)))

    def _interrupted(self, position: int) -> Stop:
        self.timeline.interrupted = False
        furthest = max(position, self.timeline.furthest)
        self._stand(self.timeline.at(furthest))
        return self._stopped(Stop("interrupted", "Interrupted."))

    def _stand(self, stepper: Stepper) -> None:
        self.stepper = stepper
        self.focus = replace(self.focus, frame=0)

    def _stopped(self, stop: Stop) -> Stop:
        self.stop = stop
        self.target.output.show()
        if self.warp(self.focus.block, self.focus.warp) is None and self.stepper.has_warp:
            self._look_at(self.stepper.warp, 0)
        return stop

    def _look_at(self, warp: Warp | None, lanes: int) -> None:
        """Sets the focus to a warp; stays at the lane if it is among some lanes, else takes the
        first."""
        if warp is None:
            return
        wanted = lanes or warp.splits.active or warp.existing
        same = (warp.block.number, warp.number) == (self.focus.block, self.focus.warp)
        lane = self.focus.lane
        if not (same and wanted >> lane & 1):
            lane = (wanted & -wanted).bit_length() - 1
        self.focus = Focus(warp.block.number, warp.number, lane)

    @property
    def has_ended(self) -> bool:
        """Returns whether the launch stands at its end, well or not."""
        return self.stop.reason in ("end", "error")


class _BeforeOnly(Stops):
    """Finds only where a lane is about to execute something."""

    def __init__(self, stops: Stops) -> None:
        self.__dict__.update(stops.__dict__)

    def after(self, stepper: Stepper) -> bool:
        return False
