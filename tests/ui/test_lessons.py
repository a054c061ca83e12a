"""What each lesson claims, held against the trace of its kernel. Figures are worked out by hand."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from warploom.observe.schema import DIVERGED
from warploom.observe.trace import Step, StepAccess, Trace
from warploom.timing.traced import COLUMNS
from warploom.ui.lessons import ORDER, find_lesson, lessons, requests_of
from warploom.ui.record import record

FULL = 0xFFFFFFFF
SECTORS, TRANSACTIONS, WAVEFRONTS, PASSES, WRITES = 1, 3, 9, 11, 12
BYTES_MOVED = 8


@cache
def traces(name: str) -> tuple[Trace, ...]:
    lesson = find_lesson(name)
    assert lesson is not None
    return tuple(record(request) for request in requests_of(lesson))


def steps(trace: Trace, block: int = 0, warp: int = 0) -> list[Step]:
    return trace.warp(block, warp).steps


def parts(trace: Trace, block: int, warp: int) -> int:
    """How often a warp's lanes part."""
    return sum(bool(step.marks & DIVERGED) for step in steps(trace, block, warp))


def accesses(trace: Trace, space: str, op: str) -> list[StepAccess]:
    every = (a for step in steps(trace) for a in step.accesses)
    return [a for a in every if (a.space, a.op) == (space, op)]


def loads(trace: Trace) -> list[StepAccess]:
    return accesses(trace, "global", "load")


def on_line(trace: Trace, text: str, warp: int = 0) -> list[Step]:
    lines = trace.sources[0].text.split("\n")
    found = []
    for step in steps(trace, 0, warp):
        line = trace.code[step.instruction].line
        if line and text in lines[line - 1]:
            found.append(step)
    return found


def issued_over_executed(trace: Trace) -> float:
    mine = steps(trace)
    return 32 * len(mine) / sum(s.active.bit_count() for s in mine)


DEADLOCKS = ("lock", "lock-warps")
"""The lessons whose first launch ends in a deadlock."""


def test_every_lesson_is_complete() -> None:
    assert [one.id for one in lessons()] == list(ORDER)
    for one in lessons():
        assert 2 <= len(one.captions) <= 8, one.id
        assert 0 <= one.question.answer < len(one.question.choices)
        for said in one.captions:
            assert len(said.text) < 300, (one.id, said.text)


@pytest.mark.parametrize("name", ORDER)
def test_every_lesson_runs(name: str) -> None:
    for number, trace in enumerate(traces(name)):
        assert trace.steps.count > 0
        assert bool(trace.error) == (name in DEADLOCKS and number == 0)


def test_saxpy_only_the_last_warp_parts() -> None:
    [trace] = traces("saxpy")
    diverged = [(w.block, w.warp) for w in trace.warps if parts(trace, w.block, w.warp)]
    assert diverged == [(3, 7)]
    lanes = [a.lanes for s in steps(trace, 3, 7) for a in s.accesses if a.space == "global"]
    assert set(lanes) == {tuple(range(8))}
    assert [a.cost[SECTORS] for a in loads(trace)] == [4, 4]


def test_lockstep_the_warp_makes_three_laps() -> None:
    [trace] = traces("lockstep")
    laps = [s.active for s in steps(trace) if _text(trace, s).startswith("mad")]
    assert laps == [0xEEEEEEEE, 0xCCCCCCCC, 0x88888888]


def _text(trace: Trace, step: Step) -> str:
    return trace.instructions[step.instruction]


def test_branch_costs_both_sides() -> None:
    [trace] = traces("branch")
    for text, lanes in (("value * 5 + 7", 0xAAAAAAAA), ("value * 3 + 1", 0x55555555)):
        inside = [s for s in on_line(trace, text) if _text(trace, s).startswith("mad")]
        assert [s.active for s in inside] == [lanes] * 8
    assert 1.6 < issued_over_executed(trace) < 2


def test_switch_runs_32_cases_of_one_lane_each() -> None:
    [trace] = traces("switch")
    alone = [s for s in steps(trace) if s.active.bit_count() == 1]
    lanes = {s.active for s in alone}
    assert len(lanes) == 32
    # Every case has the same loop of 8 laps; one case of all would be 1/32 of that.
    laps = [s for s in alone if "setp" in _text(trace, s) and s.accesses == []]
    assert len(laps) >= 32 * 8
    assert issued_over_executed(trace) > 16


