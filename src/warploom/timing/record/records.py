"""Builds the record of a launch (`timing.record.record`) from the compiled engine's log."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warploom.abi.access_kinds import operation_number, space_number
from warploom.abi.log import LEFT_OUT, LOST, OPS, SPACES, LogAccess, LogEntry
from warploom.core.lazy import cached_property
from warploom.core.unique_rows import hash_rows, unique_rows
from warploom.isa.instruction import Space
from warploom.isa.spec import Unit
from warploom.machine.caches import LINE_BYTES, LOCAL_BASE, local_lines
from warploom.machine.compiled.logs import Log
from warploom.machine.launch import Launch, shared_stride
from warploom.program.program import Program
from warploom.simt.warp_table import NONE
from warploom.timing.record.mbarriers import owners_of, phases_of, waits_for_phases
from warploom.timing.record.patterns import PatternTable
from warploom.timing.record.record import Offsets, Record, Words
from warploom.timing.record.spins import (
    SortedEntry,
    jump_back_blocks,
    last_iterations,
    load_polling_loops,
    partial_barrier_arrivals,
    polling_loops,
)
from warploom.timing.records import StreamEntry, TimedAccess, TimedWarp, WarpStream
from warploom.timing.work.classes import is_bulk

_ABSOLUTE = [SPACES.index(space) for space in (Space.GLOBAL, Space.CONST)]
"""Spaces whose accesses are logged with the host's addresses."""


