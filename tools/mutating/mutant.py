"""Describes an error that can be planted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Subject = tuple[str, str]
"""What an error is planted in: "term" and an opcode, or "rule" and a function's qualified name."""


@dataclass(frozen=True)
class Mutant:
    """One error: where it is, what changed, and the function that plants it in this process."""

    subject: Subject
    change: str
    plant: Callable[[], None]
