"""The word of an mbarrier, and what bytes that have come do to it.

`isa.ops.mbarrier` states every operation on the word as terms; copies that complete behind the back
of a warp use `complete_tx`, which is its `mbarrier.complete_tx`.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable

COUNT_BITS = 20
"""The width of an mbarrier's counts (PTX ISA, "Contents of the mbarrier object")."""

TX_BITS = 21
EXPECTED_AT, TX_AT = COUNT_BITS, 2 * COUNT_BITS

VALID_AT = 61
"""The bit that is set in the word of an initialised mbarrier."""

PHASE_AT = VALID_AT + 1


@jitable
def is_valid(word: int) -> bool:
    """Returns whether a word is an initialised mbarrier; it may be signed, as all words here."""
    return (word >> VALID_AT) & 1 == 1


@jitable
def phase(word: int) -> int:
    """Returns the phase of an mbarrier, which counts modulo 4."""
    return (word >> PHASE_AT) & 3


@jitable
def is_complete(word: int, wanted: int, by_parity: int) -> bool:
    """Returns whether a wait with that parity, or that token, ends."""
    if by_parity:
        return (word >> PHASE_AT) & 1 != wanted & 1
    return phase(word) != phase(wanted)


@jitable
def advance_if_complete(word: int) -> int:
    """Returns the word with the next phase begun, where nothing is pending any more."""
    counts = (1 << COUNT_BITS) - 1
    if word & counts or (word >> TX_AT) & ((1 << TX_BITS) - 1):
        return word
    following = (phase(word) + 1) & 3
    # The highest bit is the sign of a word.
    following -= (following & 2) << 1
    expected = (word >> EXPECTED_AT) & counts
    return (word & ((1 << PHASE_AT) - 1)) | expected | (following << PHASE_AT)


@jitable
def complete_tx(word: int, amount: int) -> int:
    """Returns the word when so many bytes have come."""
    field = (1 << TX_BITS) - 1
    left = ((word >> TX_AT) - amount) & field
    return advance_if_complete((word & ~(field << TX_AT)) | (left << TX_AT))


@jitable
def arrive(word: int) -> int:
    """Returns the word when one more has arrived; as it is where no arrival is pending."""
    return advance_if_complete(word - 1) if word & ((1 << COUNT_BITS) - 1) else word
