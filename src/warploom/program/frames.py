"""Lists the functions of the source that an instruction is in: those that a compiler or
`program.inline` has inlined around it, with the position in each.

    __device__ float f(float x) { return g(x); }     // line 1, g inlined
    an instruction of g, in a kernel that calls f in line 4:  g:9, f:1, kernel:4
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from warploom.core.mangled import read_symbol
from warploom.core.source import Location
from warploom.program.program import Program, Site


@dataclass(frozen=True)
class SourceFrame:
    """A function that an instruction is in, with the position in it: of the instruction, or of the
    call of the frame before. `symbol` is the PTX function, whose names end in `suffix`; `depth` how
    many inlined copies of others are around this one in that function. `reentered`: a deeper frame
    is of the same function, and has overwritten its registers."""

    function: str
    location: Location | None
    symbol: str
    suffix: str
    depth: int
    text_line: int
    reentered: bool = False

    @property
    def file(self) -> str:
        """Returns the file of the position, empty where it is not known."""
        return self.location.file if self.location else ""

    @property
    def line(self) -> int:
        """Returns the line of the position, 0 where it is not known."""
        return self.location.line if self.location else 0

    def __str__(self) -> str:
        where = f" at {PurePath(self.file).name}:{self.line}" if self.location else ""
        return f"{self.function}{where}"


def frames_of(program: Program, instruction: int) -> Iterator[SourceFrame]:
    """Yields the frames of an instruction, the innermost first, up to the kernel or a function that
    is not inlined."""
    site: Site | None = program.sites[instruction]
    location = program.instructions[instruction].location
    text_line = program.instructions[instruction].span.line
    # Each PTX function may hold code of others that the compiler has inlined (the chain of its
    # locations), and may itself be a copy that `program.inline` has made in another.
    while site is not None:
        chain = [*_chain(location)]
        suffix = site.copy.suffix if site.copy else ""
        for number, position in enumerate(chain):
            depth = len(chain) - 1 - number
            inlined = position.function if depth and position is not None else None
            function = read_symbol(inlined or site.function).name
            yield SourceFrame(function, position, site.function, suffix, depth, text_line)
        copy = site.copy
        site = copy.call if copy else None
        location = copy.location if copy else None
        text_line = copy.line if copy else 0


def _chain(location: Location | None) -> Iterator[Location | None]:
    """Yields a location and those that it is inlined at."""
    yield location
    while location is not None and location.inlined_at is not None:
        location = location.inlined_at
        yield location
