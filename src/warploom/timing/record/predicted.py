"""Blocks beyond those of a record, predicted from it.

A log holds so many accesses. Where it held less than what the device has resident at a time, a
replay of it alone would be one of a device that is never full. So the blocks that are missing go
the ways of the recorded ones, in turn. The places that they reach are those that follow from their
index, where the recorded ones do; else those of the block whose way they go.

A way has patterns of accesses, which depend on where in a line an access begins. Along x the same
ones come again after `alignment_period` blocks: after 64, where the threads of a block reach the two
bytes behind those of the block before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from warploom.timing.record.records import Record

Words = npt.NDArray[np.int64]


def with_predicted_blocks(record: Record, blocks: int) -> Record:
    """Return the record with blocks predicted behind its own, so that it has `blocks`; the same
    record where it has as many, where it has none, or where warps wait in memory for each other."""
    recorded = record.blocks
    if not 0 < recorded < blocks or record.poll_counts.any():
        return record
    sources = _source_blocks(record, blocks)
    per_block = record.launch.warps_per_block
    warps = record.warps.reshape(recorded, per_block, -1)
    predicted = warps[sources]
    predicted[recorded:, :, 1:] = _predicted_places(record, sources)[recorded:]
    return replace(
        record,
        blocks=blocks,
        predicted=record.predicted + blocks - recorded,
        warps=predicted.reshape(blocks * per_block, -1),
        poll_counts=np.tile(record.poll_counts, -(-blocks // recorded))[: blocks * per_block],
    )


def alignment_period(record: Record) -> int:
    """Return after how many blocks along x accesses begin at the same bytes of their lines again,
    as far as their places follow from the index of a block; at most the blocks of a row."""
    x = record.launch.grid[0]
    if min(record.blocks, x) < 2:
        return 1
    first = _addresses(record)[:x]
    distance = first[1] - first[0]
    follows_index = (first == first[0] + np.arange(len(first))[:, None, None] * distance).all(
        axis=0
    )
    unit = record.patterns.unit
    return min(x, int((unit // np.gcd(distance[follows_index] % unit, unit)).max(initial=1)))


def _source_blocks(record: Record, blocks: int) -> Words:
    """Return the recorded block whose way each block goes: its own, else one of the same column
    where whole rows are recorded, else one whose accesses begin at the same bytes of their lines,
    if there is one."""
    recorded, x = record.blocks, record.launch.grid[0]
    row, column = np.divmod(np.arange(recorded, blocks), x)
    if recorded >= x:
        sources = row % (recorded // x) * x + column
    else:
        period = alignment_period(record)
        sources = column % (recorded - recorded % period if recorded > period else recorded)
    return np.concatenate([np.arange(recorded), sources])


def _addresses(record: Record) -> Words:
    """Return the bytes at which the first accesses of the recorded blocks begin, shape (blocks,
    warps of a block, sites)."""
    places = record.warps[:, 1:]
    found = places if record.offsets is None else places + record.offsets
    return found.reshape(record.blocks, record.launch.warps_per_block, -1)


def _predicted_places(record: Record, sources: Words) -> Words:
    """Return the places of all blocks, shape (blocks, warps of a block, sites)."""
    addresses = _addresses(record)
    x, y, _ = record.launch.grid
    number = np.arange(len(sources))
    index = np.stack([number % x, number // x % y, number // (x * y)])
    extrapolated = np.broadcast_to(addresses[0], (len(sources), *addresses.shape[1:])).copy()
    for coordinate, stride in zip(index, (1, x, x * y), strict=True):
        if stride < len(addresses):
            extrapolated += coordinate[:, None, None] * (addresses[stride] - addresses[0])
    follows_index = (extrapolated[: len(addresses)] == addresses).all(axis=0)
    places = record.warps[:, 1:].reshape(addresses.shape)
    return np.where(
        follows_index, extrapolated - extrapolated % record.patterns.unit, places[sources]
    )
