"""Reads a thread's stack of calls that are not inlined (`program.calls`): of recursive functions,
through pointers, and in programs too large for inlining.

Each such call has a frame in the thread's local memory, whose last bytes link to the caller:

    @frame -> | arguments, results, variables, saved registers | @frame of the caller | number |

The number names the call. So a thread in `fib(1)`, called by `fib(2)`, called by the kernel, has
three frames: that of its instruction, and one for each link.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from warploom.core.lazy import cached_property
from warploom.debug.places import Places
from warploom.debug.scene import Place, Thread
from warploom.isa.instruction import Address, Space
from warploom.isa.kinds import OpKind
from warploom.machine.reference.state import Warp
from warploom.program.calls import entry_label, return_label
from warploom.program.frames import SourceFrame
from warploom.program.program import Program, Site
from warploom.program.stack import DEPTH, FRAME, LINK_BYTES


class CallStack:
    """The calls of the threads of one program."""

    def __init__(self, program: Program, places: Places) -> None:
        self._program, self._places = program, places

    def frames(self, thread: Thread, instruction: int) -> tuple[SourceFrame, ...]:
        """Returns the frames of a thread that is at an instruction, the innermost first. The
        registers of a function that has been entered again since are not those of the outer frame,
        which is marked as `reentered`."""
        frames = list(self._places.frames(instruction))
        entered = {self._function(instruction)}
        for call in self._calls(thread, instruction):
            function = self._function(call)
            of_call = self._places.frames(call)
            frames += (replace(frame, reentered=function in entered) for frame in of_call)
            entered.add(function)
        return tuple(frames)

    def depth(self, warp: Warp, lane: int, instruction: int) -> tuple[int, int]:
        """Returns how deep a lane is in calls at an instruction, to be compared: calls that are not
        inlined, then frames in the innermost of them."""
        inner = len(self._places.frames(instruction))
        if self._program.depth is None:
            return 0, inner
        return int(warp.registers[DEPTH.name][lane]), inner

    def _calls(self, thread: Thread, instruction: int) -> Iterator[int]:
        """Yields the `call` instructions that led to a thread's instruction, the innermost
        first."""
        function, frame = self._function(instruction), thread.register(FRAME.name) or 0
        while function in self._frame_bytes:
            link = frame + self._frame_bytes[function] - LINK_BYTES
            words = thread.read(Place(Space.LOCAL, link), LINK_BYTES)
            frame = int.from_bytes(words[:8], "little")
            call = self._call_of(int.from_bytes(words[8:12], "little"))
            yield call
            function = self._function(call)

    def _function(self, instruction: int) -> str:
        """Returns the function that an instruction is in, of those that are not inlined."""
        site: Site | None = self._program.sites[instruction]
        name = ""
        while site is not None:
            name, copy = site.function, site.copy
            site = copy.call if copy else None
        return name

    @cached_property
    def _frame_bytes(self) -> dict[str, int]:
        """Returns the size of a frame by the function, of those that are not inlined: its first
        instruction stores the link at the end of the frame."""
        program, found = self._program, dict[str, int]()
        functions = {site.function for site in program.sites}
        for name in functions:
            block = program.targets.get(entry_label(name))
            if block is not None:
                first = program.instructions[program.blocks[block].start]
                (address,) = (one for one in first.operands if isinstance(one, Address))
                assert isinstance(address.offset, int)
                found[name] = address.offset + LINK_BYTES
        return found

    def _call_of(self, number: int) -> int:
        """Returns the `call` instruction of a number: the last before its return point."""
        program = self._program
        index = program.blocks[program.targets[return_label(number)]].start - 1
        while program.instructions[index].operation.kind is not OpKind.CALL:
            index -= 1
        return index
