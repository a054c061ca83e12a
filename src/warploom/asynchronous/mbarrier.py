"""Reads and updates the 64-bit word of an mbarrier (PTX's asynchronous barrier in shared memory),
when asynchronous copies and commits complete: pure functions of the word, for both machines.

The word holds, from bit 0: pending arrivals, expected arrivals (of each phase), tx-count, valid
bit, phase modulo 4. The phase completes when pending arrivals and tx-count are both 0.
`isa.ops.mbarrier` defines the PTX instructions on the word as terms; this module is for copies and
commits that complete asynchronously.

    pending 1, tx-count 128:   complete_tx(128), then arrive   ->   next phase, pending = expected
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable

COUNT_BITS = 20
"""The bits of an arrival count (PTX ISA, "Contents of the mbarrier object")."""

TX_BITS = 21
EXPECTED_AT, TX_AT = COUNT_BITS, 2 * COUNT_BITS

VALID_AT = 61
"""The bit that is set in an initialized mbarrier."""

PHASE_AT = VALID_AT + 1


@jitable
def is_valid(word: int) -> bool:
    """Returns whether a word is an initialized mbarrier; words may be signed or unsigned."""
    return (word >> VALID_AT) & 1 == 1


@jitable
def phase(word: int) -> int:
    """Returns the current, incomplete phase of an mbarrier, modulo 4: bits 62 and 63 of its
    word."""
    return (word >> PHASE_AT) & 3


@jitable
def is_complete(word: int, wanted: int, by_parity: int) -> bool:
    """Returns whether a wait on an mbarrier with this word ends, as the phase that it waits for is
    no longer the current one. `wanted` is the parity (0 or 1) of that phase if `by_parity`, else
    the token of an arrival in it: the mbarrier's word at that time."""
    if by_parity:
        return (word >> PHASE_AT) & 1 != wanted & 1
    return phase(word) != phase(wanted)


@jitable
def advance_if_complete(word: int) -> int:
    """Returns the word with the next phase begun (pending arrivals are the expected ones again) if
    pending arrivals and tx-count are both 0, else `word` itself."""
    counts = (1 << COUNT_BITS) - 1
    if word & counts or (word >> TX_AT) & ((1 << TX_BITS) - 1):
        return word
    following = (phase(word) + 1) & 3
    # Words are signed: the highest bit of the phase is the sign bit.
    following -= (following & 2) << 1
    expected = (word >> EXPECTED_AT) & counts
    return (word & ((1 << PHASE_AT) - 1)) | expected | (following << PHASE_AT)


@jitable
def complete_tx(word: int, amount: int) -> int:
    """Returns the word after `amount` bytes were transferred (`mbarrier.complete_tx`): the tx-count
    is less by that, modulo 2^21, and the next phase begins if nothing is pending then."""
    field = (1 << TX_BITS) - 1
    left = ((word >> TX_AT) - amount) & field
    return advance_if_complete((word & ~(field << TX_AT)) | (left << TX_AT))


@jitable
def arrive(word: int) -> int:
    """Returns the word after one arrival, with the next phase begun if nothing is pending then;
    unchanged if no arrival is pending."""
    # The pending arrivals are the lowest bits of the word.
    return advance_if_complete(word - 1) if word & ((1 << COUNT_BITS) - 1) else word
