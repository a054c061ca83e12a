"""Computes the engine's parameters for one launch on one device, and lays out and initialises its
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
from warploom.timing.engine.schedulers import POLICIES, USER_DEFINED
from warploom.timing.policies import Policies
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
    """Holds the parameters of a replay (`timing.layout`) and sizes that follow from them."""

    parameters: Words
    memory_words: int
    dirty: float
    """The share of L2's lines that are dirty before the launch; 0: L2 begins empty."""

    @property
    def quantum(self) -> int:
        """Returns the cycles in which no SM can observe another one."""
        return int(self.parameters[w.QUANTUM])

    @property
    def sms(self) -> int:
        return int(self.parameters[w.SMS])


def setting_of(
    device: DeviceSpec, timing: TimingSpec, sizes: LaunchSizes, policies: Policies, events: int
) -> EngineSetting:
    """Returns the setting of a replay: the engine's parameters for a launch on a device, and the
    layout of its state that follows from them; `events` is the capacity of each SM's timeline."""
    params = np.zeros(w.PARAMETER_COUNT, np.int64)
    values = {
        **_device_parameters(timing),
        **_cache_parameters(device, timing, sizes, policies),
        **_policy_parameters(policies),
        w.SLOTS: sizes.block_slots * sizes.warps_per_block,
        w.BLOCK_SLOTS: sizes.block_slots,
        w.WARPS_PER_BLOCK: sizes.warps_per_block,
        w.REGISTERS: sizes.registers,
        w.OPERATIONS: sizes.operations,
        w.COPIES: sizes.copies,
        w.WARP_WORDS: sizes.warp_words,
        w.SMS: sizes.sms,
        w.POLL_BARRIER: sizes.poll_barrier_warps,
        w.PHASES: sizes.phases,
        w.MESSAGES: MESSAGES * (sizes.clusters and sizes.phases > 0),
        w.SHARED_UNITS_MASK: _shared_units_mask(WorkCosts(device, timing)),
        w.RESERVED: 2 * sizes.block_slots,
        w.EVENTS: events,
        w.FLIGHTS: FLIGHTS,
        w.REQUESTS: timing.mshrs + 64 + MAX_COPIED_LINES * sizes.bulk,
        w.PAIRS: 8 * timing.mshrs + 512,
    }
    for index, value in values.items():
        params[index] = value
    params[w.SM_WORDS] = _lay_out_sm(params)
    return EngineSetting(params, _lay_out_memory(params), policies.l2.dirty)


