"""Defines the findings of a sanitized launch."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.core.errors import Dim3

TOOLS = ("mem", "race", "sync", "init")
"""The tools that can check a launch."""

LEAK = "leak"
"""The tool that lists memory that is not freed when a program ends."""

API = "api"
"""The tool that lists calls of OpenCL's host API that are refused, and what a program has not
released."""

PROGRAM_TOOLS = (*TOOLS, LEAK, API)
"""The tools that can check a program."""

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
    """Describes one error of a launch, or a possible error.

    `tool` is one of PROGRAM_TOOLS; `severity` "error", "warning" or "note". `line` is the place of
    the later access and `other_line` that of the earlier one, as `file:line`, empty without one;
    `threads` are theirs, in that order, and `instructions` their numbers in the program. `buffer`
    names the allocation, and `offset` is the byte in it that the later access has. `count` is how
    often the same finding occurred for these two instructions.
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
