"""Computes the engine's parameters for one launch on one device, and lays out and initializes its
state.

The state is one row of words for each SM and one array for the memory system; `parameters` holds
the offsets of their parts. Copying these arrays saves a replay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import TimingSpec
from warploom.timing import layout as w
from warploom.timing.engine.caches import L1_WAYS, L2_WAYS
from warploom.timing.engine.coalescing import COALESCED_LOADS
from warploom.timing.engine.translation import TRANSLATIONS
from warploom.timing.policies import Policies
from warploom.timing.records import (
    ArrivalMessage,
    BlockSlot,
    CoalescedLoad,
    EngineParameters,
    Flight,
    FlightRequest,
    MemoryRequest,
    MemorySystem,
    PhaseState,
    QueueEntry,
    SchedulerState,
    SmState,
    TimelineEvent,
    Translation,
    WarpSlot,
)
from warploom.timing.work.costs import SHARED_UNITS, TICKS, UNITS, WorkCosts

Words = npt.NDArray[np.int64]

FLIGHTS = 2048
MESSAGES = 1024
"""Messages to other SMs of a cluster that an SM sends or receives in a quantum at most."""
MAX_COPIED_LINES = 512
"""Lines that copies of an SM request in a quantum at most."""
FOREIGN_LINES = 1 << 44
"""Lines with this number or a greater one belong to data of earlier launches."""
INSTRUCTIONS_PER_LINE = 8
"""Instructions in a line of the instruction cache: 16 bytes each from compute capability 7.0 on,
and taken as that before."""


class LaunchSizes(NamedTuple):
    """Holds what the engine needs to know of a launch: registers and operations of its code;
    whether any operation is a COPY; warps of a block; blocks that an SM holds; bytes of L1 that
    shared memory leaves; words of a warp in the record; SMs that get blocks; warps that wait for
    each other in a polling loop; phases of mbarriers of a block; whether the Tensor Memory
    Accelerator copies anything; and whether clusters have several blocks."""

    registers: int
    operations: int
    copies: bool
    warps_per_block: int
    block_slots: int
    l1_bytes: int
    warp_words: int
    sms: int
    poll_barrier_warps: int = 0
    phases: int = 0
    bulk: bool = False
    clusters: bool = False


@dataclass(frozen=True)
class EngineSetting:
    """Holds the parameters of a replay (`EngineParameters`) and sizes that follow from them."""

    parameters: EngineParameters
    memory_words: int
    dirty: float
    """The share of L2's lines that are dirty before the launch; 0: L2 begins empty."""

    @property
    def quantum(self) -> int:
        """Returns the length of a quantum in cycles: the SMs are simulated independently for as
        long, since no SM can observe another one within it."""
        return int(self.parameters.quantum)

    @property
    def sms(self) -> int:
        """Returns the number of SMs that are simulated."""
        return int(self.parameters.sms)


def setting_of(
    device: DeviceSpec, timing: TimingSpec, sizes: LaunchSizes, policies: Policies, events: int
) -> EngineSetting:
    """Returns the setting of a replay: the engine's parameters for a launch on a device, and the
    size of its state, whose layout (`at_*`) is in the parameters; `events` is the capacity of each
    SM's timeline. Raises WarploomError for a cache that cannot be (`CacheModel.sets`)."""
    params = EngineParameters(np.zeros(EngineParameters.WORDS, np.int64), 0)
    _set_device_parameters(params, timing)
    _set_cache_parameters(params, device, timing, sizes, policies)
    _set_policy_parameters(params, policies)
    params.slots = sizes.block_slots * sizes.warps_per_block
    params.block_slots = sizes.block_slots
    params.warps_per_block = sizes.warps_per_block
    params.registers = sizes.registers
    params.operations = sizes.operations
    params.copies = sizes.copies
    params.warp_words = sizes.warp_words
    params.sms = sizes.sms
    params.poll_barrier = sizes.poll_barrier_warps
    params.phases = sizes.phases
    params.messages = MESSAGES * (sizes.clusters and sizes.phases > 0)
    params.block_cycles = round(timing.block_cycles * device.sms)
    params.shared_units_mask = _shared_units_mask(WorkCosts(device, timing))
    params.reserved = 2 * sizes.block_slots
    params.events = events
    params.flights = FLIGHTS
    params.requests = timing.mshrs + 64 + MAX_COPIED_LINES * sizes.bulk
    params.pairs = 8 * timing.mshrs + 512
    params.sm_words = _lay_out_sm(params)
    return EngineSetting(params, _lay_out_memory(params), policies.l2.dirty)


