"""Sets breakpoints in a session: resolves places, conditions and what is watched."""

from __future__ import annotations

import re
from pathlib import PurePath

from warploom.core.errors import WarploomError
from warploom.debug import expressions as tree
from warploom.debug.evaluation import Evaluator
from warploom.debug.expressions import Node, names_in, parse
from warploom.debug.inspection import DebugError, Inspection
from warploom.debug.scene import EvaluationError, Thread, UnknownName
from warploom.debug.stepper import Stepper
from warploom.debug.stops import COUNTED, EVENTS, FINDINGS, Breakpoint, Watched
from warploom.debug.target import Target, sites_found
from warploom.host.loaded import LoadedKernel
from warploom.isa.instruction import Space
from warploom.machine.reference.state import Warp
from warploom.sanitize.report import FindingSite


class Breaking(Inspection):
    """A session with breakpoints."""

    def __init__(self, kernel: LoadedKernel, target: Target) -> None:
        super().__init__(kernel, target)
        self.breakpoints: list[Breakpoint] = []
        self._numbers = 0

    def add(self, text: str, **options: object) -> Breakpoint:
        """Adds a breakpoint; see `resolve` for the text. Raises DebugError."""
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
        """Adds a breakpoint at an event, one of `stops.EVENTS`; `least` is from how many bank
        conflicts or sectors on. Events that sanitizers find are looked for in a run of their own,
        from the start of the launch: `least` is then the number of the one to stop at, else the
        first. Raises DebugError."""
        if event not in EVENTS:
            raise DebugError(f"there is no event {event}; the events are {', '.join(EVENTS)}")
        standard = COUNTED.get(event, 0)
        made = self._numbered(event)
        made.event, made.least = event, least or standard
        if event in FINDINGS:
            made.least, made.kind = max(1, least), "access"
            made.site = site = self._site(event, made.least)
            place = site.space, site.address, site.size
            made.watched = Watched(*place, site.block, site.warp, site.lane)
            made.blocks = range(site.block, site.block + 1)
        self.breakpoints.append(made)
        return made

    def _site(self, event: str, number: int) -> FindingSite:
        """Returns the access of an event that a sanitizer finds, by its number. Raises DebugError
        where there is none in this launch, or the user has changed what it would see."""
        if self.timeline.edited:
            raise DebugError(
                f"`catch {event}` is not possible after `set variable`, because `catch` "
                "restarts the launch without the values that you set. Enter "
                f"`catch {event}` before `set variable`."
            )
        position, engine = self.position, self.kernel.context.engine_name
        with self.timeline.at_begin():
            sites = sites_found(self.target, engine, FINDINGS[event])
        self.stepper = self.timeline.at(position)
        if not sites:
            raise DebugError(f"the sanitizer has found no `{event}` in this launch")
        if number > len(sites):
            raise DebugError(f"this launch has only {len(sites)} `{event}` findings")
        return sites[number - 1]

    def watch(self, text: str, kind: str = "write") -> Breakpoint:
        """Adds a breakpoint at accesses to what an expression stands for: `kind` is one of
        `stops.OPS`. Raises EvaluationError or DebugError."""
        expression, _, condition = text.partition(" if ")
        made = self._numbered(expression.strip())
        made.watched, made.kind = self.watched(expression), kind
        if condition.strip():
            self.set_condition(made, condition.strip())
        self.breakpoints.append(made)
        return made

    def watched(self, text: str) -> Watched:
        """Returns the memory that an expression stands for. Raises DebugError where it stands for
        none."""
        evaluator = self.evaluator()
        value, thread = evaluator.value(text), evaluator.thread
        if value.place is None or value.place.space is Space.PARAM:
            raise DebugError(
                f"{text} cannot be watched: it is not in memory, and only its own thread can write "
                "it"
            )
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
        """Removes a breakpoint. Raises DebugError where there is none of that number."""
        self.breakpoints.remove(self.breakpoint(number))

    def breakpoint(self, number: int) -> Breakpoint:
        """Returns a breakpoint. Raises DebugError where there is none of that number."""
        for each in self.breakpoints:
            if each.number == number:
                return each
        raise DebugError(
            f"there is no breakpoint {number}; `info breakpoints` lists the breakpoints"
        )

    def set_condition(self, breakpoint: Breakpoint, text: str) -> None:
        """Gives a breakpoint a condition, or none. Raises EvaluationError."""
        breakpoint.condition_text = text
        breakpoint.condition, breakpoint.blocks = None, None
        if not text:
            return
        node = parse(text)
        self._check_names(breakpoint, node)
        breakpoint.blocks = self._blocks_where(node)

        def holds(stepper: Stepper, warp: Warp, lane: int) -> bool:
            index = warp.next if stepper.warp is warp else stepper.executed
            thread = Thread(stepper, warp, lane)
            try:
                return Evaluator(self.names, thread, self.places.frames(index)[0]).holds(node)
            except EvaluationError:
                return False

        breakpoint.condition = holds

    def _check_names(self, breakpoint: Breakpoint, node: Node) -> None:
        """Raises UnknownName where a condition has a name that is none at a breakpoint's place."""
        for index in breakpoint.instructions:
            nobody = self.nobody(index)
            frame = self.places.frames(index)[0]
            for name in names_in(node):
                try:
                    self.names.find(name, nobody, frame)
                except UnknownName:
                    raise
                except WarploomError:  # it has no value before the launch has come here
                    continue

    def _blocks_where(self, node: Node) -> range | None:
        """Returns the only blocks in which a condition can hold, as far as the condition determines
        them: by what it demands of `blockIdx`, in a grid of one dimension."""
        match node:
            case tree.Binary("&&", left, right):
                return self._blocks_where(left) or self._blocks_where(right)
            case tree.Binary("==", tree.Access(tree.Name("blockIdx"), "x"), tree.Number(value)):
                one = self.launch.grid[1:] == (1, 1) and isinstance(value, int)
                return range(int(value), int(value) + 1) if one else None
            case _:
                return None

    def resolve(self, text: str) -> tuple[tuple[int, ...], str]:
        """Returns the instructions of `LINE`, `FILE:LINE`, a function or `*INSTRUCTION`, and the
        name of the location. Raises DebugError where there is no code."""
        if text.startswith("*"):
            try:
                index = int(text[1:], 0)
            except ValueError:
                raise DebugError(
                    f"expected * and an instruction number, such as *12, not {text}"
                ) from None
            if not 0 <= index < len(self.program.instructions):
                last = len(self.program.instructions) - 1
                raise DebugError(f"instructions are numbered from 0 to {last}")
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
            raise DebugError(f"there is no function {text}; the functions with code are {known}")
        return found, text

    def _resolve_line(self, file: str, line: int) -> tuple[tuple[int, ...], str]:
        found = self.places.of_line(file, line)
        if found is None:
            if not any(self.places.files):
                raise DebugError(
                    "the kernel was compiled without line information; compile with -lineinfo, or "
                    "break at a function or at *INSTRUCTION"
                )
            names = ", ".join(PurePath(name).name for name in self.places.files)
            raise DebugError(
                f"there is no code at or after line {line} of {file}; the files are {names}"
            )
        return found[1], f"{PurePath(file).name}:{found[0]}"
