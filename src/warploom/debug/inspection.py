"""Shows the thread in focus of a session: its frames, variables and source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath

import numpy as np

from warploom.core.errors import WarploomError
from warploom.core.source_files import read_source
from warploom.debug import expressions as tree
from warploom.debug.call_stack import CallStack
from warploom.debug.evaluation import Evaluator
from warploom.debug.expressions import parse
from warploom.debug.lanes import Group, groups_of
from warploom.debug.names import Names
from warploom.debug.places import Places, Statement
from warploom.debug.scene import Place, Thread
from warploom.debug.stepper import Stepper
from warploom.debug.target import Target
from warploom.debug.timeline import Timeline
from warploom.debug.values import Value
from warploom.host.loaded import LoadedKernel
from warploom.machine.reference.state import ThreadBlock, Warp, new_warp
from warploom.program.frames import SourceFrame
from warploom.simt.schedule_layout import WarpState
from warploom.simt.warp_table import WarpTable


class DebugError(WarploomError):
    """A command of the debugger cannot be done; the message says why."""


@dataclass(frozen=True)
class Focus:
    """The thread that is looked at: a block of the grid, a warp of it and a lane."""

    block: int
    warp: int
    lane: int
    frame: int = 0


class Inspection:
    """Looks at one launch of a kernel where it stands; `end_position` is where it ends, if that is
    known."""

    def __init__(self, kernel: LoadedKernel, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.program, self.launch = target.program, target.launch
        self.places, self.names = Places(self.program), Names(kernel)
        self.calls = CallStack(self.program, self.places)
        self.timeline = Timeline(target)
        self.stepper = self.timeline.at(0)
        self.focus = Focus(0, 0, 0)
        self.end_position: int | None = None
        self.sources: dict[str, str] = {}
        """Texts of source files by their names, before those that are found."""

    # ---- what is looked at ----------------------------------------------------------------------

    @property
    def position(self) -> int:
        """Returns the number of warp instructions that were executed."""
        return self.stepper.position

    def warp(self, block: int, warp: int) -> Warp | None:
        """Returns a warp of a resident block, None where that block has not begun or has ended."""
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
        """Returns the blocks that have begun and not ended."""
        slots = self.stepper.grid.run.slots
        return sorted(int(slots[s]) for s in self.stepper.grid.resident if slots[s] >= 0)

    def thread(self) -> Thread:
        """Returns the thread in focus. Raises DebugError where its block does not run now."""
        warp = self.warp(self.focus.block, self.focus.warp)
        if warp is None:
            raise DebugError(self._absent(self.focus.block))
        return Thread(self.stepper, warp, self.focus.lane)

    def _absent(self, block: int) -> str:
        if not self.stepper.has_warp:
            return "the launch has ended: go back (reverse-continue, goto) to inspect threads"
        begun = ", ".join(map(str, self.resident)) or "none"
        return f"block {block} is not running now; the resident blocks are {begun}"

    def set_focus(self, block: int, warp: int, lane: int) -> None:
        """Sets the focus to another thread. Raises DebugError where there is none, or its block
        does not run now."""
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
        """Returns where the lanes of a warp are."""
        turn = self.stepper.has_warp and self.stepper.warp is warp
        return groups_of(self.program, warp, has_turn=turn)

    def instruction_of(self, thread: Thread) -> int | None:
        """Returns the instruction that a thread executes next, None where it has ended."""
        for group in self.groups(thread.warp):
            if group.lanes >> thread.lane & 1:
                return group.instruction
        return None

    def frames(self) -> tuple[SourceFrame, ...]:
        """Returns the frames of the thread in focus, the innermost first. Raises DebugError."""
        index = self.instruction_of(self.thread())
        if index is None:
            raise DebugError("this thread has ended")
        return self.calls.frames(self.thread(), index)

    def frame(self) -> SourceFrame:
        """Returns the frame in focus."""
        frames = self.frames()
        return frames[min(self.focus.frame, len(frames) - 1)]

    def evaluator(self) -> Evaluator:
        """Returns what evaluates expressions in the frame in focus; where no thread runs, those of
        parameters, buffers and variables of the module."""
        if self.warp(self.focus.block, self.focus.warp) is None:
            return Evaluator(self.names, self.nobody(), None)
        return Evaluator(self.names, self.thread(), self.frame())

    def nobody(self, instruction: int = 0) -> Thread:
        """Returns a thread that sees memory alone, where none runs, as if it was at an
        instruction."""
        run, nothing = self.stepper.grid.run, np.zeros(1, np.uint8)
        block = ThreadBlock(run, self.focus.block, nothing, nothing, 0)
        state, table = run.states[: WarpState.WORDS], run.tables[: run.plan.table_stride]
        warp = new_warp(block, 0, WarpState(state.copy(), 0), WarpTable(table.copy(), 0))
        warp.next = instruction
        return Thread(self.stepper, warp, 0)

    def evaluate(self, text: str) -> Value:
        """Returns the value of an expression; assignments change the launch from here on. Raises
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

        def change(thread: Thread) -> None:
            Evaluator(self.names, thread, frame).assign(target, given)

        self._edit(focus, change)
        return self.evaluator().of(node.left)

    def write_memory(self, place: Place, data: bytes) -> None:
        """Changes memory, as the thread in focus sees it, from here on. Raises EvaluationError."""
        thread, focus = self.evaluator().thread, self.focus
        thread.write(place, data)
        self._edit(focus, lambda thread: thread.write(place, data))

    def _edit(self, focus: Focus, change: Callable[[Thread], None]) -> None:
        """Changes what a thread sees, now and whenever the launch comes here again."""

        def edit(stepper: Stepper) -> None:
            for warps in stepper.grid.resident.values():
                for warp in warps:
                    if (warp.block.number, warp.number) == (focus.block, focus.warp):
                        change(Thread(stepper, warp, focus.lane))

        self.timeline.edit(self.stepper, edit)
        self.end_position = None

    def variables(self) -> list[tuple[str, Value | str]]:
        """Returns the variables of the frame in focus: their values, or why they have none."""
        return self.names.variables(self.thread(), self.frame())

    # ---- source ---------------------------------------------------------------------------------

    def source_lines(self, file: str) -> list[str] | None:
        """Returns the lines of a source file, None where it cannot be found."""
        if file in self.sources:
            return self.sources[file].split("\n")
        source = self.kernel.source
        if PurePath(source.name).name == PurePath(file).name and source.content:
            return source.content.split("\n")
        for path in (Path(file), Path(source.name).parent / Path(file).name):
            text = read_source(path)
            if text is not None:
                return text.split("\n")
        return None

    def statement(self) -> Statement | None:
        """Returns the statement of the thread in focus."""
        index = self.instruction_of(self.thread())
        return None if index is None else self.places.statement(index)

    def _file(self) -> str:
        """Returns the file of the frame in focus, else that of the kernel."""
        try:
            return self.frame().file or self.main_file
        except WarploomError:
            return self.main_file

    @property
    def main_file(self) -> str:
        """Returns the file in which the kernel's own code is."""
        for index in range(len(self.program.instructions)):
            frames = self.places.frames(index)
            if frames[-1].file and frames[-1].line:
                return frames[-1].file
        return self.places.files[0] if self.places.files else ""
