"""Chooses the remedy for an access out of bounds: by the memory, and by the allocation's side."""

from __future__ import annotations

from warploom.core.errors import Allocation
from warploom.isa.instruction import Space
from warploom.program.program import Program

NULL_PAGE = 4096
"""Global addresses below are offsets from a null pointer: no allocation is there."""


def is_null(space: Space, address: int) -> bool:
    """Returns whether an address is that of a null pointer, or a little above it."""
    return space is Space.GLOBAL and address < NULL_PAGE


def bounds_advice(space: Space, address: int, program: Program, nearest: Allocation | None) -> str:
    """Returns the sentence of a message that states how to fix an access out of bounds, by the
    memory and by the side of the allocation on which the access lies."""
    if is_null(space, address):
        return (
            "The pointer is null. Pass a device buffer, and check the code that computes the "
            "pointer."
        )
    if nearest is not None and signed_address(space, address) < nearest.address:
        return (
            "The index is negative, or the pointer belongs to another buffer. Guard the access "
            "(for a halo: `if (i >= 0)`), and look for unsigned subtractions that wrap around."
        )
    if space is Space.SHARED:
        slots = program.slots.values()
        if any(slot.space is Space.SHARED and slot.size == 0 for slot in slots):
            return (
                "The launch sets the size of `extern __shared__` memory, in bytes, as the third "
                "launch parameter (--shared BYTES). Increase this size, or guard the access."
            )
        return (
            "Make the __shared__ array as large as the block's indices require, or guard the "
            "access."
        )
    if space is Space.LOCAL:
        return "Guard the index into the thread's local array, or make the array larger."
    return (
        "Guard the access (for a tail: `if (i < n)`), or make the buffer as long as the grid"
        " covers."
    )


def signed_address(space: Space, address: int) -> int:
    """Returns an address; of shared and local memory, whose addresses begin at 0, a negative one if
    an index below 0 made it wrap around."""
    wraps = space in (Space.SHARED, Space.LOCAL) and address >> 31 & 1
    return address - (1 << 32 if address < 1 << 32 else 1 << 64) * wraps
