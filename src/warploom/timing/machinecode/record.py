"""Converts the record of a launch from PTX to machine code: the same warps, with paths through the
machine code and accesses by machine instructions.

    PTX record     entries: basic block, first access; accesses name a PTX instruction
    machine code   entries: span of the listing, first access; accesses name a machine instruction

Accesses that ptxas merged (four loads of 4 bytes into one of 16) become one access of the wider
pattern; atomics whose values ptxas reduces over the warp first become one of one lane.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from warploom.core.lazy import cached_property
from warploom.machinecode.counted import MachineCounts
from warploom.program.program import Site
from warploom.timing.machinecode.memory_operations import ONE_LANE, MemoryOperations
from warploom.timing.machinecode.retries import with_retries
from warploom.timing.machinecode.tokens import Words
from warploom.timing.machinecode.walk import Segment, Walker
from warploom.timing.machinecode.work import BULK_OPCODES
from warploom.timing.record.record import Record
from warploom.timing.records import StreamEntry, TimedAccess, TimedWarp, WarpStream


@dataclass(frozen=True)
class MachineCodeRecord:
    """Holds the record of machine code, whose blocks are spans of the listing (`starts`, `stops`)
    and whose accesses name instructions of it. Holds as well how well its paths agree with the
    PTX's (`agreement`, 0 to 1), and for each entry its position in the PTX path of its stream."""

    record: Record
    starts: tuple[int, ...]
    stops: tuple[int, ...]
    agreement: float
    path_positions: Words


def machine_code_record(record: Record, counts: MachineCounts) -> MachineCodeRecord:
    """Returns the record of a launch converted from PTX to machine code: the same warps, on paths
    of machine instructions, and the accesses that these make. `counts` matches the machine code of
    the kernel with its PTX, with executions."""
    return _MachineCodeRecordBuilder(record, counts).run()


@dataclass(frozen=True)
class _SegmentArrays:
    """Holds a segment (part of a path through machine code) as arrays.

    For each visit of a node: the block, and its position in the PTX path. For each memory
    operation: the visit; the instruction of the listing; the position in the PTX path; the offset
    of its PTX instruction in the basic block; and a size. That is the bytes of a lane if the
    operation was merged from several, ONE_LANE if one lane makes it for all, else 0. Positions
    count from the segment's start."""

    blocks: Words
    block_positions: Words
    visits: Words
    instructions: Words
    path_positions: Words
    ptx_offsets: Words
    lane_bytes: Words