def test_between_warps_nothing_parts() -> None:
    [trace] = traces("between-warps")
    assert [parts(trace, 0, warp) for warp in range(4)] == [0] * 4
    assert all(s.active == FULL for w in range(4) for s in steps(trace, 0, w))


def test_coalescing_neighbours_4_strides_32() -> None:
    newer, older = traces("coalescing")
    data = [a.cost[SECTORS] for a in loads(newer) if a.size == 4]
    assert data.count(4) == 2  # neighbors, and the places of the scattered
    assert 32 in data
    strided = [a for a in loads(older) if len({b - a.addresses[0] for b in a.addresses}) == 32
               and a.addresses[1] - a.addresses[0] == 32]  # fmt: skip
    # 32 lanes 32 bytes apart lie in 8 lines of 128 bytes: 1024 bytes for 128, as by sectors.
    assert [a.cost[TRANSACTIONS] for a in strided] == [8]
    moved = [[a.cost[BYTES_MOVED] for a in loads(trace)] for trace in (newer, older)]
    # In the order of the kernel: neighbors, strided, the places of the scattered, scattered.
    assert (moved[0][1], moved[1][1]) == (1024, 1024)
    assert 3 * moved[0][3] < moved[1][3]


def test_structures_a_quarter_is_used() -> None:
    [trace] = traces("structures")
    assert sorted(a.cost[SECTORS] for a in loads(trace)) == [4, 16]


def test_reduction_the_naive_tree_parts_every_warp() -> None:
    naive, contiguous = traces("reduction")
    assert all(parts(naive, 0, warp) > 0 for warp in range(4))
    # Rounds of 64 and 32: whole warps. Of 16, 8, 4, 2 and 1: warp 0 parts, and for the result.
    assert parts(contiguous, 0, 0) == 6
    assert [parts(contiguous, 0, warp) for warp in (1, 2, 3)] == [0, 0, 0]


def test_banks_32_passes_or_one() -> None:
    [trace] = traces("banks")
    assert sorted(a.cost[WAVEFRONTS] for a in accesses(trace, "shared", "load")) == [1, 1, 32]
    assert {a.cost[WAVEFRONTS] for a in accesses(trace, "shared", "store")} == {1}


def test_barrier_half_of_a_warp_waits() -> None:
    newer, older = traces("barrier")
    for trace in (newer, older):
        [half] = [s for s in steps(trace, 0, 1) if _text(trace, s).startswith("bar.sync")]
        assert half.active == 0x0000FFFF
    stores = [
        [(s.active, s.off.at_barrier) for s in steps(t, 0, 1) if _text(t, s).startswith("st.")]
        for t in (newer, older)
    ]
    assert stores == [[(0xFFFF0000, 0xFFFF), (0xFFFF, 0)], [(FULL, 0)]]


def test_lock_is_a_deadlock_on_one_and_ends_on_the_other() -> None:
    older, newer = traces("lock")
    assert older.error.startswith("deadlock")
    assert newer.error == ""
    [first, second, *_] = [a for s in steps(older) for a in s.accesses if a.op == "atomic"]
    assert (first.lanes, second.lanes) == ((0, 1, 2, 3), (1, 2, 3))


def test_lock_warps_lanes_of_different_warps_do_not_wait_for_each_other() -> None:
    """On one device, with one program counter per warp, the contenders alone differ."""
    one_warp, four_warps = traces("lock-warps")
    assert one_warp.error.startswith("deadlock")
    assert not four_warps.error
    contenders = [
        (warp, a.lanes)
        for warp in range(4)
        for s in steps(four_warps, 0, warp)
        for a in s.accesses
        if (a.op, four_warps.code[s.instruction].text[:9]) == ("atomic", "atom.glob")
    ]
    assert {lanes for _, lanes in contenders} == {(0,)}
    assert {warp for warp, _ in contenders} == {0, 1, 2, 3}


def test_warp_synchronous_lanes_are_diverged_above_7_0() -> None:
    older, newer = traces("warp-synchronous")
    stores = [len(a.lanes) for a in accesses(older, "shared", "store")]
    assert stores == [32] * 7
    assert {len(a.lanes) for a in accesses(newer, "shared", "store")} == {1}
    names = [r.name for r in older.registers]
    results = []
    for trace in (older, newer):
        [last] = [s for s in steps(trace) if _text(trace, s).startswith("st.global")]
        value = names[trace.code[last.instruction].reads[-1]]
        lane = last.executing.bit_length() - 1
        results.append(trace.register(value, last.time)[lane])
    assert results[0] == 32
    assert results[1] != 32