def _set_device_parameters(params: EngineParameters, timing: TimingSpec) -> None:
    """Sets the parameters that are figures of the device's SMs, and all latencies, in cycles but
    for those named ticks."""
    params.schedulers = timing.schedulers
    params.issue_cycles = timing.issue_cycles
    params.dispatch_width = timing.dispatch_width
    params.active_warps = timing.active_warps
    params.unit_count = len(UNITS)
    params.latency_shared = timing.latency_shared
    params.latency_l1 = timing.latency_l1
    params.latency_l2 = timing.latency_l2
    params.latency_dram = timing.latency_dram
    params.latency_atomic = timing.latency_atomic
    params.latency_constant = timing.latency_constant
    params.constant_cycles = timing.constant_cycles
    params.latency_texture = timing.latency_texture
    params.latency_barrier = timing.latency_barrier
    params.latency_branch = timing.latency_branch
    params.latency_fetch = timing.latency_fetch
    params.latency_tma = timing.latency_tma
    params.latency_cluster = timing.latency_cluster
    params.fill_ticks = round(TICKS * timing.fill_cycles)
    params.tma_line_ticks = round(TICKS * timing.tma_line_cycles)
    params.shared_wavefront_cycles = timing.shared_wavefront_cycles
    params.l1_request_cycles = timing.l1_request_cycles
    params.l1_wavefront_cycles = timing.l1_wavefront_cycles
    params.l1_lines = timing.l1_lines
    params.l1_word_cycles = timing.l1_word_cycles
    params.lsu_queue = timing.lsu_queue
    params.mshrs = timing.mshrs
    params.block_launch_cycles = timing.block_launch_cycles
    params.blocks_in_turn = timing.blocks_in_turn
    params.fetch_line_bits = INSTRUCTIONS_PER_LINE.bit_length() - 1
    params.fetch_lines = max(1, timing.fetch_instructions // INSTRUCTIONS_PER_LINE)


def _set_policy_parameters(params: EngineParameters, policies: Policies) -> None:
    """Sets the parameters that select the scheduling policy (its index in `SCHEDULERS`, or
    USER_DEFINED) and the addresses of the user's functions, 0 for each that is not given."""
    scheduler = policies.scheduler
    functions = {
        EngineParameters.rank: None if isinstance(scheduler, str) else scheduler,
        EngineParameters.prefetch: policies.prefetcher,
        EngineParameters.l1_replacement: policies.l1.replacement,
        EngineParameters.l2_replacement: policies.l2.replacement,
        EngineParameters.l1_mapping: policies.l1.mapping,
        EngineParameters.l2_mapping: policies.l2.mapping,
        EngineParameters.dram_mapping: policies.dram,
    }
    for offset, function in functions.items():
        params.words[offset] = 0 if function is None else function.address
    params.policy = w.SCHEDULERS.index(scheduler) if isinstance(scheduler, str) else w.USER_DEFINED


def _set_cache_parameters(
    params: EngineParameters,
    device: DeviceSpec,
    timing: TimingSpec,
    sizes: LaunchSizes,
    policies: Policies,
) -> None:
    """Sets the parameters of L1, L2 and DRAM, with times in ticks, and the length of a quantum in
    cycles, which is shorter than the least latency between an SM and L2 or DRAM, and, if clusters
    use mbarriers, other SMs. Without an L1, the texture cache is used instead; without an L2,
    `l2_sets` is 0. `policies` may replace ways and sets; raises WarploomError for those that cannot
    be (`CacheModel.sets`)."""
    slices = timing.l2_slices
    has_l2 = timing.latency_l2 > 0
    first_answer = timing.latency_l2 if has_l2 else timing.latency_dram
    l1_bytes = sizes.l1_bytes if timing.latency_l1 else device.texture_cache_bytes
    per_slice = timing.l2_bytes_per_cycle / slices
    min_latency = min(first_answer, timing.latency_atomic)
    if sizes.clusters and sizes.phases:
        min_latency = min(min_latency, timing.latency_cluster)
    l1_ways = L1_WAYS if policies.l1.ways is None else policies.l1.ways
    l2_ways = L2_WAYS if policies.l2.ways is None else policies.l2.ways
    l2_bytes = device.l2_bytes if has_l2 else 0
    params.l1_ways = l1_ways
    params.l2_ways = l2_ways
    params.l1_sets = policies.l1.sets("L1", l1_bytes, l1_ways)
    params.l2_sets = policies.l2.sets("L2", l2_bytes, l2_ways)
    params.slices = slices
    params.sector_ticks = round(TICKS * 32 / per_slice) if has_l2 else 0
    params.partial_ticks = round(TICKS * timing.l2_part_cycles)
    params.coalescing_sms = timing.l2_coalescing_sms if has_l2 else 0
    # L2 with the lines of earlier launches: the TLBs have their pages as well.
    params.translation_sms = 0 if policies.l2.dirty > 0 else timing.translation_sms
    params.latency_translation = timing.latency_translation
    params.translation_ticks = round(TICKS * timing.translation_cycles)
    params.port_ticks = round(TICKS * 32 / timing.sm_bytes_per_cycle)
    params.bank_bits = timing.dram_banks.bit_length() - 1
    params.bank_ticks = round(TICKS * 32 * timing.dram_banks / timing.dram_bytes_per_cycle)
    params.turn_ticks = TICKS * timing.dram_turn_cycles
    params.request_ticks = round(TICKS * timing.request_cycles)
    params.atomic_ticks = round(TICKS * timing.atomic_cycles)
    params.atomic_sector_ticks = round(TICKS * timing.l2_atomic_cycles)
    params.atomic_port_ticks = round(TICKS * timing.atomic_sector_cycles)
    # A request is made a cycle before the quantum at the earliest, so its answer, `min_latency`
    # later, must not fall into the quantum itself.
    params.quantum = min_latency - 2


def _shared_units_mask(costs: WorkCosts) -> int:
    """Returns a bit mask, by index in UNITS, of the units that all schedulers of an SM share."""
    names = {*SHARED_UNITS, *(name for name in UNITS if costs.is_shared(name))}
    return sum(1 << UNITS.index(name) for name in names)


def _lay_out_sm(params: EngineParameters) -> int:
    """Writes the offsets of the parts of an SM's state to `params` (`at_*`), each part aligned to a
    cache line of the host; returns the size of the state in words. The sizes that it is computed
    from must be set in `params`."""
    end = w.LINE * -(-SmState.WORDS // w.LINE)
    for index, words in (
        (EngineParameters.at_warps, params.slots * WarpSlot.WORDS),
        (EngineParameters.at_schedulers, params.schedulers * SchedulerState.WORDS),
        (EngineParameters.at_units, params.schedulers * params.unit_count),
        (EngineParameters.at_queue, params.schedulers * params.lsu_queue * QueueEntry.WORDS),
        (EngineParameters.at_ready, params.slots * params.registers),
        (EngineParameters.at_mshrs, params.mshrs + 1),  # the last one: for copies, which need none
        (EngineParameters.at_l1, params.l1_sets * (1 + params.l1_ways * (1 + w.SECTORS))),
        (EngineParameters.at_flights, params.flights * Flight.WORDS),
        (EngineParameters.at_free, params.flights),
        (EngineParameters.at_pairs, params.pairs * FlightRequest.WORDS),
        (EngineParameters.at_requests, params.requests * MemoryRequest.WORDS),
        (EngineParameters.at_blocks, params.block_slots * BlockSlot.WORDS),
        (EngineParameters.at_reserved, params.reserved),
        (EngineParameters.at_fetch, params.schedulers * params.fetch_lines),
        (EngineParameters.at_events, params.events * TimelineEvent.WORDS),
        (EngineParameters.at_user, len(w.USER_FUNCTIONS) * w.USER_STRIDE),
        (
            EngineParameters.at_l1_user,
            params.l1_sets * w.SET_STRIDE if params.l1_replacement else 0,
        ),
        (EngineParameters.at_phases, params.block_slots * params.phases * PhaseState.WORDS),
        (EngineParameters.at_tma, params.flights * QueueEntry.WORDS),
        (EngineParameters.at_sent, params.messages * ArrivalMessage.WORDS),
        (EngineParameters.at_received, params.messages * ArrivalMessage.WORDS),
    ):
        params.words[index] = end
        end += w.LINE * -(-int(words) // w.LINE)
    return end


def _lay_out_memory(params: EngineParameters) -> int:
    """Writes the offsets of the parts of the memory system's state to `params` (`at_*`); returns
    its size in words. The sizes that it is computed from must be set in `params`."""
    end = MemorySystem.WORDS
    for index, words in (
        (EngineParameters.at_slices, params.slices),
        (EngineParameters.at_banks, 2 << params.bank_bits),
        (EngineParameters.at_ports, params.sms * (2 if params.request_ticks else 1)),
        (EngineParameters.at_order, params.quantum + 8 + params.sms * params.requests),
        (EngineParameters.at_l2, params.l2_sets * (1 + params.l2_ways * (1 + w.SECTORS))),
        (
            EngineParameters.at_l2_user,
            params.l2_sets * w.SET_STRIDE if params.l2_replacement else 0,
        ),
        (EngineParameters.at_dram_user, w.USER_STRIDE),
    ):
        params.words[index] = end
        end += int(words)
    if params.coalescing_sms:
        params.at_coalescers = end
        groups = -(-params.sms // params.coalescing_sms)
        end += groups * COALESCED_LOADS * CoalescedLoad.WORDS
    if params.translation_sms:
        params.at_translations = end
        groups = -(-params.sms // params.translation_sms)
        end += (groups * TRANSLATIONS + 1) * Translation.WORDS
    return end


def empty_sms(setting: EngineSetting) -> Words:
    """Returns the state of the SMs before the launch, shape (SMs, words), aligned to the host's
    cache lines: zeros, but for the list of free flights and, in schedulers, no warp that issued
    last (-1), and NEVER as the next cycle and the wake-up times."""
    params = setting.parameters
    size = setting.sms * int(params.sm_words)
    # Allocates a cache line more than needed, to align the first SM.
    raw = np.zeros(size + w.LINE, np.int64)
    first = -raw.ctypes.data // raw.itemsize % w.LINE
    sms = raw[first : first + size].reshape(setting.sms, -1)
    sms[:, params.at_free : params.at_free + params.flights] = np.arange(params.flights)
    sms[:, SmState.free_count] = params.flights
    for number in range(int(params.schedulers)):
        scheduler = int(params.at_schedulers) + number * SchedulerState.WORDS
        sms[:, scheduler + SchedulerState.wake] = sms[:, scheduler + SchedulerState.next] = w.NEVER
        # No warp has this offset, so none counts as the last that issued.
        sms[:, scheduler + SchedulerState.last] = -1
        sms[:, scheduler + SchedulerState.wakes : scheduler + SchedulerState.banks] = w.NEVER
    return sms


def initial_memory(setting: EngineSetting) -> Words:
    """Returns the state of the memory system before the launch: L2 empty or, if the setting's
    `dirty`, a share of its lines, is above 0, full of valid lines of other data (from FOREIGN_LINES
    on), of which that share is dirty, evenly distributed, and counted in `l2_dirty`."""
    memory, params = np.zeros(setting.memory_words, np.int64), setting.parameters
    if setting.dirty > 0:
        sets, ways = int(params.l2_sets), int(params.l2_ways)
        entries = np.arange(sets * ways, dtype=np.int64)
        # An entry is dirty where the running sum of the share passes a whole number: evenly
        # distributed along set + way, so over sets and ways. 1e-6 absorbs rounding of the share.
        dirty_counts = np.floor(setting.dirty * np.arange(sets + ways + 1) + 1e-6)
        written = (dirty_counts[1:] > dirty_counts[:-1])[entries // ways + entries % ways]
        # A line of its own for each entry: the stream went through all sets way by way.
        lines = FOREIGN_LINES + (ways - 1 - entries % ways) * sets + entries // ways
        tags = (lines + 1) << w.TAG_BITS | w.SECTOR_MASK
        first = int(params.at_l2) + sets
        memory[first : first + len(entries)] = tags | written * w.SECTOR_MASK << w.DIRTY_BITS
        memory[MemorySystem.l2_dirty] = w.LINE_BYTES * written.sum()
    return memory