class _MachineCodeRecordBuilder:
    """Converts the record of one launch: finds each stream's path through the machine code, and
    assigns its accesses to the instructions there. A node is a basic block of the machine code, for
    each call site of its function; a segment, a cached part of such a path; a token, the number of
    a basic block of the PTX (`BlockTokens`)."""

    def __init__(self, record: Record, counts: MachineCounts) -> None:
        """Prepares the conversion: a walker of the machine code, an empty cache of converted
        segments, and the blocks of the new record. These are the distinct spans of the listing in
        order; `_block_of` has the number of each node's. `counts`: how the machine code of the
        kernel matches its PTX, with executions."""
        self._record, self._counts = record, counts
        self._walker = Walker(counts)
        self._operations = MemoryOperations(counts.matching, self._walker.tokens)
        self._cached_arrays: dict[int, tuple[Segment, _SegmentArrays]] = {}
        nodes = counts.matching.nodes
        spans = sorted({(node.start, node.stop) for node in nodes})
        number = {span: index for index, span in enumerate(spans)}
        self._block_of = [number[node.start, node.stop] for node in nodes]
        retries = {self._block_of[node] for node in counts.matching.retries}
        self._spans, self._retries = spans, np.array(sorted(retries), np.int64)

    def run(self) -> MachineCodeRecord:
        """Returns the converted record: each stream (path of basic blocks with accesses, which
        warps share) is converted once. Its agreement is 1 less the weight of tokens that only the
        PTX path or the machine code's executes, as a share of the weight of all tokens of the PTX
        paths, over all warps; at least 0, and 0 if all tokens are ignored."""
        record = self._record
        warps_by_stream = np.bincount(
            record.warps[:, TimedWarp.stream], minlength=len(record.streams)
        )
        streams: list[list[int]] = []
        entries: list[Words] = []
        accesses: list[Words] = []
        positions: list[Words] = []
        missed_weight = total_weight = 0.0
        entry_count = access_count = 0
        blocks = len(self._counts.matching.program.blocks)
        weights, code = self._weights(), self._counts.matching.listing.instructions
        for number, (first, stop) in enumerate(record.streams.tolist()):
            rows = record.entries[first : stop + 1]
            # Numbers from `blocks` on stand for blocks without their barrier (`record.spins`).
            path = rows[:-1, StreamEntry.block] % blocks
            missed_here, path_entries, path_accesses, path_positions = self._stream(
                path, rows[:, StreamEntry.access]
            )
            positions.append(path_positions)
            missed_weight += missed_here * warps_by_stream[number]
            total_weight += float(weights[path].sum()) * warps_by_stream[number]
            path_entries[:, StreamEntry.access] += access_count
            last = entry_count + len(path_entries) - 1
            streams.append(WarpStream.pack(entries=entry_count, stop=last))
            entries.append(path_entries)
            accesses.append(path_accesses)
            entry_count += len(path_entries)
            access_count += len(path_accesses)
        changed = replace(
            record,
            streams=np.array(streams, np.int64).reshape(-1, WarpStream.WORDS),
            entries=np.concatenate([*entries, np.zeros((0, StreamEntry.WORDS), np.int64)]),
            accesses=np.concatenate([*accesses, np.zeros((0, TimedAccess.WORDS), np.int64)]),
            bulk=np.array([one.name in BULK_OPCODES for one in code], bool),
        )
        starts, stops = zip(*self._spans, strict=True)
        agreement = max(0.0, 1 - missed_weight / total_weight) if total_weight else 0.0
        all_positions = np.concatenate([*positions, np.zeros(0, np.int64)])
        if len(self._retries):
            swaps = np.array([one.name == "ATOMS" for one in code], bool)
            changed, all_positions = with_retries(changed, all_positions, self._retries, swaps)
        return MachineCodeRecord(changed, starts, stops, agreement, all_positions)

    def _weights(self) -> Words:
        """Returns, by basic block of the PTX, the weight of its token, by which executions of the
        block are found in the machine code; 0 for a block whose token is ignored."""
        tokens = self._walker.tokens
        return np.array([tokens.weights.get(token, 0.0) for token in tokens.of_block.tolist()])

    def _stream(self, path: Words, first_accesses: Words) -> tuple[float, Words, Words, Words]:
        """Returns, for a path of basic blocks of the PTX: the weight of tokens that differ; the
        entries of the path in machine code, whose first accesses count from 0; its accesses; and
        the position in the PTX path of each entry (0 for the one that ends them). `first_accesses`
        has the number in the record of the first access of each block of the path, and the end of
        the last one's. Accesses that no machine instruction makes are left out."""
        walk = self._walker.walk(path)
        arrays = [self._segment_arrays(segment) for segment in walk.segments]
        visit_starts = np.cumsum([0, *(len(part.blocks) for part in arrays)])
        blocks = np.concatenate([part.blocks for part in arrays])
        block_positions = np.concatenate(
            [
                part.block_positions + position
                for part, position in zip(arrays, walk.positions, strict=True)
            ]
        )
        visits = np.concatenate(
            [part.visits + start for part, start in zip(arrays, visit_starts, strict=False)]
        )
        instructions = np.concatenate([part.instructions for part in arrays])
        path_positions = np.concatenate(
            [
                part.path_positions + position
                for part, position in zip(arrays, walk.positions, strict=True)
            ]
        )
        ptx_offsets = np.concatenate([part.ptx_offsets for part in arrays])
        lane_bytes = np.concatenate([part.lane_bytes for part in arrays])
        of_retries = self._retries_in(path, blocks, block_positions)
        columns = visits, instructions, path_positions, ptx_offsets, lane_bytes
        merged = np.concatenate([np.stack(columns), of_retries], axis=1)
        visits, instructions, path_positions, ptx_offsets, lane_bytes = merged[
            :, np.argsort(merged[0], kind="stable")
        ]
        # The last window can look beyond the end of the path.
        is_inside = path_positions < len(path)
        visits, instructions, path_positions, ptx_offsets, lane_bytes = (
            column[is_inside]
            for column in (visits, instructions, path_positions, ptx_offsets, lane_bytes)
        )
        rows = self._record.accesses[first_accesses[0] : first_accesses[-1]]
        selected, operation_of = self._select_accesses(
            path, first_accesses - first_accesses[0], rows, path_positions, ptx_offsets
        )
        accesses = rows[selected].copy()
        accesses[:, TimedAccess.instruction] = instructions[operation_of]
        self._adjust_patterns(accesses, lane_bytes[operation_of])
        entries = np.zeros((len(blocks) + 1, StreamEntry.WORDS), np.int64)
        entries[:-1, StreamEntry.block] = blocks
        visit_of = visits[operation_of]
        entries[:, StreamEntry.access] = np.searchsorted(visit_of, np.arange(len(blocks) + 1))
        return (
            walk.missed,
            entries,
            accesses,
            np.append(np.minimum(block_positions, len(path) - 1), 0),
        )

    def _retries_in(self, path: Words, blocks: Words, positions: Words) -> Words:
        """Returns the memory operations in the retry loops of a path (`retries`) as columns of a
        `_SegmentArrays`, from its visits on. Their PTX basic block may have begun in a node before:
        it is the last one that has before the visit's position."""
        columns: list[Words] = [np.zeros((5, 0), np.int64)]
        tokens = self._walker.tokens.of_block[path]
        for number in self._retries.tolist():
            visits = np.flatnonzero(blocks == number)
            node = self._block_of.index(number)
            for operation in self._operations.of(node) if len(visits) else ():
                begun = np.flatnonzero(tokens == operation.token)
                last = np.searchsorted(begun, positions[visits], side="right") - 1
                rows, at = visits[last >= 0], begun[last[last >= 0]]
                row = operation.instruction, operation.ptx_offset, 0
                instruction, offset, lane_bytes = (np.full(len(rows), value) for value in row)
                columns.append(np.stack([rows, instruction, at, offset, lane_bytes]))
        return np.concatenate(columns, axis=1)

    def _adjust_patterns(self, accesses: Words, lane_bytes: Words) -> None:
        """Replaces in place the patterns of accesses that were merged from several by those of the
        wider access (`lane_bytes` of each lane, above 0), and the patterns of reduced atomics
        (ONE_LANE) by those of one lane; others (0) stay."""
        patterns = self._record.patterns
        widened, reduced = np.flatnonzero(lane_bytes > 0), np.flatnonzero(lane_bytes == ONE_LANE)
        if len(widened):
            accesses[widened, TimedAccess.pattern] = patterns.with_lane_bytes(
                accesses[widened, TimedAccess.pattern], lane_bytes[widened]
            )
        if len(reduced):
            accesses[reduced, TimedAccess.pattern] = patterns.of_one_lane(
                accesses[reduced, TimedAccess.pattern]
            )

    def _select_accesses(
        self,
        path: Words,
        first_accesses: Words,
        accesses: Words,
        path_positions: Words,
        ptx_offsets: Words,
    ) -> tuple[Words, Words]:
        """Returns the indices in `accesses` of those that memory operations of the machine code
        make, in the order of the operations, and the index of the operation of each. Operation i
        names its PTX instruction by the position `path_positions[i]` in the path and the offset
        `ptx_offsets[i]` in the basic block there, and makes all accesses of that instruction in
        that execution: none, one or several. `first_accesses` has the index of the first access of
        each block of the path, and the end of the last."""
        entries = np.repeat(np.arange(len(path)), np.diff(first_accesses))
        # An access is found by its position in the path and its PTX instruction, packed in one
        # integer.
        keys = entries << 32 | accesses[:, TimedAccess.instruction]
        order = np.argsort(keys, kind="stable")
        wanted = path_positions << 32 | (
            self._first_instructions[path[path_positions]] + ptx_offsets
        )
        # Accesses with an equal key are neighbors: from `low` to `high`.
        low = np.searchsorted(keys[order], wanted, "left")
        high = np.searchsorted(keys[order], wanted, "right")
        count = high - low
        operation_of = np.repeat(np.arange(len(wanted)), count)
        rank = np.arange(len(operation_of)) - np.repeat(np.cumsum(count) - count, count)
        return order[np.repeat(low, count) + rank], operation_of

    @cached_property
    def _first_instructions(self) -> Words:
        """Returns, by basic block of the PTX, the number in the program of its first
        instruction."""
        return np.array([block.start for block in self._counts.matching.program.blocks])

    # ---- the accesses of a segment ----------------------------------------------------------

    def _segment_arrays(self, segment: Segment) -> _SegmentArrays:
        """Returns a segment as arrays (`_build_segment_arrays`), cached by the segment's identity,
        since walks share segments. The cache holds the segment alive, so that its identity stays
        its own."""
        key = id(segment)
        if key not in self._cached_arrays:
            self._cached_arrays[key] = segment, self._build_segment_arrays(segment)
        return self._cached_arrays[key][1]

    def _build_segment_arrays(self, segment: Segment) -> _SegmentArrays:
        """Returns a segment as arrays: a row for each memory operation of its nodes whose PTX block
        is found among the segment's tokens (others are left out), sorted by visit. If the node
        visited next makes the same access by one lane (`MemoryOperations.reduced_in`), the row has
        that visit and that operation instead."""
        rows: list[tuple[int, int, int, int, int]] = []
        visits_of_nodes = zip(segment.nodes, segment.starts, segment.stops, strict=True)
        for visit, (node, start, stop) in enumerate(visits_of_nodes):
            if self._block_of[node] in self._retries:
                continue
            iterations: dict[Site, int] = defaultdict(int)
            reduced = self._operations.reduced_in(*segment.nodes[visit + 1 : visit + 2])
            for operation in self._operations.of(node):
                nth = iterations[operation.site]
                iterations[operation.site] += operation.iterations
                position = self._position_of(segment, operation.token, start, stop, nth)
                if position is None:
                    continue
                merged = reduced.get(operation.site, operation)
                at = visit + (operation.site in reduced)
                of_merged = merged.instruction, position, merged.ptx_offset, merged.lane_bytes
                rows.append((at, *of_merged))
        rows.sort(key=lambda row: row[0])
        blocks = np.array([self._block_of[node] for node in segment.nodes], np.int64)
        columns = np.array(rows, np.int64).reshape(-1, 5).T
        return _SegmentArrays(blocks, np.array(segment.starts, np.int64), *columns)

    def _position_of(
        self, segment: Segment, token: int, start: int, stop: int, nth: int
    ) -> int | None:
        """Returns the position in the segment's tokens of the execution number `nth` (from 0) of
        `token` among the positions from `start` up to `stop`, exclusive, that a node executes;
        `stop` itself if the token is not among them but at `stop`, and `nth` is 0; else None."""
        positions = [
            position for position in range(start, stop) if segment.tokens[position] == token
        ]
        if nth < len(positions):
            return positions[nth]
        if (
            not positions
            and not nth
            and stop < len(segment.tokens)
            and segment.tokens[stop] == token
        ):
            return stop
        return None
