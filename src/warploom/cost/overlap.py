"""Counts the distinct memory segments that the lanes of an access touch, for lanes in any order,
and how many lanes touch the same segment.

These are the definitions in Python, by sets. Compiled code compares all pairs of lanes with vector
instructions instead (`helpers.overlap`), in 32-bit arithmetic; so the functions here fail, too, for
lanes that are too distant.
"""

from __future__ import annotations

from collections import Counter

from warploom.simt.lane_counts import Addresses, segments_of

FURTHEST_BITS = 32
"""Lanes can be compared if their segment indices agree above this many bits."""


def count_segments(addresses: Addresses, mask: int, shift: int) -> tuple[int, int]:
    """Returns the numbers of distinct segments of 2^shift bytes, and of distinct aligned groups of
    4 segments, that the active lanes touch: sectors and lines for `shift` 5. (0, 0) if the segments
    are not in one aligned window of 2^FURTHEST_BITS segments."""
    touched = set(segments_of(addresses, mask, shift))
    if len({segment >> FURTHEST_BITS for segment in touched}) > 1:
        return 0, 0
    return len(touched), len({segment // 4 for segment in touched})


def count_in_columns(
    addresses: Addresses, mask: int, shift: int, columns: int
) -> tuple[int, int, int, int]:
    """Returns the numbers of distinct segments, and of aligned groups of 8 and of 32 segments, that
    the active lanes touch, and the most segments in one column (index modulo `columns`, a power of
    2 up to 32). For 4-byte words: words, sectors, lines, and wavefronts over `columns` banks. Four
    zeros if the segments are not in one aligned window of 2^FURTHEST_BITS segments."""
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
    """Returns the largest number of active lanes in one segment of 2^shift bytes; 0 if their
    segments are not in one aligned window of 2^FURTHEST_BITS segments, whose numbers fit the vector
    version's 32-bit keys."""
    touched = segments_of(addresses, mask, shift)
    if len({segment >> FURTHEST_BITS for segment in touched}) > 1:
        return 0
    return max(Counter(touched).values())
