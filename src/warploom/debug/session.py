"""A session of the debugger: one launch, where it stands, what is looked at, where it stops."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import numpy as np

from warploom.core.errors import WarploomError
from warploom.debug import expressions as tree
from warploom.debug.evaluation import Evaluator
from warploom.debug.expressions import Node, parse
from warploom.debug.lanes import Group, groups_of
from warploom.debug.names import Names
from warploom.debug.places import Frame, Places, Statement
from warploom.debug.scene import EvaluationError, Place, Thread
from warploom.debug.stepper import Stepper
from warploom.debug.stops import EVENTS, Breakpoint, Hit, Step, Stops, Watched
from warploom.debug.target import Target
from warploom.debug.timeline import Interrupted, Timeline
from warploom.debug.values import Value
from warploom.host.loaded import LoadedKernel
from warploom.machine.reference.state import Block, Warp, new_warp
from warploom.ptx.ir import Space


class DebugError(WarploomError):
    """A command of the debugger cannot be done; the message says why."""


@dataclass(frozen=True)
class Focus:
    """The thread that is looked at: a block of the grid, a warp of it and a lane."""

    block: int
    warp: int
    lane: int
    frame: int = 0


@dataclass(frozen=True)
class Stop:
    """Why the launch stands where it does: "breakpoint", "step", "exited", "error", "end",
    "begin", "interrupted" or "goto"; what a message says of it."""

    reason: str
    message: str = ""
    breakpoints: tuple[Breakpoint, ...] = ()


class Session:
    """Debugs one launch of a kernel, from its begin on."""

    def __init__(self, kernel: LoadedKernel, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.program, self.launch = target.program, target.launch
        self.places, self.names = Places(self.program), Names(kernel)
        self.timeline = Timeline(target)
        self.breakpoints: list[Breakpoint] = []
        self._numbers = 0
        self.stepper = self.timeline.at(0)
        self.stop = Stop("begin")
        self.focus = Focus(0, 0, 0)
        self.end_position: int | None = None
        self._look_at(self.stepper.warp if self.stepper.has_warp else None, 0)

    # ---- what is looked at ----------------------------------------------------------------------

    @property
    def position(self) -> int:
        """The number of warp instructions that were executed."""
        return self.stepper.position

    def warp(self, block: int, warp: int) -> Warp | None:
        """Return a warp of a resident block, None where that block has not begun or has ended."""
        slots = self.stepper.grid.run.slots
        for slot, warps in self.stepper.grid.resident.items():
            if slots[slot] == block and warp < len(warps):
                return warps[warp]
        faulted = self.stepper.warp if self.stepper.has_warp else None
        if faulted is not None and (faulted.block.number, faulted.number) == (block, warp):
            return faulted
        return None

    @property
    def resident(self) -> list[int]:
        """The blocks that have begun and not ended."""
        slots = self.stepper.grid.run.slots
        return sorted(int(slots[s]) for s in self.stepper.grid.resident if slots[s] >= 0)

    def thread(self) -> Thread:
        """Return the thread in focus. Raises DebugError where its block does not run now."""
        warp = self.warp(self.focus.block, self.focus.warp)
        if warp is None:
            raise DebugError(self._absent(self.focus.block))
        return Thread(self.stepper, warp, self.focus.lane)

    def _absent(self, block: int) -> str:
        if self.stop.reason == "end" or not self.stepper.has_warp:
            return "the launch has ended: go back (reverse-continue, goto) to look at threads"
        begun = ", ".join(map(str, self.resident)) or "none"
        return f"block {block} does not run now; resident blocks: {begun}"

    def set_focus(self, block: int, warp: int, lane: int) -> None:
        """Look at another thread. Raises DebugError where there is none, or its block does not run
        now."""
        launch = self.launch
        if not 0 <= block < launch.blocks:
            raise DebugError(f"the grid has {launch.blocks} blocks; there is no block {block}")
        if not 0 <= warp < launch.warps_per_block:
            raise DebugError(f"a block has {launch.warps_per_block} warps; there is no warp {warp}")
        linear = warp * launch.warp_size + lane
        if not 0 <= lane < launch.warp_size or linear >= launch.threads_per_block:
            raise DebugError(f"warp {warp} has no lane {lane}")
        if self.warp(block, warp) is None:
            raise DebugError(self._absent(block))
        self.focus = Focus(block, warp, lane)

    def groups(self, warp: Warp) -> tuple[Group, ...]:
        """Return where the lanes of a warp are."""
        turn = self.stepper.has_warp and self.stepper.warp is warp
        return groups_of(self.program, warp, has_turn=turn)

    def instruction_of(self, thread: Thread) -> int | None:
        """Return the instruction that a thread executes next, None where it has ended."""
        for group in self.groups(thread.warp):
            if group.lanes >> thread.lane & 1:
                return group.instruction
        return None

    def frames(self) -> tuple[Frame, ...]:
        """Return the frames of the thread in focus, the innermost first. Raises DebugError."""
        index = self.instruction_of(self.thread())
        if index is None:
            raise DebugError("this thread has ended")
        return self.places.frames(index)

    def frame(self) -> Frame:
        """Return the frame in focus."""
        frames = self.frames()
        return frames[min(self.focus.frame, len(frames) - 1)]

    def evaluator(self) -> Evaluator:
        """Return what evaluates expressions in the frame in focus; where no thread runs, those of
        parameters, buffers and variables of the module."""
        if self.warp(self.focus.block, self.focus.warp) is None:
            return Evaluator(self.names, self._nobody(), None)
        return Evaluator(self.names, self.thread(), self.frame())

    def _nobody(self) -> Thread:
        """Return a thread that sees memory alone, where none runs."""
        run, nothing = self.stepper.grid.run, np.zeros(1, np.uint8)
        block = Block(run, self.focus.block, nothing, nothing, 0)
        return Thread(self.stepper, new_warp(block, 0, run.states[0].copy(), run.tables[0]), 0)

    def evaluate(self, text: str) -> Value:
        """Return the value of an expression; assignments change the launch from here on. Raises
        EvaluationError or DebugError."""
        node = parse(text)
        if isinstance(node, tree.Binary) and node.operator == "=":
            return self._assign(node)
        return self.evaluator().of(node)

    def _assign(self, node: tree.Binary) -> Value:
        evaluator = self.evaluator()
        value = evaluator.of(node.right)
        target = evaluator.of(node.left)
        given = value.number(evaluator.thread)
        evaluator.assign(target, given)  # raises where it cannot be
        focus, frame = self.focus, evaluator.frame

        def edit(stepper: Stepper) -> None:
            for warps in stepper.grid.resident.values():
                for warp in warps:
                    if (warp.block.number, warp.number) == (focus.block, focus.warp):
                        thread = Thread(stepper, warp, focus.lane)
                        Evaluator(self.names, thread, frame).assign(target, given)

        self.timeline.edit(self.stepper, edit)
        self.end_position = None
        return self.evaluator().of(node.left)

    def write_memory(self, place: Place, data: bytes) -> None:
        """Change memory, as the thread in focus sees it, from here on. Raises EvaluationError."""
        thread, focus = self.evaluator().thread, self.focus
        thread.write(place, data)

        def edit(stepper: Stepper) -> None:
            for warps in stepper.grid.resident.values():
                for warp in warps:
                    if (warp.block.number, warp.number) == (focus.block, focus.warp):
                        Thread(stepper, warp, focus.lane).write(place, data)

        self.timeline.edit(self.stepper, edit)
        self.end_position = None

    def variables(self) -> list[tuple[str, Value | str]]:
        """Return the variables of the frame in focus: their values, or why they have none."""
        return self.names.variables(self.thread(), self.frame())

    # ---- breakpoints ----------------------------------------------------------------------------

    def add(self, text: str, **options: object) -> Breakpoint:
        """Add a breakpoint; see `resolve` for the text. Raises DebugError."""
        location, _, condition = text.partition(" if ")
        instructions, place = self.resolve(location.strip())
        made = self._numbered(f"{location.strip()}", instructions=frozenset(instructions))
        made.place = place
        if condition.strip():
            self.set_condition(made, condition.strip())
        made.temporary = bool(options.get("temporary"))
        self.breakpoints.append(made)
        return made

    def catch(self, event: str, least: int = 0) -> Breakpoint:
        """Add a breakpoint at an event, one of `stops.EVENTS`; `least` is from how many bank
        conflicts or sectors on. Raises DebugError."""
        if event not in EVENTS:
            raise DebugError(f"there is no event {event}; there are {', '.join(EVENTS)}")
        standard = {"bank-conflict": 1, "uncoalesced": 5}.get(event, 0)
        made = self._numbered(event)
        made.event, made.least = event, least or standard
        self.breakpoints.append(made)
        return made

    def watch(self, text: str, kind: str = "write") -> Breakpoint:
        """Add a breakpoint at accesses to what an expression stands for: `kind` is one of
        `stops.OPS`. Raises EvaluationError or DebugError."""
        expression, _, condition = text.partition(" if ")
        made = self._numbered(expression.strip())
        made.watched, made.kind = self.watched(expression), kind
        if condition.strip():
            self.set_condition(made, condition.strip())
        self.breakpoints.append(made)
        return made

    def watched(self, text: str) -> Watched:
        """Return the memory that an expression stands for. Raises DebugError where it stands for
        none."""
        evaluator = self.evaluator()
        value, thread = evaluator.value(text), evaluator.thread
        if value.place is None or value.place.space is Space.PARAM:
            raise DebugError(f"{text} is not in memory, so nothing can write it but its own thread")
        place = value.place.resolved
        if place.space is Space.SHARED:
            return Watched(place.space, place.address, value.type.size, thread.warp.block.number)
        if place.space is Space.LOCAL:
            own = thread.warp.block.number, thread.warp.number, thread.lane
            return Watched(place.space, place.address, value.type.size, *own)
        return Watched(place.space, place.address, value.type.size)

    def _numbered(self, text: str, **given: object) -> Breakpoint:
        self._numbers += 1
        return Breakpoint(self._numbers, text, **given)  # type: ignore[arg-type]

    def delete(self, number: int) -> None:
        """Remove a breakpoint. Raises DebugError where there is none of that number."""
        self.breakpoints.remove(self.breakpoint(number))

    def breakpoint(self, number: int) -> Breakpoint:
        """Return a breakpoint. Raises DebugError where there is none of that number."""
        for each in self.breakpoints:
            if each.number == number:
                return each
        raise DebugError(f"there is no breakpoint {number}; `info breakpoints` lists them")

    def set_condition(self, breakpoint: Breakpoint, text: str) -> None:
        """Give a breakpoint a condition, or none. Raises EvaluationError."""
        breakpoint.condition_text = text
        breakpoint.condition, breakpoint.blocks = None, None
        if not text:
            return
        node = parse(text)
        breakpoint.blocks = self._blocks_where(node)

        def holds(stepper: Stepper, warp: Warp, lane: int) -> bool:
            index = warp.next if stepper.warp is warp else stepper.executed
            thread = Thread(stepper, warp, lane)
            try:
                return Evaluator(self.names, thread, self.places.frames(index)[0]).holds(node)
            except EvaluationError:
                return False

        breakpoint.condition = holds

    def _blocks_where(self, node: Node) -> range | None:
        """Return the blocks in which alone a condition can hold, as far as it says so itself: by
        what it demands of `blockIdx`, in a grid of one dimension."""
        match node:
            case tree.Binary("&&", left, right):
                return self._blocks_where(left) or self._blocks_where(right)
            case tree.Binary("==", tree.Access(tree.Name("blockIdx"), "x"), tree.Number(value)):
                one = self.launch.grid[1:] == (1, 1) and isinstance(value, int)
                return range(int(value), int(value) + 1) if one else None
            case _:
                return None

    def resolve(self, text: str) -> tuple[tuple[int, ...], str]:
        """Return the instructions of `LINE`, `FILE:LINE`, a function or `*INSTRUCTION`, and how the
        place is called. Raises DebugError where there is no code."""
        if text.startswith("*"):
            try:
                index = int(text[1:], 0)
            except ValueError:
                raise DebugError(f"{text} is not * and the number of an instruction") from None
            if not 0 <= index < len(self.program.instructions):
                last = len(self.program.instructions) - 1
                raise DebugError(f"instructions have the numbers 0 to {last}")
            return (index,), f"instruction {index}"
        if not text:
            index = self.instruction_of(self.thread())
            return ((index or 0),), f"instruction {index}"
        file, _, number = text.rpartition(":")
        if re.fullmatch(r"[+-]?\d+", number) and not file.endswith(":"):
            return self._resolve_line(file or self._file(), int(number))
        found = self.places.of_function(text)
        if not found:
            known = ", ".join(self.places.functions[:12])
            raise DebugError(f"there is no function {text}; functions with code: {known}")
        return found, text

    def _file(self) -> str:
        """Return the file of the frame in focus, else that of the kernel."""
        try:
            return self.frame().file or self.main_file
        except WarploomError:
            return self.main_file

    @property
    def main_file(self) -> str:
        """The file in which the kernel's own code is."""
        for index in range(len(self.program.instructions)):
            frames = self.places.frames(index)
            if frames[-1].file and frames[-1].line:
                return frames[-1].file
        return self.places.files[0] if self.places.files else ""

    def _resolve_line(self, file: str, line: int) -> tuple[tuple[int, ...], str]:
        found = self.places.of_line(file, line)
        if found is None:
            if not any(self.places.files):
                raise DebugError(
                    "the kernel was compiled without lines; compile with -lineinfo, or break at a"
                    " function or at *INSTRUCTION"
                )
            names = ", ".join(PurePath(name).name for name in self.places.files)
            raise DebugError(f"there is no code at or behind line {line} of {file}; files: {names}")
        return found[1], f"{PurePath(file).name}:{found[0]}"

    # ---- going ----------------------------------------------------------------------------------

    def begin(self) -> Stop:
        """Go to the begin of the launch, and on to the first place where it stops there."""
        self._stand(self.timeline.at(0))
        return self._stopped(Stop("begin"))

    def start(self) -> Stop:
        """Go to the begin of the launch, then on until it stops."""
        self._stand(self.timeline.at(0))
        stops = self._stops()
        if self.stepper.has_warp and stops.before(self.stepper):
            return self._hit(stops.hit)
        return self._forward(stops)

    def go_on(self) -> Stop:
        """Go on until a breakpoint, or the end."""
        return self._forward(self._stops())

    def step(self, kind: str, count: int = 1) -> Stop:
        """Step the thread in focus: `kind` is "instruction"; "line", into functions; "over" or
        "out" of them."""
        stop = self.stop
        for _ in range(count):
            stop = self._forward(self._stops(self._step(kind)))
            if stop.reason != "step":
                break
        return stop

    def reverse_step(self, kind: str, count: int = 1) -> Stop:
        """Step the thread in focus backwards: "instruction", "line" or "over"."""
        stop = self.stop
        for _ in range(count):
            stop = self._reverse_step(kind)
            if stop.reason != "step":
                break
        return stop

    def reverse(self) -> Stop:
        """Go back to the last breakpoint before, or to the begin."""
        stops = self._stops()
        found = self._search_back(stops, self.position)
        if found is None:
            self._stand(self.timeline.at(0))
            return self._stopped(Stop("begin", "No more reverse-execution history."))
        return self._arrive(found, stops)

    def last_access(self, text: str, kind: str = "write") -> Stop:
        """Go back to the last access to what an expression stands for, before it is done."""
        watched = self.watched(text)
        seeker = Breakpoint(0, text, watched=watched, kind=kind, place=text)
        stops = self._only(seeker)
        found = self._search_back(stops, self.position)
        if found is None:
            what = "wrote" if kind == "write" else "accessed"
            return Stop("none", f"Nothing {what} {text} before in this launch.")
        return self._arrive(found, stops)

    def last_divergence(self) -> Stop:
        """Go back to where lanes of the warp in focus parted last."""
        focus = self.focus
        seeker = Breakpoint(0, "divergence", event="divergence")
        seeker.blocks = range(focus.block, focus.block + 1)
        seeker.condition = lambda _, warp, lane: warp.number == focus.warp
        stops = self._only(seeker)
        found = self._search_back(stops, self.position)
        if found is None:
            return Stop("none", f"Warp {focus.warp} of block {focus.block} has not diverged before.")
        return self._arrive(found, stops)

    def goto(self, position: int) -> Stop:
        """Go to a position."""
        if position < 0:
            raise DebugError("positions begin at 0")
        self._stand(self.timeline.at(position))
        return self._stopped(Stop("goto"))

    def finish(self) -> Stop:
        """Go on until the thread in focus has left the function that it is in."""
        if len(self.frames()) < 2:
            raise DebugError("the thread is in the kernel itself; `continue` goes to its end")
        return self.step("out")

    def until(self, location: str) -> Stop:
        """Go on until the thread in focus comes to a place, or to a breakpoint."""
        instructions, _ = self.resolve(location)
        focus = self.focus
        goal = Step(focus.block, focus.warp, focus.lane, lambda index: index in instructions)
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
        """Return where a step ends that begins here."""
        focus = self.focus
        thread = self.thread()
        index = self.instruction_of(thread)
        if index is None:
            raise DebugError("this thread has ended")
        return Step(focus.block, focus.warp, focus.lane, self._ends(kind, index))

    def _ends(self, kind: str, index: int) -> Callable[[int], bool]:
        """Return which instructions end a step of a kind that begins at one."""
        here, depth = self.places.statement(index), len(self.places.frames(index))
        if kind == "instruction" or here is None:
            return lambda _: True
        prologue = self.places.prologue
        if kind == "out":
            return lambda other: len(self.places.frames(other)) < depth

        def ends(other: int) -> bool:
            there = self.places.statement(other)
            if there is None or not there.line or there == here or other in prologue:
                return False
            if kind == "over":
                return there.depth <= depth
            return True

        return ends

    def _forward(self, stops: Stops) -> Stop:
        if self.stepper.ended:
            return self._ended()
        before = self.stepper
        try:
            stepper, found = self.timeline.forward(stops, before)
        except (Interrupted, KeyboardInterrupt):
            return self._interrupted(before.position)
        self._stand(stepper)
        return self._hit(stops.hit) if found else self._ended()

    def _search_back(self, stops: Stops, position: int) -> int | None:
        try:
            return self.timeline.backward(stops, position)
        except (Interrupted, KeyboardInterrupt):
            self._stand(self.timeline.at(position))
            raise DebugError("interrupted; the launch stands where it was") from None

    def _reverse_step(self, kind: str) -> Stop:
        focus, end = self.focus, self.position
        depth = len(self.frames()) if kind == "over" and self._is_live() else 1 << 30

        def own(index: int) -> bool:
            return len(self.places.frames(index)) <= depth

        def back(ends: Callable[[int], bool], before: int) -> int | None:
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
        prologue = self.places.prologue

        def differs(index: int) -> bool:
            there = self.places.statement(index)
            known = there is None or there.line > 0
            return own(index) and there != statement and known and index not in prologue

        before = back(differs, found)
        start = self.timeline.at(0 if before is None else before)
        goal = Step(focus.block, focus.warp, focus.lane, own)
        stops = Stops(self.program, self.kernel.context.rules, self.launch.warps_per_block, [], goal)
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
        """Stand where a search backwards has found something."""
        self._stand(self.timeline.at(position))
        if not stops.before(self.stepper):
            # It is what the next instruction does: look at who does it.
            ahead = self.timeline.at(position)
            ahead.step()
            stops.after(ahead)
            hit = replace(stops.hit, warp=None)
            self._stand(self.timeline.at(position))
            hit.warp = self.stepper.warp
            return self._hit(hit)
        return self._hit(stops.hit)

    def _hit(self, hit: Hit) -> Stop:
        """Look at the thread in which a search has found something."""
        self._look_at(hit.warp, hit.lanes)
        for each in hit.breakpoints:
            each.hits += 1
            if each.temporary and each in self.breakpoints:
                self.breakpoints.remove(each)
        if hit.breakpoints:
            return self._stopped(Stop("breakpoint", breakpoints=tuple(hit.breakpoints)))
        return self._stopped(Stop(hit.step))

    def _ended(self) -> Stop:
        """The launch has ended, well or not."""
        self.end_position = self.stepper.position
        error = self.stepper.error
        if error is None:
            return self._stopped(Stop("end", "The kernel has ended."))
        if self.stepper.has_warp:
            thread = getattr(error, "thread", None)
            lane = 0
            if thread is not None:
                x, y, z = self.launch.block
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
        """Look at a warp; stay at the lane if it is among some lanes, else take the first."""
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

    # ---- source ---------------------------------------------------------------------------------

    def source_lines(self, file: str) -> list[str] | None:
        """Return the lines of a source file, None where it cannot be found."""
        source = self.kernel.source
        if PurePath(source.name).name == PurePath(file).name and source.content:
            return source.content.split("\n")
        for path in (Path(file), Path(source.name).parent / Path(file).name):
            try:
                return path.read_text(errors="replace").split("\n")
            except OSError:
                continue
        return None

    def statement(self) -> Statement | None:
        """Return the statement of the thread in focus."""
        index = self.instruction_of(self.thread())
        return None if index is None else self.places.statement(index)

    def place_of(self, value: Value) -> Place | None:
        """Return where a value is in memory."""
        return value.place


class _BeforeOnly(Stops):
    """Finds only where a lane is about to execute something."""

    def __init__(self, stops: Stops) -> None:
        self.__dict__.update(stops.__dict__)

    def after(self, stepper: Stepper) -> bool:
        return False
