"""Local memory as an argument: what an OpenCL kernel takes for a `__local` pointer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from warploom.core.errors import LaunchError

ALIGNMENT = 16
"""Each stretch begins at a multiple of it: the size of the largest vectors that are loaded at
once."""


@dataclass(frozen=True, slots=True)
class LocalMemory:
    """So many bytes of local (shared) memory of each work-group, for a `__local` parameter."""

    nbytes: int

    def __post_init__(self) -> None:
        if self.nbytes <= 0:
            raise LaunchError(
                f"local memory of {self.nbytes} bytes is none; give it a size above 0"
            )

    @property
    def room(self) -> int:
        """Return the bytes that it takes up to where the next one may begin."""
        return -(-self.nbytes // ALIGNMENT) * ALIGNMENT


def local_bytes(values: Iterable[Any]) -> int:
    """Returns the bytes that all local memory among arguments takes."""
    return sum(value.room for value in values if isinstance(value, LocalMemory))
