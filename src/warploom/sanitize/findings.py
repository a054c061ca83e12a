"""The findings of a sanitized launch."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.core.errors import Dim3

TOOLS = ("mem", "race", "sync", "init")
"""The tools that a launch can have."""

LEAK = "leak"
"""The tool that looks at memory when a program ends."""

PROGRAM_TOOLS = (*TOOLS, LEAK)
"""The tools that a program can have."""

ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread: its block in the grid, and its index in the block."""

    block: Dim3
    thread: Dim3

    def __str__(self) -> str:
        return f"thread {self.thread} in block {self.block}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a launch, or may be.

    `tool` is one of PROGRAM_TOOLS; `severity` "error", "warning" or "note". `line` is the place
    of the later access and `other_line` that of the earlier one, as `file:line`, empty where there
    is none; `threads` are theirs, in that order, and `instructions` their numbers in the program.
    `buffer` names the allocation, and `offset` is the byte there that the later access reaches.
    `count` is how often the same came up between these two instructions.
    """

    tool: str
    kind: str
    severity: str
    space: str
    line: str
    other_line: str
    threads: tuple[Thread, ...]
    buffer: str
    message: str
    count: int = 1
    offset: int = 0
    instructions: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.message