def _device_parameters(timing: TimingSpec) -> dict[int, int]:
    """Returns the parameters that are figures of the device."""
    return {
        w.SCHEDULERS: timing.schedulers,
        w.ISSUE_CYCLES: timing.issue_cycles,
        w.DISPATCH_WIDTH: timing.dispatch_width,
        w.ACTIVE_WARPS: timing.active_warps,
        w.UNIT_COUNT: len(UNITS),
        w.LATENCY_SHARED: timing.latency_shared,
        w.LATENCY_L1: timing.latency_l1,
        w.LATENCY_L2: timing.latency_l2,
        w.LATENCY_DRAM: timing.latency_dram,
        w.LATENCY_ATOMIC: timing.latency_atomic,
        w.LATENCY_CONSTANT: timing.latency_constant,
        w.CONSTANT_CYCLES: timing.constant_cycles,
        w.LATENCY_TEXTURE: timing.latency_texture,
        w.LATENCY_BARRIER: timing.latency_barrier,
        w.LATENCY_BRANCH: timing.latency_branch,
        w.LATENCY_FETCH: timing.latency_fetch,
        w.LATENCY_TMA: timing.latency_tma,
        w.LATENCY_CLUSTER: timing.latency_cluster,
        w.FILL_TICKS: round(TICKS * timing.fill_cycles),
        w.TMA_LINE_TICKS: round(TICKS * timing.tma_line_cycles),
        w.SHARED_WAVEFRONT_CYCLES: timing.shared_wavefront_cycles,
        w.L1_REQUEST_CYCLES: timing.l1_request_cycles,
        w.L1_WAVEFRONT_CYCLES: timing.l1_wavefront_cycles,
        w.L1_LINES: timing.l1_lines,
        w.L1_WORD_CYCLES: timing.l1_word_cycles,
        w.LSU_QUEUE: timing.lsu_queue,
        w.MSHRS: timing.mshrs,
        w.BLOCK_LAUNCH_CYCLES: timing.block_launch_cycles,
        w.FETCH_LINE_BITS: INSTRUCTIONS_PER_LINE.bit_length() - 1,
        w.FETCH_LINES: max(1, timing.fetch_instructions // INSTRUCTIONS_PER_LINE),
    }


def _policy_parameters(policies: Policies) -> dict[int, int]:
    """Returns the parameters that select a scheduling policy and the addresses of the user's
    functions, 0 for each that is not given."""
    scheduler = policies.scheduler
    functions = {
        w.RANK: None if isinstance(scheduler, str) else scheduler,
        w.PREFETCH: policies.prefetcher,
        w.L1_REPLACEMENT: policies.l1.replacement,
        w.L2_REPLACEMENT: policies.l2.replacement,
        w.L1_MAPPING: policies.l1.mapping,
        w.L2_MAPPING: policies.l2.mapping,
        w.DRAM_MAPPING: policies.dram,
    }
    addresses = {
        index: 0 if function is None else function.address for index, function in functions.items()
    }
    return addresses | {
        w.POLICY: POLICIES.index(scheduler) if isinstance(scheduler, str) else USER_DEFINED,
    }


def _cache_parameters(
    device: DeviceSpec, timing: TimingSpec, sizes: LaunchSizes, policies: Policies
) -> dict[int, int]:
    """Returns the parameters of L1, L2 and DRAM, with times in ticks, and the length of a quantum,
    which is shorter than the least latency between an SM and what it shares."""
    slices = timing.l2_slices
    has_l2 = timing.latency_l2 > 0
    first_answer = timing.latency_l2 if has_l2 else timing.latency_dram
    # Without an L1, texels go through a texture cache of its own, which is modelled in L1's place.
    l1_bytes = sizes.l1_bytes if timing.latency_l1 else device.texture_cache_bytes
    per_slice = timing.l2_bytes_per_cycle / slices
    min_latency = min(first_answer, timing.latency_atomic)
    if sizes.clusters and sizes.phases:
        min_latency = min(min_latency, timing.latency_cluster)
    l1_ways, l2_ways = policies.l1.ways or L1_WAYS, policies.l2.ways or L2_WAYS
    l2_bytes = device.l2_bytes if has_l2 else 0
    return {
        w.L1_WAYS: l1_ways,
        w.L2_WAYS: l2_ways,
        w.L1_SETS: policies.l1.sets("L1", l1_bytes, l1_ways),
        w.L2_SETS: policies.l2.sets("L2", l2_bytes, l2_ways),
        w.SLICES: slices,
        w.SECTOR_TICKS: round(TICKS * 32 / per_slice) if has_l2 else 0,
        w.PARTIAL_TICKS: round(TICKS * timing.l2_part_cycles),
        w.PORT_TICKS: round(TICKS * 32 / timing.sm_bytes_per_cycle),
        w.BANK_BITS: timing.dram_banks.bit_length() - 1,
        w.BANK_TICKS: round(TICKS * 32 * timing.dram_banks / timing.dram_bytes_per_cycle),
        w.TURN_TICKS: TICKS * timing.dram_turn_cycles,
        w.ATOMIC_TICKS: TICKS * timing.atomic_cycles,
        # A request is made a cycle before the quantum at the earliest, so its answer, `min_latency`
        # later, must not fall into the quantum itself.
        w.QUANTUM: min_latency - 2,
    }


def _shared_units_mask(costs: WorkCosts) -> int:
    """Returns a bit mask of the units that all schedulers of an SM share."""
    names = {*SHARED_UNITS, *(name for name in UNITS if costs.is_shared(name))}
    return sum(1 << UNITS.index(name) for name in names)


def _lay_out_sm(params: Words) -> int:
    """Writes the offsets of the parts of an SM's state to `params` (AT_*), each part aligned to a
    cache line of the host; returns the size of the state in words. The sizes that it is computed
    from must be set in `params`."""
    end = w.LINE * -(-w.HEAD_WORDS // w.LINE)
    for index, words in (
        (w.AT_WARPS, params[w.SLOTS] * w.V_WORDS),
        (w.AT_SCHEDULERS, params[w.SCHEDULERS] * w.S_WORDS),
        (w.AT_UNITS, params[w.SCHEDULERS] * params[w.UNIT_COUNT]),
        (w.AT_QUEUE, params[w.SCHEDULERS] * params[w.LSU_QUEUE] * w.Q_WORDS),
        (w.AT_READY, params[w.SLOTS] * params[w.REGISTERS]),
        (w.AT_MSHRS, params[w.MSHRS] + 1),  # the last one: for copies, which need none
        (w.AT_L1, params[w.L1_SETS] * (1 + params[w.L1_WAYS] * (1 + w.SECTORS))),
        (w.AT_FLIGHTS, params[w.FLIGHTS] * w.F_WORDS),
        (w.AT_FREE, params[w.FLIGHTS]),
        (w.AT_PAIRS, 2 * params[w.PAIRS]),
        (w.AT_REQUESTS, params[w.REQUESTS] * w.R_WORDS),
        (w.AT_BLOCKS, params[w.BLOCK_SLOTS] * w.B_WORDS),
        (w.AT_RESERVED, params[w.RESERVED]),
        (w.AT_FETCH, params[w.SCHEDULERS] * params[w.FETCH_LINES]),
        (w.AT_EVENTS, params[w.EVENTS] * w.EVENT_WORDS),
        (w.AT_USER, len(w.USER_FUNCTIONS) * w.USER_STRIDE),
        (w.AT_L1_USER, params[w.L1_SETS] * w.SET_STRIDE if params[w.L1_REPLACEMENT] else 0),
        (w.AT_PHASES, params[w.BLOCK_SLOTS] * params[w.PHASES] * w.PHASE_WORDS),
        (w.AT_TMA, params[w.FLIGHTS] * w.Q_WORDS),
        (w.AT_SENT, params[w.MESSAGES] * w.MESSAGE_WORDS),
        (w.AT_RECEIVED, params[w.MESSAGES] * w.MESSAGE_WORDS),
    ):
        params[index] = end
        end += w.LINE * -(-int(words) // w.LINE)
    return end


def _lay_out_memory(params: Words) -> int:
    """Writes the offsets of the parts of the memory system's state to `params` (AT_*); returns the
    size in words."""
    end = w.MEMORY_WORDS
    for index, words in (
        (w.AT_SLICES, params[w.SLICES]),
        (w.AT_BANKS, 2 << params[w.BANK_BITS]),
        (w.AT_PORTS, params[w.SMS]),
        (w.AT_ORDER, params[w.QUANTUM] + 8 + params[w.SMS] * params[w.REQUESTS]),
        (w.AT_L2, params[w.L2_SETS] * (1 + params[w.L2_WAYS] * (1 + w.SECTORS))),
        (w.AT_L2_USER, params[w.L2_SETS] * w.SET_STRIDE if params[w.L2_REPLACEMENT] else 0),
        (w.AT_DRAM_USER, w.USER_STRIDE),
    ):
        params[index] = end
        end += int(words)
    return end


def empty_sms(setting: EngineSetting) -> Words:
    """Returns the state of the SMs before the launch, shape (SMs, words), aligned to the host's
    cache lines: zeros, but for the list of free flights and the schedulers' cycles."""
    params = setting.parameters
    size = setting.sms * int(params[w.SM_WORDS])
    # Allocates a cache line more than needed, to align the first SM.
    raw = np.zeros(size + w.LINE, np.int64)
    first = -raw.ctypes.data // raw.itemsize % w.LINE
    sms = raw[first : first + size].reshape(setting.sms, -1)
    sms[:, params[w.AT_FREE] : params[w.AT_FREE] + params[w.FLIGHTS]] = np.arange(params[w.FLIGHTS])
    sms[:, w.FREE_COUNT] = params[w.FLIGHTS]
    for number in range(int(params[w.SCHEDULERS])):
        scheduler = int(params[w.AT_SCHEDULERS]) + number * w.S_WORDS
        sms[:, scheduler + w.S_WAKE] = sms[:, scheduler + w.S_NEXT] = w.NEVER
        # No warp has this offset, so none counts as the last that issued.
        sms[:, scheduler + w.S_LAST] = -1
        sms[:, scheduler + w.S_WAKES : scheduler + w.S_BANKS] = w.NEVER
    return sms


def initial_memory(setting: EngineSetting) -> Words:
    """Returns the state of the memory system before the launch: L2 empty or, if a share of it is
    dirty, full of the lines of a stream through other data, in which the dirty lines are evenly
    distributed."""
    memory, params = np.zeros(setting.memory_words, np.int64), setting.parameters
    if setting.dirty > 0:
        sets, ways = int(params[w.L2_SETS]), int(params[w.L2_WAYS])
        entries = np.arange(sets * ways, dtype=np.int64)
        # An entry is dirty where the running sum of the share passes a whole number: evenly
        # distributed along set + way, so over sets and ways. 1e-6 absorbs rounding of the share.
        dirty_counts = np.floor(setting.dirty * np.arange(sets + ways + 1) + 1e-6)
        written = (dirty_counts[1:] > dirty_counts[:-1])[entries // ways + entries % ways]
        # A line of its own for each entry: the stream went through all sets way by way.
        lines = FOREIGN_LINES + (ways - 1 - entries % ways) * sets + entries // ways
        tags = (lines + 1) << w.TAG_BITS | w.SECTOR_MASK
        first = int(params[w.AT_L2]) + sets
        memory[first : first + len(entries)] = tags | written * w.SECTOR_MASK << w.DIRTY_BITS
        memory[w.L2_DIRTY] = w.LINE_BYTES * written.sum()
    return memory
