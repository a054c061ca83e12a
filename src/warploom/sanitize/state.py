"""Builds the detector's state for one launch: lays out its array (`detector.layout`) for the launch
and its memory, and selects the events that the tools need."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from warploom.analysis.block_uniformity import has_uniform_barriers
from warploom.asynchronous.tensor_memory.layout import COLUMNS, LANES
from warploom.core.errors import Allocation
from warploom.detector import layout as words
from warploom.detector.agents import count_agents
from warploom.detector.barriers import report_skips
from warploom.detector.records import (
    BarrierShadow,
    BlockSetEntry,
    ClusterBarrierShadow,
    DetectorFinding,
    DetectorState,
    InstructionSite,
    LineShadow,
    ReleaseLocation,
    ResidentBlock,
    ShadowCell,
    ThreadKnowledge,
    TrackedAllocation,
    WarpKnowledge,
)
from warploom.ir.variant import Sanitizing
from warploom.isa.instruction import Space
from warploom.isa.kinds import Needs, OpKind
from warploom.machine.launch import Launch, all_shared_bytes, shared_stride
from warploom.machine.memory.device_memory import WRITTEN_BITS, DeviceMemory
from warploom.program.program import Program
from warploom.program.services import service_of
from warploom.sanitize.sites import Sites, sites_of
from warploom.sanitize.stream_order import Trigger
from warploom.sanitize.unchecked import Unchecked, unchecked_accesses
from warploom.simt.schedule_layout import ALL_BARRIERS

Words = npt.NDArray[np.int64]

TOOL_BITS = {"mem": words.MEM, "race": words.RACE, "sync": words.SYNC, "init": words.INIT}

POOL_WORDS = 1 << 29
"""Words of the pool (`detector.pool`); pages that are not used take no memory."""

LOCATION_CAPACITY = 1 << 20
"""Number of locations of releases."""

CACHE_WORDS = 8
LARGE_PAGE = 2 << 20
"""Bytes of a large page of the host."""

MOST_KERNEL_ALLOCATIONS = 1 << 16
"""Number of allocations that the threads of a launch can have at one time."""

_NO_RESERVE = {"linux": 0x4000, "darwin": 0x40}.get(sys.platform, 0)
"""MAP_NORESERVE, which Python names from 3.13 on."""


@dataclass(frozen=True)
class Detector:
    """Holds the detector's state of one launch; `allocations` are those that its table describes,
    and `unwritten` the bits of written bytes, by address, of those that are not written as a
    whole."""

    program: Program
    launch: Launch
    data: Words
    allocations: tuple[Allocation, ...]
    unwritten: Mapping[int, Words]
    required_events: Sanitizing
    allocation_capacity: int
    heap: list[Allocation] = field(default_factory=list[Allocation])
    """The allocations that the launch itself has made; some are freed."""

    @classmethod
    def of(
        cls,
        program: Program,
        launch: Launch,
        memory: DeviceMemory,
        tools: Iterable[str],
        unwritten: Mapping[int, Words],
        *,
        touched: bool = False,
        early: bool = False,
    ) -> Detector:
        """Returns the state at the start of a launch; `touched`: it is to record what the launch
        does with each byte of global memory; `early`: the previous launch may not have ended."""
        tools = set(tools)
        sites = sites_of(program)
        unchecked = unchecked_accesses(program, launch, memory, tools, unwritten, sites)
        if touched:
            unchecked = replace(unchecked, always=frozenset(), closed=frozenset())
        exempt = unchecked.always, unchecked.closed
        tracked = _Tracked(unwritten, *exempt, "race" in tools, touched, early)
        layout = _Layout(program, launch, memory, tracked)
        data = layout.filled()
        data[DetectorState.tools] = sum({TOOL_BITS[tool] for tool in tools})
        # `malloc` in kernels gives memory that is not written.
        some = bool(unwritten) or allocates(program)
        aligned = bool(data[DetectorState.aligned])
        required_events = _required_events(
            tools, program, sites, unchecked, unwritten=some, aligned=aligned
        )
        most = layout.allocation_capacity
        return cls(program, launch, data, memory.live(), unwritten, required_events, most)

    def triggered(self) -> Trigger | None:
        """Returns when the launch has let the next one of its stream begin; None if it has not."""
        bits = int(self.data[DetectorState.triggered])
        if bits & words.BEFORE_WAIT:
            return Trigger.BEFORE_WAIT
        return Trigger.AFTER_WAIT if bits else None

    def touched(self, *, early: bool = False) -> list[tuple[Allocation, Words]]:
        """Returns what the launch has done with each four bytes of the allocations
        (`layout.T_READ_AT` and so on), without allocations that it did not access. `early`: what
        threads have done that did not know of the end of the previous launch; else the rest."""
        word = TrackedAllocation.early if early else TrackedAllocation.touched
        found: list[tuple[Allocation, Words]] = []
        for number, allocation in enumerate(self.allocations):
            at = int(self.data[DetectorState.allocations_at]) + number * TrackedAllocation.WORDS
            start = int(self.data[at + word])
            tracked = self.data[start:][: touched_words(allocation) if start else 0]
            if tracked.any():
                found.append((allocation, tracked.copy()))
        return found

    def end(self) -> None:
        """Checks the blocks that are resident when a launch ends for threads that have skipped the
        last barrier."""
        data, state = self.data, DetectorState(self.data, 0)
        passed = any(flags & words.PASSED_BY_ALL for flags in sites_of(self.program).flags)
        if not (
            passed
            and self.required_events.synchronisation
            and data[DetectorState.tools] & words.SYNC
        ):
            return
        count, size = slots_of(self.launch), int(data[DetectorState.slot_words])
        slots = int(data[DetectorState.slots_at]) + size * np.arange(count)
        for slot in slots[data[slots + ResidentBlock.barrier_line] != 0].tolist():
            report_skips(
                state, ResidentBlock(state, slot), int(data[slot + ResidentBlock.block]) - 1
            )

    def write_back_written(self) -> None:
        """Writes back which bytes of the allocations are written now."""
        for number, allocation in enumerate(self.allocations):
            bits = self.unwritten.get(allocation.address)
            if bits is not None:
                at = int(self.data[DetectorState.allocations_at]) + number * TrackedAllocation.WORDS
                start = int(self.data[at + TrackedAllocation.written])
                bits[:] = self.data[start : start + len(bits)]


def written_words(size: int) -> int:
    """Returns the number of words for the bits of `size` bytes."""
    return -(-size // WRITTEN_BITS)


def allocates(program: Program) -> bool:
    """Returns whether a kernel may allocate memory."""
    return any(service_of(made) == "malloc" for made in program.instructions)


def touched_words(allocation: Allocation) -> int:
    """Returns the number of an allocation's words of touched bytes: one for each four bytes that
    are aligned."""
    return (allocation.address % 4 + allocation.size + 3) // 4


def _required_events(
    tools: set[str],
    program: Program,
    sites: Sites,
    unchecked: Unchecked,
    *,
    unwritten: bool,
    aligned: bool,
) -> Sanitizing:
    """Returns the events that some tools need; `unwritten`: there is global memory that was not
    written as a whole; `aligned`: warps count the barriers that they pass."""
    spaces = set[Space]()
    if "race" in tools or ("init" in tools and unwritten):
        spaces |= {Space.GLOBAL, Space.CONST}
    barriers = "sync" in tools and any(flags & words.MBARRIER for flags in sites.flags)
    if barriers or tools & {"race", "init"}:
        spaces.add(Space.SHARED)
    synchronisation = "race" in tools
    if "sync" in tools:
        # Uniform barriers of the block say nothing of `bar.warp.sync` and the lanes that it names.
        synchronisation |= not has_uniform_barriers(program) or any(
            made.operation.kind is OpKind.WARP_BARRIER for made in program.instructions
        )
    in_order = "race" in tools
    known = unchecked.always, unchecked.aligned, unchecked.written
    return Sanitizing(frozenset(spaces), synchronisation, in_order, aligned, *known)


@dataclass(frozen=True)
class _Tracked:
    """Says what to record of a launch: the bits of written bytes of some allocations, by address;
    the instructions that are exempt from checks and the allocations that are closed (`Unchecked`);
    whether to look for `races`, and to record what it `touched`, and what of that was `early`."""

    unwritten: Mapping[int, Words]
    exempt: frozenset[int]
    closed: frozenset[int]
    races: bool
    touched: bool
    early: bool


class _Layout:
    """Lays out the array of a launch: regions one after the other."""

    def __init__(
        self, program: Program, launch: Launch, memory: DeviceMemory, tracked: _Tracked
    ) -> None:
        self.program, self.launch, self.memory, self.tracked = program, launch, memory, tracked
        self.sites: Sites = sites_of(program)
        self.end = padded(DetectorState.WORDS)
        self.head: dict[int, int] = {}

    @property
    def allocation_capacity(self) -> int:
        """Returns the number of rows of the table of allocations, with those that the launch itself
        may make."""
        live = len(self.memory.live())
        return live + MOST_KERNEL_ALLOCATIONS * int(allocates(self.program))

    def filled(self) -> Words:
        """Returns the array, with its contents at the start of a launch."""
        live = self.memory.live()
        self._put_facts(len(live))
        self._put_regions()
        self._put_slots()
        rows = [self._allocation(allocation) for allocation in live]
        early = self._reserve(1 + BlockSetEntry.WORDS) if self.tracked.early else 0
        data = _zeros_on_demand(self.end, self._dense_ranges())
        for word, value in self.head.items():
            data[word] = value
        if early:
            data[DetectorState.earlier_launch] = early
            # A block set with one entry, for a block after the last: all of its interval 0 is
            # known.
            data[early : early + 3] = 1, self.launch.blocks + 1, 1
        self._write_sites(data)
        self._write_allocations(data, live, rows)
        return data

    def _put_facts(self, allocations: int) -> None:
        """Writes what the detector needs of the launch into the head: numbers of threads, agents
        and `allocations`, sizes of shared memory, and what it may leave out."""
        head, launch, program = self.head, self.launch, self.program
        threads = launch.warps_per_block * 32
        head[DetectorState.warps], head[DetectorState.threads] = launch.warps_per_block, threads
        head[DetectorState.block_threads] = launch.threads_per_block
        agents = count_agents(threads, tensor_memory=program.has_tensor_memory)
        head[DetectorState.agents] = agents * self.sites.agents
        head[DetectorState.clock_words] = threads + head[DetectorState.agents]
        exact = self.sites.exact or launch.cluster_blocks > 1 or self.tracked.early
        head[DetectorState.exact] = int(exact)
        head[DetectorState.lockstep] = int(not launch.schedule.independent)
        head[DetectorState.shared_bytes] = all_shared_bytes(program, launch)
        head[DetectorState.shared_stride] = shared_stride(program, launch)
        head[DetectorState.cluster_blocks] = launch.cluster_blocks
        head[DetectorState.locations] = LOCATION_CAPACITY
        alone = launch.cluster_blocks == 1 and not self.tracked.early
        plain = self.tracked.races and launch.schedule.independent and alone
        head[DetectorState.fast_path] = int(plain)
        aligned = plain and not exact and has_uniform_barriers(program)
        head[DetectorState.aligned] = int(aligned)
        head[DetectorState.allocations] = allocations

    def _put_regions(self) -> None:
        """Reserves the tables that all blocks share, and the pool, after which the state of blocks
        and allocations begins."""
        self._reserve_region(
            DetectorState.sites_at, len(self.program.instructions) * InstructionSite.WORDS
        )
        self._reserve_region(DetectorState.findings_at, words.MOST_FINDINGS * DetectorFinding.WORDS)
        self._reserve_region(
            DetectorState.allocations_at, self.allocation_capacity * TrackedAllocation.WORDS
        )
        self._reserve_region(DetectorState.locations_at, LOCATION_CAPACITY * ReleaseLocation.WORDS)
        self._reserve_region(DetectorState.pool_at, POOL_WORDS)
        self.head[DetectorState.pool_end] = self.end
        assert self.end < 1 << 31  # two indices of the pool share a word

    def _dense_ranges(self) -> tuple[tuple[int, int], ...]:
        """Returns the ranges of words that a search for races uses densely: the pool, and what
        follows the state of the blocks; none without such a search."""
        if not self.tracked.races:
            return ()
        slots = self.head[DetectorState.slots_at]
        end = slots + slots_of(self.launch) * self.head[DetectorState.slot_words]
        return (self.head[DetectorState.pool_at], slots), (end, self.end)

    def _write_sites(self, data: Words) -> None:
        """Writes the table of instructions: their flags and lines, and which are exempt."""
        size = InstructionSite.WORDS * len(self.program.instructions)
        sites = data[self.head[DetectorState.sites_at] :][:size]
        sites[InstructionSite.flags :: InstructionSite.WORDS] = self.sites.flags
        sites[InstructionSite.line :: InstructionSite.WORDS] = self.sites.lines
        sites[InstructionSite.exempt :: InstructionSite.WORDS][list(self.tracked.exempt)] = 1

    def _write_allocations(
        self, data: Words, live: Sequence[Allocation], rows: Sequence[list[int]]
    ) -> None:
        """Writes the table of allocations, a row for each, and which of their bytes are written."""
        for number, (allocation, row) in enumerate(zip(live, rows, strict=True)):
            at = self.head[DetectorState.allocations_at] + number * TrackedAllocation.WORDS
            data[at : at + len(row)] = row
            bits = self.tracked.unwritten.get(allocation.address)
            if bits is not None:
                data[row[TrackedAllocation.written] :][: len(bits)] = bits

    def _reserve_region(self, word: int, size: int) -> None:
        """Reserves a region at the end, and puts its index in a word of the head."""
        self.head[word] = self._reserve(size)

    def _reserve(self, size: int) -> int:
        """Reserves words at the end, in cache lines of their own; returns their index."""
        begin = self.end
        self.end += padded(size)
        return begin

    def _put_slots(self) -> None:
        """Reserves the state of the blocks that can be resident at once."""
        head = self.head
        threads, row = head[DetectorState.threads], head[DetectorState.clock_words]
        lines = -(-head[DetectorState.shared_bytes] // words.LINE_BYTES)
        cells = lines * words.LINE_BYTES // 4 * ShadowCell.WORDS
        barrier = BarrierShadow.WORDS + 2 * row
        at = padded(ResidentBlock.WORDS)
        for word, size in (
            (DetectorState.slot_warps, head[DetectorState.warps] * WarpKnowledge.WORDS),
            (DetectorState.slot_lanes, threads * ThreadKnowledge.WORDS),
            (DetectorState.slot_written, written_words(head[DetectorState.shared_bytes])),
            (DetectorState.slot_cells, cells),
            (DetectorState.slot_lines, lines * LineShadow.WORDS),
            (DetectorState.slot_barriers, (1 + ALL_BARRIERS) * barrier),
            (DetectorState.slot_clocks, threads * row + 2 * head[DetectorState.agents]),
        ):
            head[word] = at
            at += padded(size)
        if Needs.CLUSTER_BARRIER in self.program.needs:
            head[DetectorState.slot_cluster_barriers] = at
            at += padded(2 * (ClusterBarrierShadow.WORDS + row))
        if self.program.has_tensor_memory:
            head[DetectorState.slot_tensor] = at
            at += LANES * COLUMNS * ShadowCell.WORDS
            head[DetectorState.slot_after] = at
            at += padded(head[DetectorState.warps] * (1 + head[DetectorState.agents]))
        head[DetectorState.slot_barriers] += barrier  # one before them is for members of a warp
        head[DetectorState.slot_words] = at
        self._reserve_region(DetectorState.slots_at, slots_of(self.launch) * at)

    def _allocation(self, allocation: Allocation) -> list[int]:
        """Reserves the shadow memory of an allocation; returns its table row."""
        start, size = allocation.address, allocation.size
        lines = -(-size // words.LINE_BYTES) + 1  # it may begin in the midst of one
        cells = self._reserve(lines * words.LINE_BYTES // 4 * ShadowCell.WORDS)
        lines_at = self._reserve(lines * LineShadow.WORDS)
        written = 0
        if start in self.tracked.unwritten:
            written = self._reserve(written_words(size))
        stores = words.CLOSED * (start in self.tracked.closed)
        if size and self.memory.is_constant(start):
            stores = words.CONSTANT
        touched = self._reserve(touched_words(allocation)) if self.tracked.touched else 0
        early = self._reserve(touched_words(allocation)) if self.tracked.early else 0
        return [start, start + size, stores, cells, written, lines_at, touched, early]


def slots_of(launch: Launch) -> int:
    """Returns the number of blocks of a launch that can be resident at once."""
    return max(1, min(launch.schedule.resident_blocks, launch.blocks))


def padded(size: int) -> int:
    """Returns a number of words rounded up to whole cache lines."""
    return -(-size // CACHE_WORDS) * CACHE_WORDS


def _zeros_on_demand(length: int, dense: Sequence[tuple[int, int]]) -> Words:
    """Returns an array of zeros, of which only pages that are used take memory; `dense`: ranges of
    words that are used densely, so that large pages pay. The first range begins with a large
    page."""
    if sys.platform == "win32":
        return np.zeros(length, np.int64)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    # Large pages must lie inside as a whole.
    mapping = mmap.mmap(-1, 8 * length + 2 * LARGE_PAGE, flags=flags)
    if not dense or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.frombuffer(mapping, np.int64, length)
    place = np.frombuffer(mapping, np.uint8, 1).ctypes.data
    offset = -(place + 8 * dense[0][0]) % LARGE_PAGE
    for begin, end in dense:
        first = (offset + 8 * begin) // mmap.PAGESIZE * mmap.PAGESIZE
        last = min(offset + 8 * end + LARGE_PAGE, len(mapping))
        mapping.madvise(mmap.MADV_HUGEPAGE, first, last - first)
    return np.frombuffer(mapping, np.int64, length, offset)
