"""Places in the user's source: the frames of an instruction, the instructions of a line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from warploom.core.lazy import cached_property
from warploom.program.frames import SourceFrame, frames_of
from warploom.program.program import Program


@dataclass(frozen=True)
class Statement:
    """A line of one frame: the key by which `step` and `next` distinguish lines."""

    depth: int
    file: str
    line: int


class Places:
    """The places of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._frames: dict[int, tuple[SourceFrame, ...]] = {}

    def frames(self, instruction: int) -> tuple[SourceFrame, ...]:
        """Returns the frames of an instruction, the innermost first. Those of CUDA's own headers
        and of the compiler are left out, unless there is no other."""
        known = self._frames.get(instruction)
        if known is None:
            every = [*frames_of(self._program, instruction)]
            own = [f for f in every if f.location is not None and not f.location.in_toolkit]
            known = self._frames[instruction] = tuple(own or every)
        return known

    def statement(self, instruction: int) -> Statement | None:
        """Returns the statement of an instruction, None where its source is not known."""
        frames = self.frames(instruction)
        inner = frames[0]
        if inner.location is None:
            return None
        return Statement(len(frames), inner.file, inner.line)

    # ---- lines ----------------------------------------------------------------------------------

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Returns the files that instructions are from, in the order of the instructions."""
        return tuple(dict.fromkeys(file for file, _ in self._lines))

    @cached_property
    def _lines(self) -> dict[tuple[str, int], list[int]]:
        """Returns, by file and line, the instructions at which a run through that line begins.
        Coming back from a function that the line calls is no begin."""
        found: dict[tuple[str, int], list[int]] = {}
        before: tuple[tuple[str, int], ...] = ()
        for index in range(len(self._program.instructions)):
            chain = self._chain_of(index)
            if index in self._joins and before[: len(chain)] != chain:
                before = ()
            inside = chain == before[: len(chain)]
            if index in self._program.hidden or index in self.prologue:
                continue
            if chain and chain[-1][1] and not inside:
                found.setdefault(chain[-1], []).append(index)
            before = chain
        return found

    def _chain_of(self, index: int) -> tuple[tuple[str, int], ...]:
        """Returns the file and the line of each frame of an instruction, the outermost first."""
        frames = reversed(self.frames(index))
        return tuple((frame.file, frame.line) for frame in frames)

    @cached_property
    def _joins(self) -> frozenset[int]:
        """Returns the instructions to which something else than the one before them leads."""
        origins: dict[int, set[int]] = {}
        for block in self._program.blocks:
            for successor in block.successors:
                origins.setdefault(successor, set()).add(block.index)
        blocks = self._program.blocks
        return frozenset(b.start for b in blocks if origins.get(b.index) != {b.index - 1})

    @cached_property
    def prologue(self) -> frozenset[int]:
        """Returns the instructions at the start of functions that only fetch parameters: compilers
        give them the line of the function and no column."""
        found: list[int] = []
        entered: tuple[object, ...] | None = None
        entering, begin = False, 0
        for index, made in enumerate(self._program.instructions):
            site = self._program.sites[index]
            function = site.function, site.copy.suffix if site.copy else ""
            if function != entered and site.index == 0:
                entering, begin = True, index
            entered = function
            if entering and (made.location is None or made.location.column):
                entering = False
                if made.location is not None:
                    found += range(begin, index)
        return frozenset(found)

    def of_line(self, file: str, line: int) -> tuple[int, tuple[int, ...]] | None:
        """Returns the first line from a given one on that has code, and the instructions at which
        it begins; None where there is none. A file is named by the end of its path."""
        names = [name for name in self.files if matches(name, file)]
        lines = sorted(n for name, n in self._lines if name in names and n >= line)
        if not lines:
            return None
        found = [i for name in names for i in self._lines.get((name, lines[0]), ())]
        return lines[0], tuple(found)

    def lines_of(self, file: str) -> list[int]:
        """Returns the lines of a file that have code."""
        return sorted({n for name, n in self._lines if matches(name, file)})

    def of_function(self, name: str) -> tuple[int, ...]:
        """Returns the instructions at which a function of that name begins, inlined or not."""
        found: list[int] = []
        before: set[tuple[str, str, int]] = set()
        for index in range(len(self._program.instructions)):
            frames = [*frames_of(self._program, index)]
            inside = {(f.symbol, f.suffix, f.depth) for f in frames if _is_named(f, name)}
            if index in self._program.hidden or index in self.prologue:
                continue
            if inside - before:
                found.append(index)
            before = inside
        return tuple(found)

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """Returns the names of all functions that have code."""
        every = range(len(self._program.instructions))
        return tuple(dict.fromkeys(f.function for i in every for f in frames_of(self._program, i)))


def matches(name: str, wanted: str) -> bool:
    """Returns whether a path ends in the parts of another."""
    have, want = PurePath(name.replace("\\", "/")).parts, PurePath(wanted.replace("\\", "/")).parts
    return len(want) > 0 and have[-len(want) :] == want


def _is_named(frame: SourceFrame, name: str) -> bool:
    return name in (frame.function, frame.function.rpartition("::")[2], frame.symbol)
