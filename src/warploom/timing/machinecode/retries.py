"""Repeats, in a record of machine code, the loops that retry an atomic until it succeeds
(`machinecode.retries`), which a walk through the machine code passes once.

A warp has an iteration for each lane at an address. Warps of a block that access one address
succeed one after the other, in the order of their numbers, so that the last of 8 has 8 iterations
for each lane. An H100 executes 4.0 and 4.4 on average (threadfence and stddev of HeCBench), where
the mean of 1 to 8 is 4.5: warps do not all begin at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from warploom.timing.machinecode.tokens import Words
from warploom.timing.record.record import Record
from warploom.timing.records import StreamEntry, TimedAccess, TimedPattern, TimedWarp, WarpStream

Flags = npt.NDArray[np.bool_]

SAMPLED_BLOCKS = 16
"""The blocks whose addresses show which warps of a block access the same ones."""

SAMPLED_SWAPS = 256
"""The first swaps of each warp in these blocks, whose addresses are compared."""

MOST_ENTRIES = 1 << 22
"""The most entries of a record with all iterations; above it they are left out."""

SWAP_WAVEFRONTS = 2
"""The wavefronts of an ATOMS.CAST: 1.94 and 1.98 for each iteration in the same programs
(`l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom`)."""


def with_retries(
    record: Record, positions: Words, blocks: Words, swaps: Flags
) -> tuple[Record, Words]:
    """Returns a record of machine code, and the positions of its entries in the PTX path, with all
    iterations of the retry loops `blocks`. `swaps`: by instruction of the listing, whether it
    compares and swaps. A record that would have more than MOST_ENTRIES is returned as it is."""
    loops = _Loops.of(record, blocks, swaps)
    if not loops.lanes.any():
        return record, positions
    ranks = _ranks(record, loops)
    for of_warps in (ranks, np.full_like(ranks, round(float(ranks.mean())))):
        warps = record.warps.copy()
        choices = np.stack([warps[:, TimedWarp.stream], np.resize(of_warps, len(warps))], axis=1)
        chosen, number = np.unique(choices, axis=0, return_inverse=True)
        warps[:, TimedWarp.stream] = number.reshape(-1)
        streams = _Streams.of(record, loops, chosen)
        if int(streams.iterations.sum()) <= MOST_ENTRIES:
            changed = _repeated(replace(record, warps=warps), loops, streams)
            return changed, positions[np.repeat(streams.entries, streams.iterations)]
    return record, positions


@dataclass(frozen=True)
class _Loops:
    """The accesses of a record in retry loops. By access: its `entry`, its pattern (`patterns`; of
    a load or a store), how often an iteration executes it (`times`), and whether it swaps
    (`swaps`). By entry: how many accesses it has (`accesses`), and the most lanes with one address
    (`lanes`), 0 for entries that are no such loops."""

    entry: Words
    patterns: Words
    times: Words
    swaps: Flags
    accesses: Words
    lanes: Words

    @classmethod
    def of(cls, record: Record, blocks: Words, swaps: Flags) -> _Loops:
        """Finds the retry loops of a record."""
        rows, entries = record.accesses, record.entries
        accesses = np.diff(entries[:, StreamEntry.access], append=len(rows))
        entry = np.repeat(np.arange(len(entries)), accesses)
        is_loop = np.isin(entries[:, StreamEntry.block], blocks)[entry]
        is_swap = is_loop & swaps[rows[:, TimedAccess.instruction]]
        patterns, lanes = rows[:, TimedAccess.pattern].copy(), np.zeros(len(entries), np.int64)
        passes = record.patterns.rows[:, TimedPattern.passes]
        np.maximum.at(lanes, entry[is_swap], passes[patterns[is_swap]])
        for flags, operation in ((is_swap, "store"), (is_loop & ~is_swap, "load")):
            patterns[flags] = record.patterns.with_operation(patterns[flags], operation)
        times = np.where(is_swap, SWAP_WAVEFRONTS, 1)
        return cls(entry, patterns, times, is_swap, accesses, lanes)


@dataclass(frozen=True)
class _Streams:
    """New streams, of which each has `sizes` entries, the last of which ends it: the `entries` of
    the record that they consist of, and how often each is repeated (`iterations`)."""

    sizes: Words
    entries: Words
    iterations: Words

    @classmethod
    def of(cls, record: Record, loops: _Loops, chosen: Words) -> _Streams:
        """Makes a stream for each row of `chosen`: the number of a stream of the record, and how
        many warps succeed before."""
        spans = record.streams[chosen[:, 0]]
        sizes = spans[:, WarpStream.stop] + 1 - spans[:, WarpStream.entries]
        entries = _ranges(spans[:, WarpStream.entries], sizes)
        warps = np.repeat(1 + chosen[:, 1], sizes)
        return cls(sizes, entries, np.maximum(1, loops.lanes[entries] * warps))


def _repeated(record: Record, loops: _Loops, streams: _Streams) -> Record:
    """Returns a record with new streams."""
    of_entries = np.repeat(streams.entries, streams.iterations)
    # The accesses of each entry, some more than once.
    expanded = np.repeat(np.arange(len(loops.entry)), loops.times)
    counts = np.bincount(loops.entry[expanded], minlength=len(loops.accesses))
    firsts = np.cumsum(counts) - counts
    accesses = record.accesses.copy()
    accesses[:, TimedAccess.pattern] = loops.patterns
    repeated = accesses[expanded[_ranges(firsts[of_entries], counts[of_entries])]]
    entries = record.entries[of_entries]
    entries[:, StreamEntry.access] = np.cumsum(counts[of_entries]) - counts[of_entries]
    stops = np.cumsum(streams.iterations)[np.cumsum(streams.sizes) - 1]
    starts = np.concatenate([[0], stops[:-1]])
    rows = [
        WarpStream.pack(entries=start, stop=stop - 1)
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
    ]
    packed = np.array(rows, np.int64).reshape(-1, WarpStream.WORDS)
    return replace(record, streams=packed, entries=entries, accesses=repeated)


def _ranks(record: Record, loops: _Loops) -> Words:
    """Returns, by warp of a block, how many warps of the block with lower numbers swap at the same
    addresses, on average over its swaps in SAMPLED_BLOCKS blocks."""
    size = record.launch.warps_per_block
    rows: list[Words] = []
    for warp, row in enumerate(record.warps[: SAMPLED_BLOCKS * size]):
        first, stop = record.streams[row[TimedWarp.stream], [WarpStream.entries, WarpStream.stop]]
        span = slice(*record.entries[[first, stop], StreamEntry.access])
        swaps = record.accesses[span][loops.swaps[span]][:SAMPLED_SWAPS]
        address = row[TimedWarp.bases + swaps[:, TimedAccess.site]] + swaps[:, TimedAccess.delta]
        key = [np.arange(len(swaps)), swaps[:, TimedAccess.pattern], address]
        block, number = (np.full(len(swaps), value) for value in divmod(warp, size))
        rows.append(np.stack([block, *key, number], axis=1))
    swaps = np.concatenate(rows)
    swaps = swaps[np.lexsort(swaps.T[::-1])]
    is_first = np.ones(len(swaps), bool)
    is_first[1:] = (swaps[1:, :-1] != swaps[:-1, :-1]).any(axis=1)
    begins = np.flatnonzero(is_first)
    rank = np.arange(len(swaps)) - begins[np.cumsum(is_first) - 1]
    total = np.bincount(swaps[:, -1], rank, minlength=size)
    count = np.bincount(swaps[:, -1], minlength=size)
    return np.rint(total / np.maximum(1, count)).astype(np.int64)


def _ranges(starts: Words, counts: Words) -> Words:
    """Returns the numbers of ranges, one after the other, that have `counts` numbers each."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
