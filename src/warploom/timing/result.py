"""Reads the figures off a finished replay: modelled cycles, where they were spent, and what bounds
the kernel."""

from __future__ import annotations

import numpy as np

from warploom.core.lazy import cached_property
from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import TimingSpec
from warploom.observe.trace import Trace
from warploom.timing import layout as w
from warploom.timing.pipeline import Pipeline, pipeline_of
from warploom.timing.readings import Basis, CopyInFlight, LineTime, NamedCode, Roof, StateInterval
from warploom.timing.record.record import Record
from warploom.timing.record.visits import VisitCounter
from warploom.timing.records import (
    MemorySystem,
    SchedulerState,
    SmState,
    TimedOperation,
    TimelineEvent,
)
from warploom.timing.replay import ReplayOutcome
from warploom.timing.roofs import bound_of, roofs_of
from warploom.timing.sampling import extrapolate_cycles
from warploom.timing.traced import check_sm, with_time
from warploom.timing.work.costs import TICKS, UNITS
from warploom.timing.work.operations import MachineWork

PTX_BASIS = Basis("ptx")


class Timing:
    """Holds the modelled time of a launch. Every number is modelled, in cycles of the SMs' clock;
    all but `cycles`, `elapsed_cycles` and `seconds` refer to the blocks that were replayed
    (`sampled_blocks`)."""

    def __init__(
        self,
        program: NamedCode,
        device: DeviceSpec,
        timing: TimingSpec,
        scheduler: str,
        record: Record,
        work: MachineWork,
        outcome: ReplayOutcome,
        basis: Basis = PTX_BASIS,
    ) -> None:
        """Stores the arguments, and counts the replayed and predicted blocks. `program`: the code
        of the replay; `timing`: figures of the device for the model; `scheduler`: the name of the
        warp scheduler; `record`, `work` and `outcome`: the inputs and the result of the replay;
        `basis`: the kind of code that was replayed."""
        self.program, self.device, self.spec, self.scheduler = program, device, timing, scheduler
        self._record, self._work, self._outcome = record, work, outcome
        self._p = outcome.setting.parameters
        self.launch = record.launch
        """The launch that was timed."""
        self.basis = basis
        """The code that was replayed: PTX, or machine code."""
        self.caches = "warm" if outcome.warm else "cold"
        """The caches when the launch began: "cold" (empty), or "warm", as an equal launch left
        them."""
        self.blocks = record.launch.blocks
        """Blocks of the launch."""
        self.sampled_blocks = int(outcome.sms[:, SmState.blocks_done].sum())
        """Blocks that were replayed: the first ones."""
        self.predicted_blocks = max(0, self.sampled_blocks + record.predicted - record.blocks)
        """Replayed blocks that follow the paths of other blocks, as the record had no space for
        theirs."""

    @property
    def prefetched_lines(self) -> int:
        """Returns how many lines of 128 bytes the user's prefetcher requested."""
        return self._sum(SmState.prefetched)

    @property
    def sms(self) -> int:
        """Returns the number of SMs that had blocks."""
        return len(self._outcome.sms)

    # ---- time -------------------------------------------------------------------------------

    @cached_property
    def _extrapolated_cycles(self) -> tuple[int, int]:
        """Returns the cycles of all blocks, and the error of their extrapolation."""
        return extrapolate_cycles(self._outcome, self.sampled_blocks, self.blocks)

    @property
    def cycles(self) -> int:
        """Returns the cycles from the first block's launch to the end of the last block or the last
        answer of the memory, as Nsight Compute's `sm__cycles_active.max`; extrapolated where only a
        part of the blocks was replayed."""
        return self._extrapolated_cycles[0]

    @property
    def cycles_error(self) -> int:
        """Returns an estimate of how far off the extrapolation of `cycles` is, in cycles: 0 where
        all blocks were replayed."""
        return self._extrapolated_cycles[1]

    @property
    def sample_cycles(self) -> int:
        """Returns the cycles from the first block's launch to the end of the replayed blocks and of
        the memory's answers to them, without extrapolation."""
        return self._outcome.cycles

    @property
    def elapsed_cycles(self) -> int:
        """Returns the cycles from the begin to the end of the launch: `cycles`, and those in which
        no SM has a block (`launch_us`), as Nsight Compute's `sm__cycles_elapsed.max`."""
        return self.cycles + round(self.spec.launch_us * self.spec.clock_mhz)

    @property
    def seconds(self) -> float:
        """Returns `elapsed_cycles` in seconds, by the clock of the device."""
        return self.elapsed_cycles / (self.spec.clock_mhz * 1e6)

    @property
    def block_share(self) -> float:
        """Returns the share of the device's slots for blocks of this launch that one occupies."""
        return 1 / (self.device.sms * int(self._p.block_slots))

    def slots_used(self, parts: int) -> tuple[float, ...]:
        """Returns the share of the device's slots for blocks of this launch that are occupied, in
        the middle of each of `parts` equal parts of its time. Blocks that were not replayed end at
        the rate of the others."""
        ends = np.concatenate([[[0, 0]], self._outcome.ends])
        middles = (np.arange(parts) + 0.5) / parts * self.sample_cycles
        ended = np.interp(middles, ends[:, 0], ends[:, 1]) / max(1, self.sampled_blocks)
        left = np.ceil((1 - ended) * self.blocks - 1e-9)
        return tuple(np.minimum(1, left * self.block_share).tolist())

    # ---- issue ------------------------------------------------------------------------------

    def _sum(self, word: int) -> int:
        """Returns the counter at offset `word` of each SM's state, summed over all SMs."""
        return int(self._outcome.sms[:, word].sum())

    @cached_property
    def _schedulers(self) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """Returns the state words of all schedulers, shape (SMs * schedulers, words of a
        `SchedulerState`)."""
        start = int(self._p.at_schedulers)
        stop = start + int(self._p.schedulers) * SchedulerState.WORDS
        return self._outcome.sms[:, start:stop].reshape(-1, SchedulerState.WORDS)

    @property
    def instructions(self) -> int:
        """Returns the machine instructions that warps issued, in slots: a PTX instruction becomes
        none, one or several."""
        return self._sum(SmState.instructions)

    @property
    def issued(self) -> int:
        """Returns the scheduler cycles with an issue. `issued` and the sum of `stalls` make
        `scheduler_cycles`."""
        return int(self._schedulers[:, SchedulerState.issued].sum())

    @property
    def scheduler_cycles(self) -> int:
        """Returns the cycles of all schedulers of the SMs that had blocks."""
        return self.sample_cycles * len(self._schedulers)

    @cached_property
    def stalls(self) -> dict[str, int]:
        """Returns the scheduler cycles without an issue, by the stall reason that most of the warps
        had; `no_warp` where none was resident. All reasons are keys, with 0 if they did not
        occur."""
        by_reason = self._schedulers[
            :, SchedulerState.stalls : SchedulerState.stalls + w.REASON_COUNT
        ].sum(axis=0)
        named = dict(zip(w.REASONS, by_reason.tolist(), strict=True))
        return {name: count for name, count in named.items() if name not in _NOT_STALLED}

    @cached_property
    def warp_states(self) -> dict[str, int]:
        """Returns the cycles for which warps were resident, summed over all warps, by their state.
        All states are keys, with 0 if they did not occur."""
        return dict(zip(w.REASONS, self._outcome.states.sum(axis=0).tolist(), strict=True))

    @property
    def active_cycles(self) -> int:
        """Returns the cycles in which an SM had a warp, summed over all SMs."""
        return self._sum(SmState.active_cycles)

    @property
    def ipc(self) -> float:
        """Returns the machine instructions per cycle of an SM that had a warp."""
        return self.instructions / max(1, self.active_cycles)

    @property
    def issue_utilisation(self) -> float:
        """Returns the share of the schedulers' cycles with an issue, while their SM had a warp."""
        return self.issued / max(1, self.active_cycles * int(self._p.schedulers))

    @property
    def active_warps(self) -> float:
        """Returns the resident warps of an SM, on average while it had any."""
        return self._sum(SmState.active_warp_cycles) / max(1, self.active_cycles)

    @property
    def achieved_occupancy(self) -> float:
        """Returns `active_warps` divided by the most warps that an SM can hold."""
        return self.active_warps / self.device.max_warps_per_sm

    @property
    def eligible_warps(self) -> float:
        """Returns the warps of a scheduler that could issue, on average over the schedulers and the
        cycles in which their SM had a warp."""
        return self._sum(SmState.eligible) / max(1, self.active_cycles * int(self._p.schedulers))

    # ---- memory -----------------------------------------------------------------------------

    @property
    def l1_hit_rate(self) -> float:
        """Returns the share of the sectors looked up in L1 that were found; 0 where none was looked
        up."""
        hits, misses = self._sum(SmState.l1_hit_sectors), self._sum(SmState.l1_miss_sectors)
        return hits / max(1, hits + misses)

    @property
    def l2_hit_rate(self) -> float:
        """Returns the share of the sectors looked up in L2 that were found, also by stores and
        atomics; 0 where none was looked up."""
        hits, misses = (
            int(self._outcome.memory[word])
            for word in (MemorySystem.l2_hits, MemorySystem.l2_misses)
        )
        return hits / max(1, hits + misses)

    @property
    def l1_bytes(self) -> int:
        """Returns the bytes of the sectors that were looked up in L1."""
        return 32 * (self._sum(SmState.l1_hit_sectors) + self._sum(SmState.l1_miss_sectors))

    @property
    def l2_bytes(self) -> int:
        """Returns the bytes that the SMs exchanged with the memory system below them."""
        return int(self._outcome.memory[MemorySystem.l2_bytes])

    @property
    def dram_read_bytes(self) -> int:
        """Returns the bytes that L2 (or an SM, where there is no L2) read from DRAM."""
        return int(self._outcome.memory[MemorySystem.dram_read])

    @property
    def dram_written_bytes(self) -> int:
        """Returns the bytes that were written to DRAM: by L2 as it evicted lines, or by all stores
        where there is no L2."""
        return int(self._outcome.memory[MemorySystem.dram_written])

    @property
    def l2_dirty_bytes(self) -> int:
        """Returns the bytes that are in L2 at the end and were not yet written to DRAM."""
        return int(self._outcome.memory[MemorySystem.l2_dirty])

    @property
    def dram_bytes(self) -> int:
        """Returns the bytes that were read from DRAM and written to it."""
        return self.dram_read_bytes + self.dram_written_bytes

    # ---- what it means ----------------------------------------------------------------------

    @cached_property
    def unit_use(self) -> dict[str, float]:
        """Returns the share (0 to 1) of each unit's cycles that issues occupied, over the SMs that
        had blocks, by the unit's name (`work.costs.UNITS`); only units that were used."""
        ticks = self._outcome.issues * self._work.operations[:, TimedOperation.interval]
        ticks_by_unit = np.bincount(
            self._work.operations[:, TimedOperation.unit], weights=ticks, minlength=len(UNITS)
        )
        copies = [
            1 if self._p.shared_units_mask >> unit & 1 else int(self._p.schedulers)
            for unit in range(len(UNITS))
        ]
        available = TICKS * max(1, self.sample_cycles) * len(self._outcome.sms)
        return {
            name: float(ticks_by_unit[unit]) / (available * copies[unit])
            for unit, name in enumerate(UNITS)
            if ticks_by_unit[unit]
        }

    @property
    def lsu_use(self) -> tuple[float, float]:
        """Returns the shares, 0 to 1, of the load/store unit's cycles that L1 and that shared
        memory used while the sample ran, over the SMs that had blocks."""
        available = max(1, self.sample_cycles) * len(self._outcome.sms)
        return self._sum(SmState.l1_cycles) / available, self._sum(
            SmState.shared_cycles
        ) / available

    @cached_property
    def pipeline(self) -> Pipeline | None:
        """Returns how well asynchronous copies are hidden, or None for a launch that neither copies
        with the Tensor Memory Accelerator nor arrives at an mbarrier."""
        available = max(1, self.sample_cycles) * len(self._outcome.sms)
        busy = self._sum(SmState.tma_cycles) / available
        return pipeline_of(self._record, self._work, self._outcome.states, busy)

    @cached_property
    def roofs(self) -> tuple[Roof, ...]:
        """Returns the throughputs of the device and how much of each the kernel used, the most used
        first."""
        return roofs_of(self)

    @cached_property
    def bound(self) -> str:
        """Returns what bounds the kernel, as one sentence with the evidence."""
        return bound_of(self)

    def to_dict(self) -> dict[str, int | float | str]:
        """Returns the figures of the launch by name, flat: a row of a table. Cycles that warps
        spend in a state are `warp_state.` and its name."""
        names = (
            *("cycles", "cycles_error", "seconds", "ipc", "issue_utilisation"),
            *("achieved_occupancy", "active_warps", "eligible_warps", "l1_hit_rate"),
            *("l2_hit_rate", "l1_bytes", "l2_bytes", "dram_bytes", "instructions", "blocks"),
            *("sampled_blocks", "scheduler", "bound"),
        )
        row: dict[str, int | float | str] = {
            "kernel": self.program.name,
            "device": self.device.name,
        }
        row |= {name: getattr(self, name) for name in names}
        return row | {f"warp_state.{name}": count for name, count in self.warp_states.items()}

    def by_line(self) -> dict[str, LineTime]:
        """Returns the issued instructions and the cycles of the warps by source line, the most
        stalled line first; "" stands for machine code that belongs to no instruction of the PTX."""
        sums_by_line: dict[str, tuple[int, np.ndarray[tuple[int], np.dtype[np.int64]]]] = {}
        rows = zip(
            self._work.ptx_instructions.tolist(),
            self._outcome.issues.tolist(),
            self._outcome.states,
            strict=True,
        )
        for instruction, issues, states in rows:
            line = self.program.line(instruction) if instruction >= 0 else ""
            issued, sums = sums_by_line.get(line, (0, np.zeros(w.REASON_COUNT, np.int64)))
            sums_by_line[line] = issued + issues, sums + states
        lines = [
            LineTime(line, issues, dict(zip(w.REASONS, sums.tolist(), strict=True)))
            for line, (issues, sums) in sums_by_line.items()
        ]
        return {time.line: time for time in sorted(lines, key=lambda time: -time.stalled)}

    def timeline(self, sm: int = 0) -> list[StateInterval]:
        """Returns the states of every warp of an SM (number `sm` of `sms`) as intervals, in the
        order in which they were recorded, without copies in flight, up to the number of events
        (states and copies) that `timeline=` of `time` reserved; empty without that. Raises
        WarploomError for an SM that had no blocks."""
        events = self._events(sm)
        events = events[events[:, TimelineEvent.state] != w.IN_FLIGHT]
        instructions = self._work.ptx_instructions[events[:, TimelineEvent.op]].tolist()
        rows: list[list[int]] = events.tolist()
        states: list[StateInterval] = []
        visits: dict[int, VisitCounter] = {}
        for row, instruction in zip(rows, instructions, strict=True):
            slot, warp, state, since, until, operation = row
            if warp not in visits:
                visits[warp] = VisitCounter(self._record, self._work, warp)
            visit = visits[warp].nth(operation, selected=state == w.SELECTED)
            name = w.REASONS[state]
            states.append(StateInterval(slot, warp, name, since, until, instruction, visit))
        return states

    def copies(self, sm: int = 0) -> list[CopyInFlight]:
        """Returns the copies of the Tensor Memory Accelerator that an SM (number `sm` of `sms`)
        issued, in the order in which their ends were found, as far as the events (states and
        copies) that `timeline=` of `time` reserved hold them. Raises WarploomError for an SM that
        had no blocks."""
        events = self._events(sm)
        events = events[events[:, TimelineEvent.state] == w.IN_FLIGHT]
        instructions = self._work.ptx_instructions[events[:, TimelineEvent.op]]
        columns = [TimelineEvent.slot, TimelineEvent.warp, TimelineEvent.since, TimelineEvent.until]
        rows = np.column_stack([events[:, columns], instructions]).tolist()
        return [CopyInFlight(*row) for row in rows]

    def _events(self, sm: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """Returns the events of an SM's timeline, states of warps and copies, as a view, shape
        (events, words of a `TimelineEvent`). Raises WarploomError for an SM that had no blocks."""
        check_sm(self, sm)
        sm_words = self._outcome.sms[sm]
        start, count = int(self._p.at_events), int(sm_words[SmState.event_count])
        return sm_words[start : start + count * TimelineEvent.WORDS].reshape(
            -1, TimelineEvent.WORDS
        )

    def warp_cycles(self, sm: int = 0) -> int:
        """Returns the cycles for which warps were resident on an SM, summed over its warps, also
        those beyond the capacity of its timeline. Raises WarploomError for an SM that had no
        blocks."""
        check_sm(self, sm)
        return int(self._outcome.sms[sm, SmState.active_warp_cycles])

    def add_to(self, trace: Trace, sm: int = 0) -> Trace:
        """Returns a copy of a trace of this launch (`kernel[grid, block].trace`) with the states of
        an SM's warps, so that the view can show both. `timeline=` of `time` limits how many.

        Raises WarploomError for a trace of another launch, an SM without blocks, or a replay
        without a timeline.
        """
        return with_time(trace, self, sm)

    def __repr__(self) -> str:
        """Returns the cycles, the device and the scheduler as text, marked as modelled."""
        return f"Timing({self.cycles:,} cycles on {self.device.name}, {self.scheduler}; modelled)"


_NOT_STALLED = ("selected", "not_selected")