@dataclass
class RecordBuilder:
    """Builds the record of a launch from the logs of its parts, in the order of their blocks."""

    program: Program
    launch: Launch
    patterns: PatternTable
    origin: int
    """The address that counts as 0, so that nothing depends on the addresses of the host."""
    stores_masks: bool = False
    """True if active lanes are recorded: warps whose masks differ then have different streams."""
    blocks: int = 0
    _stream_numbers: dict[bytes, int] = field(default_factory=dict[bytes, int])
    _streams: list[list[int]] = field(default_factory=list[list[int]])
    _entries: list[Words] = field(default_factory=list[Words])
    _masks: list[Words] = field(default_factory=list[Words])
    _accesses: list[Words] = field(default_factory=list[Words])
    _warps: list[Words] = field(default_factory=list[Words])
    _offsets: list[Offsets] = field(default_factory=list[Offsets])
    _poll_counts: list[Words] = field(default_factory=list[Words])
    _sites: dict[int, int] = field(default_factory=dict[int, int])
    _entry_count: int = 0
    _access_count: int = 0

    @property
    def size(self) -> int:
        """Returns the words of the streams' entries and accesses and of the warps so far, by which
        the caller limits the record; what else it has is not in it."""
        streams_size = (
            StreamEntry.WORDS * self._entry_count + TimedAccess.WORDS * self._access_count
        )
        return streams_size + sum(part.size for part in self._warps)

    def add(self, log: Log, blocks: range) -> int:
        """Adds the log of these blocks, which follow those added before, up to the first block of
        which something is missing in the log; returns how many blocks were added, and stores in
        `blocks` how many there are now."""
        blocks = range(blocks.start, blocks.start + self._count_whole_blocks(log, blocks))
        if not blocks:
            return 0
        entries, entry_positions = self._sort_entries(log, blocks)
        access_entries, accesses, offsets = self._sort_accesses(
            log, entries, entry_positions, blocks.start
        )
        access_warps = entries[access_entries, SortedEntry.warp]
        self._add_warps(entries, accesses, access_entries, blocks)
        self._add_offsets(accesses, access_warps, offsets, len(blocks))
        self.blocks = blocks.stop
        return len(blocks)

    def _count_whole_blocks(self, log: Log, blocks: range) -> int:
        """Returns how many of these blocks, from the first on up to the first incomplete one, are
        logged completely: each of their warps has a number in the log, and none of its steps or
        entries was left out or lost."""
        warps = self.launch.warps_per_block
        span = slice(blocks.start * warps, blocks.stop * warps)
        count = self.launch.blocks * warps
        numbers = log.numbers(self.launch)
        incomplete = (numbers <= 0) | (log.data[log.head.steps_at :][:count] == LEFT_OUT)
        rows = log.rows(log.head.entries, LogEntry.WORDS)
        lost_warps = np.unique(rows[rows[:, LogEntry.marks] & LOST != 0, LogEntry.warp]) + 1
        incomplete |= np.isin(numbers, lost_warps)
        # Numbers in the log count from 1, the warps of its entries from 0.
        broken = incomplete[span].reshape(-1, warps).any(axis=1)
        return int(broken.argmax()) if broken.any() else len(blocks)

    def record(self) -> Record:
        """Returns the record of all that was added; base addresses and offsets of early parts,
        which had fewer sites, are padded with zeros. `masks` are None unless they are stored."""
        count = len(self._sites)
        warps = [
            np.pad(part, ((0, 0), (0, TimedWarp.WORDS + count - part.shape[1])))
            for part in self._warps
        ]
        offsets = [np.pad(part, ((0, 0), (0, count - part.shape[1]))) for part in self._offsets]
        empty = np.zeros((0, TimedWarp.WORDS + count), np.int64)
        accesses = np.concatenate([*self._accesses, np.zeros((0, TimedAccess.WORDS), np.int64)])
        return Record(
            self.launch,
            self.blocks,
            np.array(self._streams, np.int64).reshape(-1, WarpStream.WORDS),
            np.concatenate([*self._entries, np.zeros((0, StreamEntry.WORDS), np.int64)]),
            accesses,
            np.concatenate([*warps, empty]),
            self.patterns,
            np.concatenate([*self._poll_counts, np.zeros(0, np.int64)]),
            self._is_bulk,
            bool(self._is_bulk[accesses[:, TimedAccess.instruction]].any()),
            np.concatenate([*self._masks, np.zeros(0, np.int64)]) if self.stores_masks else None,
            offsets=np.concatenate([*offsets, np.zeros((0, count), np.uint8)]),
        )

    @cached_property
    def _is_bulk(self) -> npt.NDArray[np.bool_]:
        """Returns, by instruction, whether the Tensor Memory Accelerator carries it out."""
        return np.array(
            [is_bulk(instruction.operation) for instruction in self.program.instructions]
        )

    @cached_property
    def _phase_waits(self) -> npt.NDArray[np.bool_]:
        """Returns, by instruction, whether it waits for a phase of an mbarrier."""
        return waits_for_phases(self.program)

    @cached_property
    def _is_polling(self) -> npt.NDArray[np.bool_]:
        """Returns, by basic block, whether it is a polling loop."""
        loops = polling_loops(self.program)
        return np.array([block.index in loops for block in self.program.blocks])

    @cached_property
    def _is_jump_back(self) -> npt.NDArray[np.bool_]:
        """Returns, by basic block, whether it only jumps back to the start of a polling loop;
        entries of such blocks are dropped from the record."""
        jumps = jump_back_blocks(self.program)
        return np.array([block.index in jumps for block in self.program.blocks])

    @cached_property
    def _is_load_polling(self) -> npt.NDArray[np.bool_]:
        """Returns, by basic block, whether it is a polling loop whose last poll is a load (else it
        tests an mbarrier)."""
        loops = load_polling_loops(self.program)
        return np.array([block.index in loops for block in self.program.blocks])

    @cached_property
    def _ends_with_barrier(self) -> npt.NDArray[np.bool_]:
        """Returns, by basic block, whether it ends with a barrier of a block, a cluster or a warp
        group, but not of a warp."""
        last = [self.program.instructions[block.stop - 1] for block in self.program.blocks]
        return np.array([instruction.operation.spec.unit is Unit.BARRIER for instruction in last])

    # ---- from the log -----------------------------------------------------------------------

    def _sort_entries(self, log: Log, blocks: range) -> tuple[Words, Words]:
        """Returns the entries of these blocks, a `SortedEntry` in each row, and for each row of the
        log its position among them. Warps are numbered among those of the blocks. A basic block at
        whose barrier only a part of the warp arrives has a number that is greater by the number of
        basic blocks. The position is -1 for later blocks, and for rows that are dropped: all
        iterations of polling loops but the last, and jumps back. Also appends to `_poll_counts` how
        many entries of load polling loops each warp retains."""
        rows = log.rows(log.head.entries, LogEntry.WORDS)
        numbers = log.numbers(self.launch)
        # `numbers` has, by warp of the launch, 1 plus its number in the log (0: none); `launched`
        # is the inverse.
        launched_slots = np.flatnonzero(numbers > 0)
        launched = np.zeros(len(launched_slots), np.int64)
        launched[numbers[launched_slots] - 1] = launched_slots
        warp = launched[rows[:, LogEntry.warp]] - blocks.start * self.launch.warps_per_block
        inside = np.flatnonzero(warp < len(blocks) * self.launch.warps_per_block)
        order = inside[np.argsort(warp[inside], kind="stable")]
        entries = np.zeros((len(order), SortedEntry.WORDS), np.int64)
        entries[:, SortedEntry.warp], entries[:, SortedEntry.block] = (
            warp[order],
            rows[order, LogEntry.block],
        )
        if self._is_polling.any():
            counted = ~self._is_jump_back[entries[:, SortedEntry.block]]
            order, entries = order[counted], entries[counted]
            last = last_iterations(entries, rows[order, LogEntry.mask], self._is_polling)
            order, entries = order[last], entries[last]
        lanes, live = rows[order, LogEntry.mask], rows[order, LogEntry.live]
        partial = partial_barrier_arrivals(entries, lanes, live, self._ends_with_barrier)
        count = len(blocks) * self.launch.warps_per_block
        polls = self._is_load_polling[entries[:, SortedEntry.block]]
        self._poll_counts.append(np.bincount(entries[polls, SortedEntry.warp], minlength=count))
        # Marks the entries by the copies of their blocks without a barrier.
        entries[partial, SortedEntry.block] += len(self.program.blocks)
        entries[:, SortedEntry.lanes] = lanes * self.stores_masks
        position = np.full(len(rows), -1, np.int64)
        position[order] = np.arange(len(order))
        return entries, position

    def _sort_accesses(
        self, log: Log, entries: Words, entry_positions: Words, first: int
    ) -> tuple[Words, Words, Words]:
        """Returns the accesses of the blocks from `first` on, sorted by warp, entry and
        instruction: the entry of each; a `TimedAccess` for each, whose `delta` is the base address;
        and the bytes from the base to its first address. `entries` and `entry_positions` are those
        of `_sort_entries`. Left out are accesses of dropped entries, and lanes' accesses by bulk
        copies, which are also logged as copies."""
        rows = log.rows(log.head.accesses, LogAccess.WORDS)
        entry = entry_positions[rows[:, LogAccess.entry]]
        by_lanes = operation_number(rows[:, LogAccess.kind]) < len(OPS)
        entry[
            by_lanes & self._is_bulk[rows[:, LogAccess.instruction]]
        ] = -1  # logged as a copy, too
        phase_id, arrivals, owner = self._mbarrier_phases(rows, entry, entries, first)
        # Sorted by entry, those to drop (-1) are first: the next line cuts them off.
        order = np.lexsort((rows[:, LogAccess.instruction], entry))
        order = order[np.searchsorted(entry[order], 0) :]
        rows, entry, owner = rows[order], entry[order], owner[order]
        phase_id, arrivals = phase_id[order], arrivals[order]
        warp = entries[entry, SortedEntry.warp]
        pattern, base = self.patterns.of(log, rows)
        offset = rows[:, LogAccess.first_address] % self.patterns.unit
        columns = {
            TimedAccess.pattern: pattern,
            TimedAccess.instruction: rows[:, LogAccess.instruction],
            TimedAccess.site: self._site_numbers(rows),
            TimedAccess.delta: base + self._address_offsets(rows, warp),
            TimedAccess.phase_id: phase_id,
            TimedAccess.arrivals: arrivals,
            TimedAccess.owner: owner,
        }
        accesses = np.zeros((len(rows), TimedAccess.WORDS), np.int64)
        for column, values in columns.items():
            accesses[:, column] = values
        return entry, accesses, offset

    def _mbarrier_phases(
        self, rows: Words, entry: Words, entries: Words, first: int
    ) -> tuple[Words, Words, Words]:
        """Returns three arrays for the log's accesses `rows`. The phase of an mbarrier that each
        signals or awaits: 1 plus its number in the block; 0 for none, for a phase at which nothing
        arrives, and for accesses not in the record. The number of arrivals, at this phase alone,
        that complete the phase for an access that waits; 0 for all others. The number of the block
        that owns the mbarrier, less that of the own block. `entry` has the access's entry (-1: not
        in the record); entries begin with block `first`."""
        in_record = entry >= 0
        block = np.where(
            in_record, first + entries[entry, SortedEntry.warp] // self.launch.warps_per_block, 0
        )
        packed_phase = np.where(in_record, rows[:, LogAccess.phase], NONE)
        stride = shared_stride(self.program, self.launch)
        owner, phase = owners_of(self.launch, stride, block, packed_phase)
        waits = self._phase_waits[rows[:, LogAccess.instruction]]
        return *phases_of(owner, phase, waits), owner - block

    def _address_offsets(self, rows: Words, warp: Words) -> Words:
        """Returns what is added to the logged addresses of `rows`, accesses by the warps `warp`
        (numbered from the first block not yet added). By it, local memory gets addresses of its own
        for each warp, from LOCAL_BASE on, and global and constant addresses, which are the host's,
        become distances from `origin`. It is 0 for other spaces."""
        local = space_number(rows[:, LogAccess.kind]) == SPACES.index(Space.LOCAL)
        first = self.blocks * self.launch.warps_per_block
        local_bytes = (first + warp) * (local_lines(self.program) * LINE_BYTES)
        is_absolute = np.isin(space_number(rows[:, LogAccess.kind]), _ABSOLUTE)
        return np.where(local, LOCAL_BASE + local_bytes, np.where(is_absolute, -self.origin, 0))

    def _site_numbers(self, rows: Words) -> Words:
        """Returns the numbers of the sites of accesses: a site is an instruction and a kind of
        access. New ones get the next numbers, and are stored in `_sites`."""
        keys = rows[:, LogAccess.instruction] << 32 | rows[:, LogAccess.kind]
        distinct, index = np.unique(keys, return_inverse=True)
        numbers = [self._sites.setdefault(key, len(self._sites)) for key in distinct.tolist()]
        return np.array(numbers, np.int64)[index.reshape(-1)]

    # ---- streams ----------------------------------------------------------------------------

    def _add_warps(
        self, entries: Words, accesses: Words, access_entries: Words, blocks: range
    ) -> None:
        """Adds a `TimedWarp` for each warp (the base address of a site is that of the warp's first
        access there), and the streams among theirs that are new:
        paths of basic blocks with accesses. Streams are compared by hashes of their entries and
        accesses, so that warps share them.

        `entries` and `accesses` are those of `_sort_entries` and `_sort_accesses`, sorted by warp;
        `access_entries` has the entry of each access."""
        access_warps = entries[access_entries, SortedEntry.warp]
        count = len(blocks) * self.launch.warps_per_block
        warps = np.zeros((count, TimedWarp.WORDS + len(self._sites)), np.int64)
        distances = _distances_from_first(accesses, access_warps, warps)
        ends = np.searchsorted(entries[:, SortedEntry.warp], np.arange(count + 1))
        access_ends = np.searchsorted(access_warps, np.arange(count + 1))
        first_accesses = np.searchsorted(access_entries, np.arange(len(entries) + 1))
        position = np.arange(len(entries)) - ends[entries[:, SortedEntry.warp]]
        # Positions are part of the rows: the hash of a segment does not depend on the order of its
        # rows.
        columns = np.concatenate([entries[:, SortedEntry.block :], position[:, None]], axis=1)
        entry_hash = _hash_segments(columns, ends)
        entry_in_warp = access_entries - ends[access_warps]
        order = np.arange(len(accesses)) - access_ends[access_warps]
        access_columns = np.column_stack(
            [order, entry_in_warp, _with_distances(accesses, distances)]
        )
        keys = np.concatenate([entry_hash, _hash_segments(access_columns, access_ends)], axis=1)
        distinct, first, stream_index = unique_rows(keys)
        numbers = np.zeros(len(distinct), np.int64)
        for index, warp in enumerate(first.tolist()):
            key = distinct[index].tobytes()
            if key not in self._stream_numbers:
                self._stream_numbers[key] = len(self._streams)
                span = slice(int(ends[warp]), int(ends[warp + 1]))
                accessed = slice(int(access_ends[warp]), int(access_ends[warp + 1]))
                self._add_stream(
                    entries[span], first_accesses[span], accesses[accessed], distances[accessed]
                )
            numbers[index] = self._stream_numbers[key]
        warps[:, TimedWarp.stream] = numbers[stream_index]
        self._warps.append(warps)

    def _add_offsets(
        self, accesses: Words, access_warps: Words, offsets: Words, blocks: int
    ) -> None:
        """Adds, for each warp of `blocks` blocks, the bytes between the base and the address of its
        first access at each site (`Record.offsets`; 0 without one), from those of all accesses,
        `offsets`."""
        first_offsets = np.zeros((blocks * self.launch.warps_per_block, len(self._sites)), np.uint8)
        # Offsets are less than the unit of base addresses, so a byte holds them.
        warp, site, first = _first_of_sites(accesses, access_warps, len(self._sites))[:3]
        first_offsets[warp, site] = offsets[first]
        self._offsets.append(first_offsets)

    def _add_stream(
        self, entries: Words, first_accesses: Words, accesses: Words, distances: Words
    ) -> None:
        """Adds a stream to the record: its entries, a last one that marks the end of its accesses,
        and its accesses, with `distances` (from the first of their site) instead of base addresses;
        and the entries' lanes if masks are stored. `first_accesses` has the number of each entry's
        first access among all sorted accesses."""
        start = int(first_accesses[0]) if len(first_accesses) else 0
        rows = np.zeros((len(entries) + 1, StreamEntry.WORDS), np.int64)
        rows[:-1, StreamEntry.block] = entries[:, SortedEntry.block]
        rows[:-1, StreamEntry.access] = first_accesses - start + self._access_count
        rows[-1, StreamEntry.access] = self._access_count + len(accesses)
        stop = self._entry_count + len(entries)
        self._streams.append(WarpStream.pack(entries=self._entry_count, stop=stop))
        self._entries.append(rows)
        if self.stores_masks:
            self._masks.append(np.append(entries[:, SortedEntry.lanes], 0))
        self._accesses.append(_with_distances(accesses, distances))
        self._entry_count += len(rows)
        self._access_count += len(accesses)


