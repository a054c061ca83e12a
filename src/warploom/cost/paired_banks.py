"""Counts what a load from shared memory costs from compute capability 5.0 on, where lanes in pairs
may want the same.

Data comes back by 128 bytes a cycle: one register of all lanes. Where lanes n and n ^ 1, or lanes n
and n ^ 2, want the same address for all n, two registers come back at once, so that twice as many
lanes go together: half-warps of 16 bytes in place of quarter-warps (NVIDIA on 7.0 and 7.5,
https://forums.developer.nvidia.com/t/unexpected-shared-memory-bank-conflict/77228/2; counted on an
A10 and an H100 by a reader of https://forums.developer.nvidia.com/t/373160: 2 wavefronts where each
half-warp wants one 16 bytes, 8 where lanes n and n + 16 want 32 n). Maxwell takes at least two for
16 bytes, too (https://github.com/NervanaSystems/maxas/issues/8). Loads that hit L1, which is one
with shared memory from 7.0 on, come back the same way.

Lanes that are off differ from none. So `ldmatrix` costs as before unless its rows are the same in
pairs: what it costs then is not known.
"""

from __future__ import annotations

import numpy as np

from warploom.cost.banks import (
    BANKS,
    WORD_BITS,
    add_request,
    count_in_groups,
    shared_32_banks,
)
from warploom.simt.lane_counts import Addresses, Row, jitable


@jitable
def shared_32_banks_read(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Adds a load from shared memory from compute capability 5.0 on: as `shared_32_banks` where
    registers come back one by one."""
    if size <= 4 or count_return_cycles(addresses, mask, size) == size >> WORD_BITS:
        shared_32_banks(addresses, mask, size, row)
    else:
        add_packed(addresses, mask, size, row)


@jitable
def count_return_cycles(addresses: Addresses, mask: int, size: int) -> int:
    """Returns in how many turns the registers of a load of `size` bytes a lane come back."""
    if size <= 4:
        return 1
    if lanes_agree(addresses, mask, 1) or lanes_agree(addresses, mask, 2):
        return size >> WORD_BITS + 1
    return size >> WORD_BITS


@jitable
def lanes_agree(addresses: Addresses, mask: int, distance: int) -> bool:
    """Returns whether lanes n and n ^ `distance` want the same address, for all n where both are
    on."""
    differ = np.uint64(0)
    for lane in range(32):
        both = mask >> lane & mask >> (lane ^ distance) & 1
        differ |= (addresses[lane] ^ addresses[lane ^ distance]) * np.uint64(both)
    return bool(differ == np.uint64(0))


@jitable
def add_packed(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Adds a load of 8 bytes and more whose registers come back two at once."""
    shift = WORD_BITS
    while (1 << shift) < size:
        shift += 1
    banks = BANKS >> (shift - WORD_BITS)
    wavefronts, groups = count_in_groups(addresses, mask, shift, banks, 2 * banks)
    add_request(addresses, mask, size, wavefronts, groups, row)
