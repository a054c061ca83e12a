"""Blocks beyond those of a record, predicted from it.

A log holds so many accesses. Where it held less than what the device has resident at a time, a
replay of it alone would be one of a device that is never full. So the blocks that are missing go
the ways of the recorded ones, in turn. The places that they reach are those that follow from their
index, where the recorded ones do; else those of the block whose way they go.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from warploom.timing.records import Record

Words = npt.NDArray[np.int64]


def filled(record: Record, blocks: int) -> Record:
    """Return the record with blocks predicted behind its own, so that it has `blocks`; the same
    record where it has as many, where it has none, or where warps wait in memory for each other."""
    own = record.blocks
    if not 0 < own < blocks or record.asked.any():
        return record
    source = np.arange(blocks) % own
    per_block = record.launch.warps_per_block
    warps = record.warps.reshape(own, per_block, -1)
    found = warps[source]
    found[own:, :, 1:] = _places(record, warps[:, :, 1:], source)[own:]
    return replace(
        record,
        blocks=blocks,
        predicted=record.predicted + blocks - own,
        warps=found.reshape(blocks * per_block, -1),
        asked=np.tile(record.asked, -(-blocks // own))[: blocks * per_block],
    )


def _places(record: Record, places: Words, source: Words) -> Words:
    """Return the places of all blocks, shape (blocks, warps of a block, sites); `places` has those
    of the recorded ones."""
    x, y, _ = record.launch.grid
    number = np.arange(len(source))
    index = np.stack([number % x, number // x % y, number // (x * y)])
    line = np.broadcast_to(places[0], (len(source), *places.shape[1:])).copy()
    for along, step in zip(index, (1, x, x * y), strict=True):
        if step < len(places):
            line += along[:, None, None] * (places[step] - places[0])
    fits = (line[: len(places)] == places).all(axis=0)
    return np.where(fits, line, places[source])
