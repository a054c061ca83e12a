"""The record of a launch as one of its machine code: the same warps, their ways and accesses those
of machine instructions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from warploom.machinecode.counted import MachineCounts
from warploom.machinecode.merged import Merging
from warploom.program.program import Site
from warploom.timing import layout as w
from warploom.timing.machinecode.tokens import Words
from warploom.timing.machinecode.walk import Segment, Walker
from warploom.timing.machinecode.work import accesses_memory, indexes_constants
from warploom.timing.record.records import Record


@dataclass(frozen=True)
class Rerouted:
    """The record of machine code, whose blocks are stretches of the listing (`starts`, `stops`) and
    whose accesses name instructions of it; how far ways of both agree, from 0 to 1; and for each
    entry the place of its stretch in the way of its stream through the PTX."""

    record: Record
    starts: tuple[int, ...]
    stops: tuple[int, ...]
    agreement: float
    places: Words


def rerouted(record: Record, counts: MachineCounts) -> Rerouted:
    """Return the record of a launch as one of its machine code."""
    return _Rerouting(record, counts).run()


ONE_LANE = -1
"""The bytes of a lane of an access that one lane makes for all: ptxas had the values of an atomic
reduced among the lanes first."""

_REDUCTIONS = ("SHFL", "REDUX")
"""Opcodes that reduce the values of an atomic."""


@dataclass(frozen=True)
class _Plan:
    """A segment as arrays: of its visits the blocks, and the positions in the way; and of its
    memory operations the visit, the instruction of the listing, the position in the way, the
    instruction in its PTX block, where it stands for several of those, the bytes of a lane, and
    ONE_LANE where one lane makes it for all."""

    blocks: Words
    begins: Words
    visits: Words
    ptx: Words
    places: Words
    inside: Words
    widths: Words


@dataclass(frozen=True, slots=True)
class _Operation:
    """A machine instruction that reaches memory: its number in the listing, the PTX instruction
    that it was made for, the token of its block, and the place there of the first one that it
    stands for; where those are several, the bytes of a lane in `width`, and in `turns` of how
    many turns of a loop they are."""

    ptx: int
    site: Site
    token: int
    inside: int
    width: int = 0
    turns: int = 1


class _Rerouting:
    def __init__(self, record: Record, counts: MachineCounts) -> None:
        self._record, self._counts = record, counts
        self._walker = Walker(counts)
        self._plans: dict[int, tuple[Segment, _Plan]] = {}
        nodes = counts.matching.nodes
        spans = sorted({(node.start, node.stop) for node in nodes})
        number = {span: index for index, span in enumerate(spans)}
        self._block_of = [number[node.start, node.stop] for node in nodes]
        self._spans = spans

    def run(self) -> Rerouted:
        record = self._record
        used = np.bincount(record.warps[:, 0], minlength=len(record.streams))
        streams: list[list[int]] = []
        entries: list[Words] = []
        accesses: list[Words] = []
        begun: list[Words] = []
        missed = whole = 0.0
        entry_count = access_count = 0
        blocks = len(self._counts.matching.program.blocks)
        weights = self._weights()
        for number, (first, stop) in enumerate(record.streams.tolist()):
            rows = record.entries[first : stop + 1]
            way = rows[:-1, w.ENTRY_BLOCK] % blocks
            off, made, accessed, begins = self._stream(way, rows[:, w.ENTRY_ACCESS])
            begun.append(begins)
            missed += off * used[number]
            whole += float(weights[way].sum()) * used[number]
            made[:, w.ENTRY_ACCESS] += access_count
            streams.append([entry_count, entry_count + len(made) - 1])
            entries.append(made)
            accesses.append(accessed)
            entry_count += len(made)
            access_count += len(accessed)
        changed = replace(
            record,
            streams=np.array(streams, np.int64).reshape(-1, w.STREAM_WORDS),
            entries=np.concatenate([*entries, np.zeros((0, w.ENTRY_WORDS), np.int64)]),
            accesses=np.concatenate([*accesses, np.zeros((0, w.ACCESS_WORDS), np.int64)]),
        )
        starts, stops = zip(*self._spans, strict=True)
        agreement = max(0.0, 1 - missed / whole) if whole else 0.0
        places = np.concatenate([*begun, np.zeros(0, np.int64)])
        return Rerouted(changed, starts, stops, agreement, places)

    def _weights(self) -> Words:
        """Return, by basic block of the PTX, the weight of its token."""
        tokens = self._walker.tokens
        return np.array([tokens.weights.get(token, 0.0) for token in tokens.of_block.tolist()])

    def _stream(self, way: Words, begins: Words) -> tuple[float, Words, Words, Words]:
        """Returns what differs on a way, its entries and accesses in machine code, and the places
        of the entries in the way; `begins` has where the accesses of each of its blocks begin, and
        where the last ones stop."""
        walk = self._walker.walk(way)
        plans = [self._plan(segment) for segment in walk.segments]
        visited = np.cumsum([0, *(len(plan.blocks) for plan in plans)])
        blocks = np.concatenate([plan.blocks for plan in plans])
        begun = np.concatenate([p.begins + at for p, at in zip(plans, walk.places, strict=True)])
        visits = np.concatenate([p.visits + v for p, v in zip(plans, visited, strict=False)])
        ptx = np.concatenate([plan.ptx for plan in plans])
        places = np.concatenate([p.places + at for p, at in zip(plans, walk.places, strict=True)])
        inside = np.concatenate([plan.inside for plan in plans])
        widths = np.concatenate([plan.widths for plan in plans])
        there = places < len(way)
        visits, ptx, places, inside, widths = (
            column[there] for column in (visits, ptx, places, inside, widths)
        )
        rows = self._record.accesses[begins[0] : begins[-1]]
        taken, of_operation = self._taken(way, begins - begins[0], rows, places, inside)
        found = rows[taken].copy()
        found[:, w.A_INSTRUCTION] = ptx[of_operation]
        self._widen(found, widths[of_operation])
        entries = np.zeros((len(blocks) + 1, w.ENTRY_WORDS), np.int64)
        entries[:-1, w.ENTRY_BLOCK] = blocks
        visit_of = visits[of_operation]
        entries[:, w.ENTRY_ACCESS] = np.searchsorted(visit_of, np.arange(len(blocks) + 1))
        return walk.missed, entries, found, np.append(np.minimum(begun, len(way) - 1), 0)

    def _widen(self, found: Words, widths: Words) -> None:
        """Give the accesses that stand for several the pattern of all of them, and those of one
        lane for all that of one."""
        patterns = self._record.patterns
        wide, reduced = np.flatnonzero(widths > 0), np.flatnonzero(widths == ONE_LANE)
        if len(wide):
            found[wide, w.A_PATTERN] = patterns.widened(found[wide, w.A_PATTERN], widths[wide])
        if len(reduced):
            found[reduced, w.A_PATTERN] = patterns.of_one_lane(found[reduced, w.A_PATTERN])

    def _taken(
        self, way: Words, begins: Words, rows: Words, places: Words, inside: Words
    ) -> tuple[Words, Words]:
        """Return the accesses that operations make, in their order, and the operation of each."""
        entry = np.repeat(np.arange(len(way)), np.diff(begins))
        keys = entry << 32 | rows[:, w.A_INSTRUCTION]
        order = np.argsort(keys, kind="stable")
        wanted = places << 32 | (self._first[way[places]] + inside)
        low = np.searchsorted(keys[order], wanted, "left")
        high = np.searchsorted(keys[order], wanted, "right")
        count = high - low
        of_operation = np.repeat(np.arange(len(wanted)), count)
        within = np.arange(len(of_operation)) - np.repeat(np.cumsum(count) - count, count)
        return order[np.repeat(low, count) + within], of_operation

    @cached_property
    def _first(self) -> Words:
        """Return the first instruction of each basic block of the PTX."""
        return np.array([block.start for block in self._counts.matching.program.blocks])

    # ---- what the instructions of a segment reach -------------------------------------------

    def _plan(self, segment: Segment) -> _Plan:
        key = id(segment)
        if key not in self._plans:
            self._plans[key] = segment, self._planned(segment)
        return self._plans[key][1]

    def _planned(self, segment: Segment) -> _Plan:
        rows: list[tuple[int, int, int, int, int]] = []
        ways = zip(segment.nodes, segment.starts, segment.stops, strict=True)
        for visit, (node, start, stop) in enumerate(ways):
            made: dict[Site, int] = defaultdict(int)
            reduced = self._reduced_in(*segment.nodes[visit + 1 : visit + 2])
            for one in self._memory_of(node):
                nth = made[one.site]
                made[one.site] += one.turns
                place = self._place(segment, one.token, start, stop, nth)
                if place is None:
                    continue
                later = reduced.get(one.site)
                if later is None:
                    rows.append((visit, one.ptx, place, one.inside, one.width))
                else:
                    rows.append((visit + 1, later.ptx, place, later.inside, later.width))
        rows.sort(key=lambda row: row[0])
        blocks = np.array([self._block_of[node] for node in segment.nodes], np.int64)
        columns = np.array(rows, np.int64).reshape(-1, 5).T
        return _Plan(blocks, np.array(segment.starts, np.int64), *columns)

    def _reduced_in(self, node: int = -1) -> dict[Site, _Operation]:
        """Return the operations of a node that one lane makes for all, by their PTX instruction:
        the guarded one of the node before, for warps with inactive lanes, does nothing then."""
        if node < 0:
            return {}
        if node not in self._reduced:
            made = self._memory_of(node)
            self._reduced[node] = {one.site: one for one in made if one.width == ONE_LANE}
        return self._reduced[node]

    def _place(self, segment: Segment, token: int, start: int, stop: int, nth: int) -> int | None:
        """Return the position of the nth visit to a block of the PTX among those that a node does;
        where another node does it, the one that comes next."""
        found = [at for at in range(start, stop) if segment.tokens[at] == token]
        if nth < len(found):
            return found[nth]
        if not found and not nth and stop < len(segment.tokens) and segment.tokens[stop] == token:
            return stop
        return None

    def _memory_of(self, node: int) -> list[_Operation]:
        """Return the instructions of a node that reach memory."""
        if node not in self._memory:
            matching = self._counts.matching
            made = matching.nodes[node]
            rows: list[tuple[int, Site]] = []
            reduced: set[Site] = set()
            for number in range(made.start, made.stop):
                one = matching.listing.instructions[number]
                site = matching.site_of(one)
                if site is None or site not in self._merging.places:
                    continue
                if accesses_memory(one.name) or indexes_constants(one):
                    rows.append((number, site))
                elif one.name in _REDUCTIONS:
                    reduced.add(site)
            taken = [site for _, site in rows]
            found = [self._operation(number, site, taken) for number, site in rows]
            self._memory[node] = [
                replace(one, width=ONE_LANE) if one.site in reduced else one for one in found
            ]
        return self._memory[node]

    def _operation(self, ptx: int, site: Site, taken: list[Site]) -> _Operation:
        """Return the operation of a machine instruction; `taken` are the PTX instructions that have
        one in its node."""
        block, inside = self._merging.places[site]
        token = int(self._walker.tokens.of_block[block])
        made = self._counts.matching.listing.instructions[ptx]
        merged = self._merging.of(made, site, taken)
        if merged is None:
            return _Operation(ptx, site, token, inside)
        return _Operation(ptx, site, token, merged.first, merged.width, merged.turns)

    @cached_property
    def _merging(self) -> Merging:
        return Merging(self._counts.matching.program)

    @cached_property
    def _reduced(self) -> dict[int, dict[Site, _Operation]]:
        return {}

    @cached_property
    def _memory(self) -> dict[int, list[_Operation]]:
        return {}
