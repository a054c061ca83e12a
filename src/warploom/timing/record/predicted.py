"""Blocks beyond those of a record, predicted from it.

A log holds so many accesses. Where it held less than what the device has resident at a time, a
replay of it alone would be one of a device that is never full. So the blocks that are missing go
the ways of the recorded ones, in turn. The places that they reach are those that follow from their
index, where the recorded ones do; else those of the block whose way they go.

A way has patterns of accesses, which depend on where in a line an access begins. Along x the same
ones come again after `repetition` blocks: after 64, where the threads of a block reach the two
bytes behind those of the block before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from warploom.timing.record.records import Record

Words = npt.NDArray[np.int64]


def filled(record: Record, blocks: int) -> Record:
    """Return the record with blocks predicted behind its own, so that it has `blocks`; the same
    record where it has as many, where it has none, or where warps wait in memory for each other."""
    own = record.blocks
    if not 0 < own < blocks or record.asked.any():
        return record
    source = _sources(record, blocks)
    per_block = record.launch.warps_per_block
    warps = record.warps.reshape(own, per_block, -1)
    found = warps[source]
    found[own:, :, 1:] = _places(record, source)[own:]
    return replace(
        record,
        blocks=blocks,
        predicted=record.predicted + blocks - own,
        warps=found.reshape(blocks * per_block, -1),
        asked=np.tile(record.asked, -(-blocks // own))[: blocks * per_block],
    )


def repetition(record: Record) -> int:
    """Return after how many blocks along x accesses begin at the same bytes of their lines again,
    as far as their places follow from the index of a block; at most the blocks of a row."""
    x = record.launch.grid[0]
    if min(record.blocks, x) < 2:
        return 1
    first = _addresses(record)[:x]
    step = first[1] - first[0]
    fits = (first == first[0] + np.arange(len(first))[:, None, None] * step).all(axis=0)
    unit = record.patterns.unit
    return min(x, int((unit // np.gcd(step[fits] % unit, unit)).max(initial=1)))


def _sources(record: Record, blocks: int) -> Words:
    """Return the recorded block whose way each block goes: its own, else one of the same column
    where whole rows are recorded, else one whose accesses begin at the same bytes of their lines,
    if there is one."""
    own, x = record.blocks, record.launch.grid[0]
    row, column = np.divmod(np.arange(own, blocks), x)
    if own >= x:
        others = row % (own // x) * x + column
    else:
        again = repetition(record)
        others = column % (own - own % again if own > again else own)
    return np.concatenate([np.arange(own), others])


def _addresses(record: Record) -> Words:
    """Return the bytes at which the first accesses of the recorded blocks begin, shape (blocks,
    warps of a block, sites)."""
    places = record.warps[:, 1:]
    found = places if record.offsets is None else places + record.offsets
    return found.reshape(record.blocks, record.launch.warps_per_block, -1)


def _places(record: Record, source: Words) -> Words:
    """Return the places of all blocks, shape (blocks, warps of a block, sites)."""
    addresses = _addresses(record)
    x, y, _ = record.launch.grid
    number = np.arange(len(source))
    index = np.stack([number % x, number // x % y, number // (x * y)])
    line = np.broadcast_to(addresses[0], (len(source), *addresses.shape[1:])).copy()
    for along, step in zip(index, (1, x, x * y), strict=True):
        if step < len(addresses):
            line += along[:, None, None] * (addresses[step] - addresses[0])
    fits = (line[: len(addresses)] == addresses).all(axis=0)
    places = record.warps[:, 1:].reshape(addresses.shape)
    return np.where(fits, line - line % record.patterns.unit, places[source])
