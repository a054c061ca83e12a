"""Counts the distinct stretches of memory that the lanes of an access touch, in any order, and how
many lanes coincide on one.

Compiled code compares all pairs of lanes by vector instructions (`helpers.overlap`).
"""

from __future__ import annotations

from collections import Counter

from warploom.simt.lane_counts import Addresses, segments_of

FURTHEST_BITS = 32
"""Lanes are compared where they lie in the same 2^32 stretches."""


def count_segments(addresses: Addresses, mask: int, shift: int) -> tuple[int, int]:
    """Returns, of the stretches of 2^shift bytes that the lanes of `mask` touch, how many there
    are, and how many aligned groups of 4 have one. Zeros where the lanes do not lie in the same
    2^32 stretches."""
    touched = set(segments_of(addresses, mask, shift))
    if len({segment >> FURTHEST_BITS for segment in touched}) > 1:
        return 0, 0
    return len(touched), len({segment // 4 for segment in touched})


def count_in_columns(
    addresses: Addresses, mask: int, shift: int, columns: int
) -> tuple[int, int, int, int]:
    """Returns how many stretches there are, how many aligned groups of 8 and of 32 have one, and
    the most in one column, where `columns` neighbours, a power of 2 up to 32, lie in different
    ones. Zeros where the lanes do not lie in the same 2^32 stretches."""
    touched = set(segments_of(addresses, mask, shift))
    if len({segment >> FURTHEST_BITS for segment in touched}) > 1:
        return 0, 0, 0, 0
    eights, lines = (len({segment // size for segment in touched}) for size in (8, 32))
    return (
        len(touched),
        eights,
        lines,
        max(Counter(segment % columns for segment in touched).values()),
    )


def count_coinciding(addresses: Addresses, mask: int, shift: int) -> int:
    """Returns the most lanes of `mask` on one stretch of 2^shift bytes; 0 where they do not lie in
    the same 2^32 stretches."""
    touched = segments_of(addresses, mask, shift)
    if len({segment >> FURTHEST_BITS for segment in touched}) > 1:
        return 0
    return max(Counter(touched).values())