def _with_distances(accesses: Words, distances: Words) -> Words:
    """Returns sorted accesses as in `Record.accesses`: with `distances` instead of the base
    addresses."""
    changed = accesses.copy()
    changed[:, TimedAccess.delta] = distances
    return changed


def _distances_from_first(accesses: Words, access_warps: Words, warps: Words) -> Words:
    """Returns the distance in bytes of each access's base from that of the first access of the same
    warp at its site (instruction and kind of access), and writes the latter, the site's base
    address, to `warps` (in place), from column `bases` on."""
    warp, site, first, pair = _first_of_sites(
        accesses, access_warps, warps.shape[1] - TimedWarp.WORDS
    )
    base_addresses = accesses[first, TimedAccess.delta]
    warps[warp, TimedWarp.bases + site] = base_addresses
    return accesses[:, TimedAccess.delta] - base_addresses[pair]


def _first_of_sites(
    accesses: Words, access_warps: Words, sites: int
) -> tuple[Words, Words, Words, Words]:
    """Returns, of the pairs of a warp and a site (instruction and kind of access) that have
    accesses: the warps, the sites, and the index of each pair's first access; and for every access
    the index of its pair. `sites` is the number of sites."""
    keys = access_warps * max(1, sites) + accesses[:, TimedAccess.site]
    pairs, first, pair = np.unique(keys, return_index=True, return_inverse=True)
    return pairs // max(1, sites), pairs % max(1, sites), first, pair.reshape(-1)


def _hash_segments(rows: Words, ends: Words) -> Words:
    """Returns two hashes of the set of rows of each segment, and the number of its rows, shape
    (segments, 3); segment i is rows `ends[i]` to `ends[i + 1]`, exclusive. A hash is the sum of the
    rows' hashes, whatever their order."""
    sums = [np.concatenate([[np.uint64(0)], np.cumsum(hashes)]) for hashes in hash_rows(rows)]
    differences = [(hashes[ends[1:]] - hashes[ends[:-1]]).astype(np.int64) for hashes in sums]
    return np.stack([*differences, np.diff(ends)], axis=1)
