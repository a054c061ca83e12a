"""Counts the steps and bank conflicts of an access to shared memory on compute capability 1.x.

16 banks of 4 bytes serve a half-warp step by step. A step of a load broadcasts one word to all
lanes that load it, and serves one lane of every other bank. The broadcast word is unspecified; here
it is that of the lowest remaining lane, and each bank serves its lowest lane, too. Wider accesses
are split into words. Of several lanes that store to one word at once, one writes (CUDA C
Programming Guide 4.2, F.3.3).

    half-warp, lanes in pairs on words 0, 16, 32, ... (all in bank 0)   ->   8 steps
"""

from __future__ import annotations

import numpy as np

from warploom.cost.banks import WORD_BITS, add_request, count_ways
from warploom.simt.lane_counts import Addresses, Ints, first_lane, jitable

BANKS = 16


@jitable
def shared_16_banks_read(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of a load from shared memory on compute capability 1.x to `record`: one
    request with its sectors, lines and bytes (`add_request`). Its wavefronts are the steps
    (`count_steps`) of each half-warp for each 4-byte word of a lane (at least one); its bank
    conflicts are the wavefronts beyond one per active half-warp and word."""
    words = max(1, size // 4)
    wavefronts = 0
    groups = 0
    for half_start in range(0, 32, BANKS):
        half = mask & (((1 << BANKS) - 1) << half_start)
        if half != 0:
            groups += words
            wavefronts += words * count_steps(addresses, half)
    add_request(addresses, mask, size, wavefronts, groups, record)


@jitable
def shared_16_banks_write(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of a store to, or an atomic on, shared memory on compute capability 1.x to
    `record`: one request with its sectors, lines and bytes (`add_request`). Each half-warp needs,
    for each 4-byte word of a lane (at least one), as many steps (wavefronts) as the most distinct
    words in one of 16 banks; the steps beyond one are bank conflicts."""
    words = max(1, size // 4)
    wavefronts = 0
    groups = 0
    for half_start in range(0, 32, BANKS):
        half = mask & (((1 << BANKS) - 1) << half_start)
        if half != 0:
            groups += words
            wavefronts += words * count_ways(addresses, half, WORD_BITS, BANKS)
    add_request(addresses, mask, size, wavefronts, groups, record)


@jitable
def count_steps(addresses: Addresses, remaining: int) -> int:
    """Returns the number of steps until a load has served the lanes `remaining` of a half-warp.
    Each serves all lanes that load the word of the lowest remaining one (the broadcast), and the
    lowest remaining lane of every other bank.

    Of wide accesses the first words are enough: the further ones have the same distances, so they
    conflict alike."""
    bits = np.uint64(WORD_BITS)
    bank_mask = np.uint64(BANKS - 1)
    steps = 0
    while remaining != 0:
        steps += 1
        shared_word = addresses[first_lane(remaining)] >> bits
        served_banks = 1 << int(np.int64(shared_word & bank_mask))
        for lane in range(32):
            if (remaining >> lane) & 1:
                word = addresses[lane] >> bits
                bank = 1 << int(np.int64(word & bank_mask))
                # The broadcast serves any number of lanes, a bank one lane per step.
                # `remaining` shrinks while the loop runs, but only by lanes that it has passed.
                if word == shared_word:
                    remaining ^= 1 << lane
                elif served_banks & bank == 0:
                    served_banks |= bank
                    remaining ^= 1 << lane
    return steps