def test_race_31_additions_are_lost() -> None:
    [trace] = traces("race")
    [store] = accesses(trace, "global", "store")
    assert len(set(store.addresses)) == 1
    [atomic] = accesses(trace, "global", "atomic")
    assert atomic.cost[PASSES] == 32
    assert store.cost[WRITES] == 1


def test_shuffle_doubles_lane_0_in_five_rounds() -> None:
    [trace] = traces("shuffle")
    found = []
    for step in steps(trace):
        if _text(trace, step).startswith("shfl"):
            source = trace.registers[trace.code[step.instruction].reads[0]].name
            found.append(trace.register(source, step.time)[0])
    assert found == [1, 2, 4, 8, 16]


def test_occupancy_is_half() -> None:
    [trace] = traces("occupancy")
    assert 57 <= trace.occupancy.registers <= 64
    assert (trace.occupancy.active_warps, trace.occupancy.max_warps) == (32, 64)
    assert trace.occupancy.limiters == ("registers",)


def test_simd_every_lane_computes() -> None:
    [trace] = traces("simd")
    switched_off = [s for s in steps(trace) if _text(trace, s).startswith("mul.lo")]
    blended = [s for s in steps(trace) if _text(trace, s).startswith("selp")]
    assert [s.active for s in switched_off] == [0x00000FFF] * 4
    assert [s.active for s in blended] == [FULL] * 4


def test_streams_only_the_order_of_the_kernels_differs() -> None:
    """The same instructions and accesses; what is loaded differs."""
    first, second = traces("streams")
    assert [s.instruction for s in steps(first)] == [s.instruction for s in steps(second)]
    assert [a.cost for a in loads(first)] == [a.cost for a in loads(second)]
    assert [a.cost[SECTORS] for a in loads(first)] == [4]


def test_torch_compile_reads_each_element_once() -> None:
    """4 programs of 4 warps, which load x and bias and store the result: two floats a lane."""
    [trace] = traces("torch-compile")
    warps = [(one.block, one.warp) for one in trace.warps]
    touched = [a for w in warps for step in steps(trace, *w) for a in step.accesses]
    assert [a.op for a in touched].count("load") == 32
    assert [a.op for a in touched].count("store") == 16
    assert {a.cost[SECTORS] for a in touched} == {8}
    assert {trace.sources[c.file].name for c in trace.code} == {"torch-compile.py"}


def test_layout_warps_are_cut_along_x() -> None:
    """70 threads: 32, 32 and 6; thread (2, 3) has number 32."""
    [trace] = traces("layout")
    assert [one.existing.bit_count() for one in trace.warps] == [32, 32, 6]


def test_switching_sixteen_warps_take_hardly_longer_than_one() -> None:
    alone, together = traces("switching")
    assert alone.modelled is not None
    assert together.modelled is not None
    assert len(together.warps) == 16 * len(alone.warps)
    assert together.modelled.cycles < 1.25 * alone.modelled.cycles


def test_smt_the_second_warp_issues_while_the_first_waits() -> None:
    """Of two warps of one scheduler, the second executes its loop between two loads of the
    first."""
    [trace] = traces("smt")
    modelled = trace.modelled
    assert modelled is not None
    warp, state, since, until = (
        np.frombuffer(getattr(modelled, name), COLUMNS[name])
        for name in ("warp", "state", "since", "until")
    )
    waits = modelled.states.index("long_scoreboard")
    first = np.flatnonzero((warp == 0) & (state == waits))
    longest = first[np.argmax(until[first] - since[first])]
    issued = (warp == 1) & (state == modelled.states.index("selected"))
    inside = issued & (since >= since[longest]) & (until <= until[longest])
    assert inside.sum() >= 10


def test_poor_fit_a_chain_takes_many_times_as_long_as_loads_side_by_side() -> None:
    chain, together = traces("poor-fit")
    assert chain.modelled is not None
    assert together.modelled is not None
    assert len(loads(chain)) == 32
    assert len(loads(together)) == 1
    assert chain.modelled.cycles > 5 * together.modelled.cycles
