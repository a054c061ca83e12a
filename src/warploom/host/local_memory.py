"""Represents local memory as an argument: the size that an OpenCL kernel takes for a `__local`
pointer."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from warploom.core.errors import LaunchError

ALIGNMENT = 16
"""The alignment in bytes of each argument's memory: the size of the widest vector load."""


@dataclass(frozen=True, slots=True)
class LocalMemory:
    """Requests `nbytes` bytes of local (shared) memory in each work-group for a `__local`
    parameter."""

    nbytes: int

    def __post_init__(self) -> None:
        if self.nbytes <= 0:
            raise LaunchError(
                f"invalid size of local memory: {self.nbytes} bytes; it must be greater than 0"
            )

    @property
    def padded_bytes(self) -> int:
        """Returns the size in bytes, rounded up to a multiple of ALIGNMENT."""
        return -(-self.nbytes // ALIGNMENT) * ALIGNMENT

    @property
    def room(self) -> int:
        """Returns `padded_bytes`, under the name that it had before."""
        message = "`room` is deprecated: use `padded_bytes`"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.padded_bytes


def local_bytes(values: Iterable[Any]) -> int:
    """Returns the bytes that all local memory among arguments takes."""
    return sum(value.padded_bytes for value in values if isinstance(value, LocalMemory))
