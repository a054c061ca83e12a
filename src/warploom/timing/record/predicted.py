"""Adds predicted blocks to the record of a launch if the record has fewer than the device can hold
at a time.

The log of a launch has a limited size, so a record may have only its first blocks. A replay of
fewer blocks than the device has resident at a time would show a device that is never full. So the
missing blocks follow the paths of the recorded ones, in turn. Their base addresses are extrapolated
linearly from the index of the block where those of the recorded blocks are linear in it; else they
are those of the block whose path is taken.

    recorded x[blockIdx.x * 256 + threadIdx.x]:  blocks 0, 1, 2 begin at 0, 1024, 2048
    predicted                                    block 3 begins at 3072

The patterns of a path's accesses depend on where in a line they begin. Along x these offsets repeat
after `alignment_period` blocks: after 64 if the threads of a block access the two bytes after those
of the block before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from warploom.timing.record.record import Record
from warploom.timing.records import TimedWarp

Words = npt.NDArray[np.int64]


def with_predicted_blocks(record: Record, blocks: int) -> Record:
    """Returns the record with predicted blocks after its own, so that it has `blocks`; the record
    itself if it has as many or more, if it has none, or if any warp polls memory. A predicted warp
    has the stream of a recorded one (`_source_blocks`) and base addresses of its own
    (`_predicted_addresses`)."""
    recorded = record.blocks
    if not 0 < recorded < blocks or record.poll_counts.any():
        return record
    sources = _source_blocks(record, blocks)
    per_block = record.launch.warps_per_block
    warps = record.warps.reshape(recorded, per_block, -1)
    predicted = warps[sources]
    predicted[recorded:, :, 1:] = _predicted_addresses(record, sources)[recorded:]
    return replace(
        record,
        blocks=blocks,
        predicted=record.predicted + blocks - recorded,
        warps=predicted.reshape(blocks * per_block, -1),
        poll_counts=np.tile(record.poll_counts, -(-blocks // recorded))[: blocks * per_block],
    )


def alignment_period(record: Record) -> int:
    """Returns after how many blocks along x all accesses begin at the same bytes of a unit
    (`patterns.unit`) again, as far as their addresses are linear in the block's index along x. It
    is 1 if fewer than two blocks of a row are recorded, or no address is linear, and at most the
    blocks of a row of the grid."""
    x = record.launch.grid[0]
    if min(record.blocks, x) < 2:
        return 1
    first = _addresses(record)[:x]
    distance = first[1] - first[0]
    follows_index = (first == first[0] + np.arange(len(first))[:, None, None] * distance).all(
        axis=0
    )
    unit = record.patterns.unit
    # A distance d repeats modulo the unit after unit / gcd(d, unit) blocks; the longest counts.
    return min(x, int((unit // np.gcd(distance[follows_index] % unit, unit)).max(initial=1)))


def _source_blocks(record: Record, blocks: int) -> Words:
    """Returns, for each of `blocks` blocks, the recorded block whose path it follows. A recorded
    block follows its own. If whole rows of the grid are recorded, any other follows one of the same
    column, rows in turn. Else it follows block `column % n`: n is the number of recorded blocks,
    rounded down to a multiple of `alignment_period` if there are more than that, so that accesses
    begin at the same bytes of their lines."""
    recorded, x = record.blocks, record.launch.grid[0]
    row, column = np.divmod(np.arange(recorded, blocks), x)
    if recorded >= x:
        sources = row % (recorded // x) * x + column
    else:
        period = alignment_period(record)
        sources = column % (recorded - recorded % period if recorded > period else recorded)
    return np.concatenate([np.arange(recorded), sources])


def _addresses(record: Record) -> Words:
    """Returns the addresses of the first accesses of the recorded blocks at each site
    (instruction), shape (blocks, warps of a block, sites); base addresses if the record has no
    offsets."""
    base_addresses = record.warps[:, TimedWarp.bases :]
    addresses = base_addresses if record.offsets is None else base_addresses + record.offsets
    return addresses.reshape(record.blocks, record.launch.warps_per_block, -1)


def _predicted_addresses(record: Record, sources: Words) -> Words:
    """Returns the base addresses of all `len(sources)` blocks, shape (blocks, warps of a block,
    sites). For each warp and site they are linear in the block's indices along x, y and z, by the
    first two blocks along each axis (constant along one with a single recorded block). Where that
    does not agree with all recorded blocks, they are those of the block's source."""
    addresses = _addresses(record)
    x, y, _ = record.launch.grid
    number = np.arange(len(sources))
    index = np.stack([number % x, number // x % y, number // (x * y)])
    extrapolated = np.broadcast_to(addresses[0], (len(sources), *addresses.shape[1:])).copy()
    for coordinate, stride in zip(index, (1, x, x * y), strict=True):
        if stride < len(addresses):
            extrapolated += coordinate[:, None, None] * (addresses[stride] - addresses[0])
    follows_index = (extrapolated[: len(addresses)] == addresses).all(axis=0)
    base_addresses = record.warps[:, TimedWarp.bases :].reshape(addresses.shape)
    # Base addresses are multiples of the unit.
    return np.where(
        follows_index, extrapolated - extrapolated % record.patterns.unit, base_addresses[sources]
    )
