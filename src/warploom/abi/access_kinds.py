"""The kind of an access in the log (`log.LogAccess`), which packs in one integer its state space
(bits 0-7, an index of SPACES), its operation (bits 8-15, an index of OPS, or one of `log_copies`)
and the bytes of a lane. The functions accept one kind or an array of kinds."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from warploom.abi.log import OPS, SPACES
from warploom.isa.instruction import Space

Kinds = TypeVar("Kinds", int, npt.NDArray[np.int64])

OPERATION_AT, SIZE_AT = 8, 16
"""The lowest bits of operation and size."""


def pack_kind(space: Space, operation: str, size: int) -> int:
    """Packs an access's kind into an integer: from the lowest bits, the index of its state space in
    SPACES, that of its operation in OPS, and the `size` in bytes per lane."""
    return SPACES.index(space) | OPS.index(operation) << OPERATION_AT | size << SIZE_AT


def space_number(kind: Kinds) -> Kinds:
    """Returns the index in SPACES of the state space that a packed kind names."""
    return kind & 0xFF


def operation_number(kind: Kinds) -> Kinds:
    """Returns the operation that a packed kind names: an index in OPS, or a number of
    `log_copies`."""
    return kind >> OPERATION_AT & 0xFF


def lane_bytes(kind: Kinds) -> Kinds:
    """Returns the bytes per lane that a packed kind names."""
    return kind >> SIZE_AT


def with_lane_bytes(kind: int, size: int) -> int:
    """Returns a packed kind with its bytes per lane replaced by `size`; its state space and
    operation stay."""
    return kind & (1 << SIZE_AT) - 1 | size << SIZE_AT


def with_operation(kind: int, operation: str) -> int:
    """Returns a packed kind with its operation replaced by one of OPS; its state space and bytes
    per lane stay."""
    return kind & ~(0xFF << OPERATION_AT) | OPS.index(operation) << OPERATION_AT
