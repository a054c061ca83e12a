"""Counts the wavefronts of a load from shared memory from compute capability 5.0 on, which are
fewer if pairs of lanes load from the same address.

Data returns at 128 bytes per cycle: one register of all lanes. If lanes n and n ^ 1, or lanes n and
n ^ 2, load from the same address for all n, two registers return per cycle, so that twice as many
lanes are served together: half-warps instead of quarter-warps for 16 bytes. (Sources: NVIDIA on 7.0
and 7.5, https://forums.developer.nvidia.com/t/unexpected-shared-memory-bank-conflict/77228/2;
measured on an A10 and an H100 by a reader of https://forums.developer.nvidia.com/t/373160: 2
wavefronts if each half-warp loads one 16 bytes, 8 if lanes n and n + 16 load at 32 n.) Maxwell,
too, needs at least two for 16 bytes (https://github.com/NervanaSystems/maxas/issues/8). Loads that
hit L1, which is one memory with shared memory from 7.0 on, return the same way.

    ld.shared.v4.f32 at 16 * lane          4 wavefronts, one for each quarter-warp
    ld.shared.v4.f32 at 16 * (lane / 2)    lanes n and n ^ 1 agree: 2, one for each half-warp

Inactive lanes do not count. So `ldmatrix` costs what `cost.banks` counts unless its rows are equal
in pairs: the cost is unknown then.
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
from warploom.simt.lane_counts import Addresses, Ints, jitable


@jitable
def shared_32_banks_read(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of a load from shared memory from compute capability 5.0 on to `record`. They
    are those of `shared_32_banks` for up to 4 bytes per lane, or if registers return one per cycle
    (`count_return_cycles`). If pairs of lanes load from one address, so that two registers return
    per cycle, they are those of `add_packed`, with fewer wavefronts."""
    if size <= 4 or count_return_cycles(addresses, mask, size) == size >> WORD_BITS:
        shared_32_banks(addresses, mask, size, record)
    else:
        add_packed(addresses, mask, size, record)


@jitable
def count_return_cycles(addresses: Addresses, mask: int, size: int) -> int:
    """Returns the cycles in which the registers of a load of `size` bytes per lane return. It is
    one cycle for each register of 4 bytes (1 for smaller sizes); half as many if all active lanes n
    and n ^ 1, or all n and n ^ 2, load from the same address."""
    if size <= 4:
        return 1
    # One register cannot return faster; two of them can share a cycle.
    if lanes_agree(addresses, mask, 1) or lanes_agree(addresses, mask, 2):
        return size >> WORD_BITS + 1
    return size >> WORD_BITS


@jitable
def lanes_agree(addresses: Addresses, mask: int, distance: int) -> bool:
    """Returns whether lanes n and n ^ `distance` have the same address, for all n where both are
    active."""
    # Differences of inactive lanes are multiplied by 0: no branches, so LLVM vectorizes the loop.
    differ = np.uint64(0)
    for lane in range(32):
        both = mask >> lane & mask >> (lane ^ distance) & 1
        differ |= (addresses[lane] ^ addresses[lane ^ distance]) * np.uint64(both)
    return bool(differ == np.uint64(0))


@jitable
def add_packed(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds to `record` the costs of a load from shared memory of 8 bytes or more in which pairs of
    lanes load from one address, so that its registers return two per cycle (`count_return_cycles`,
    which the caller tests). It is one request with its sectors, lines and bytes (`add_request`).
    Wavefronts and bank conflicts are counted in groups of twice as many lanes as otherwise: 32 for
    8 bytes, 16 for 16."""
    shift = WORD_BITS
    while (1 << shift) < size:
        shift += 1
    banks = BANKS >> (shift - WORD_BITS)
    wavefronts, groups = count_in_groups(addresses, mask, shift, banks, 2 * banks)
    add_request(addresses, mask, size, wavefronts, groups, record)
