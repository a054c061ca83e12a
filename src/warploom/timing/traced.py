"""Adds the modelled states of an SM's warps, in cycles, to the project's own trace of a launch
(`Trace`), so that the view of the trace can show both."""

from __future__ import annotations

import msgspec
import numpy as np

from warploom.core.errors import WarploomError
from warploom.observe.schema import ModelledCopies, ModelledRoof, ModelledTime
from warploom.observe.trace import Trace
from warploom.timing import layout as w
from warploom.timing.readings import TimedLaunch

MOST_STATES = 1 << 15
"""The events of each SM's timeline that callers reserve for the view and for exports."""

COLUMNS = {
    "slot": "<u4",
    "warp": "<u4",
    "state": "<u1",
    "since": "<u8",
    "until": "<u8",
    "instruction": "<u4",
    "visit": "<u4",
}
"""The columns of the states, each with its NumPy type."""


def with_time(trace: Trace, timing: TimedLaunch, sm: int) -> Trace:
    """Returns a copy of a trace with the modelled time of an SM's warps (`Trace.modelled`), and its
    blocks on the SMs and in the slots in which they were replayed. Raises
    WarploomError for a trace of another launch (kernel, size of its code, grid, block, device), an
    SM that had no blocks, or a replay without a timeline."""
    launch, program = timing.launch, timing.program
    of_timing = program.name, program.size, launch.grid, launch.block, timing.device.name
    trace_launch = trace.launch.grid, trace.launch.block, trace.device.name
    of_trace = trace.launch.kernel, len(trace.code), *trace_launch
    if of_timing != of_trace:
        timed, traced = (
            f"{kernel} ({count} instructions) with grid {grid} and block {block} on {device}"
            for kernel, count, grid, block, device in (of_timing, of_trace)
        )
        raise WarploomError(f"this is the modelled time of {timed}, but the trace records {traced}")
    modelled = modelled_time(timing, sm)
    slots = _slots_of_blocks(timing)
    residency = tuple(
        msgspec.structs.replace(each, sm=slots[each.block][0], slot=slots[each.block][1])
        if each.block in slots
        else each
        for each in trace.residency
    )
    return msgspec.structs.replace(trace, modelled=modelled, residency=residency)


def _slots_of_blocks(timing: TimedLaunch) -> dict[int, tuple[int, int]]:
    """Returns the SM and the slot, among those of all replayed SMs, of each block that has states
    in a timeline."""
    warps = timing.launch.warps_per_block
    return {
        state.warp // warps: (sm, state.slot // warps * timing.sms + sm)
        for sm in range(timing.sms)
        for state in timing.timeline(sm)
    }


def modelled_time(timing: TimedLaunch, sm: int) -> ModelledTime:
    """Returns the modelled time of a launch for a trace: its figures, roofs and copies, and the
    recorded states of one SM's warps as columns, sorted by slot and start; `left_out` is the warps'
    cycles without a recorded state. Raises WarploomError for an SM that had no blocks, or a replay
    without a timeline."""
    check_sm(timing, sm)
    states = timing.timeline(sm)
    if not states:
        raise WarploomError(
            f"the states of SM {sm} were not recorded; run.time(timeline=N) records N states of "
            "each SM"
        )
    states.sort(key=lambda state: (state.slot, state.since))
    columns: dict[str, bytes] = {}
    for name, dtype in COLUMNS.items():
        values = [getattr(state, name) for state in states]
        numbers = map(w.REASONS.index, values) if name == "state" else values
        columns[name] = np.fromiter(numbers, dtype, len(states)).tobytes()
    return ModelledTime(
        scheduler=timing.scheduler,
        clock_mhz=timing.spec.clock_mhz,
        cycles=timing.cycles,
        blocks=timing.blocks,
        sampled_blocks=timing.sampled_blocks,
        sm=sm,
        sms=timing.sms,
        states=w.REASONS[: w.NO_WARP],
        count=len(states),
        **columns,
        roofs=tuple(ModelledRoof(*roof) for roof in timing.roofs),
        copies=_copies_of(timing, sm),
        left_out=timing.warp_cycles(sm) - sum(state.until - state.since for state in states),
    )


def _copies_of(timing: TimedLaunch, sm: int) -> ModelledCopies | None:
    """Returns the recorded copies of an SM as columns, in the order of their start, or None if
    there are none."""
    copies = sorted(timing.copies(sm), key=lambda copy: (copy.since, copy.until))
    if not copies:
        return None
    dtypes = {"warp": "<u4", "instruction": "<u4", "since": "<u8", "until": "<u8"}
    columns = (
        np.array([getattr(copy, name) for copy in copies], dtype).tobytes()
        for name, dtype in dtypes.items()
    )
    return ModelledCopies(len(copies), *columns)


def blocks_of(timing: TimedLaunch, sm: int) -> tuple[int, ...]:
    """Returns the blocks, by number in the grid, that have states in an SM's timeline, in the order
    of their first. Raises WarploomError for an SM that had no blocks."""
    check_sm(timing, sm)
    warps = timing.launch.warps_per_block
    return tuple(dict.fromkeys(state.warp // warps for state in timing.timeline(sm)))


def check_sm(timing: TimedLaunch, sm: int) -> None:
    """Raises WarploomError for an SM that had no blocks: one that is not among the first
    `timing.sms`."""
    if not 0 <= sm < timing.sms:
        had = "SM 0" if timing.sms == 1 else f"SMs 0 to {timing.sms - 1}"
        raise WarploomError(f"SM {sm} had no blocks: only {had} had blocks")
