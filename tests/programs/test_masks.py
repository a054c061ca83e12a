"""The active masks of textbook control flow, step by step, worked out by hand.

Each kernel marks its places with `mov.u32 %m, PLACE`; the expected masks are those of the lanes
whose condition holds. The side that falls through a branch runs first, where no policy chooses.
"""

from __future__ import annotations

from typing import Any

import marked
import numpy as np
import pytest
from marked import IF_BELOW_32, places

import warploom as wl

FULL = 0xFFFFFFFF
MODELS = ["gtx-1080", "v100"]
"""One program counter a warp, and one a thread."""


def traced(body: str, device: str, block: int = 32, **options: Any) -> wl.Trace:
    return marked.traced(body, wl.Device(device, **options), block)


NESTED = """
    setp.lt.u32 %p1, %l, 16;
    @!%p1 bra ELSE;
    setp.lt.u32 %p2, %l, 8;
    @!%p2 bra INNER_ELSE;
    mov.u32 %m, 1;
    bra INNER_END;
INNER_ELSE:
    mov.u32 %m, 2;
INNER_END:
    mov.u32 %m, 3;
    bra END;
ELSE:
    mov.u32 %m, 4;
END:
    mov.u32 %m, 5;
    ret;
"""

LOOP = """
    and.b32 %t1, %l, 3;
TOP:
    mov.u32 %m, 1;
    add.u32 %i, %i, 1;
    setp.le.u32 %p1, %i, %t1;
    @%p1 bra TOP;
    mov.u32 %m, 2;
    ret;
"""

BREAK = """
    and.b32 %t1, %l, 1;
TOP:
    mov.u32 %m, 1;
    setp.eq.u32 %p1, %i, %t1;
    @%p1 bra END;
    mov.u32 %m, 2;
    add.u32 %i, %i, 1;
    bra TOP;
END:
    mov.u32 %m, 3;
    ret;
"""

CONTINUE = """
TOP:
    mov.u32 %m, 1;
    setp.lt.u32 %p1, %l, 8;
    @%p1 bra NEXT;
    mov.u32 %m, 2;
NEXT:
    mov.u32 %m, 3;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p2, %i, 2;
    @%p2 bra TOP;
    ret;
"""

TWO_EXITS = """
    and.b32 %t1, %l, 1;
TOP:
    mov.u32 %m, 1;
    setp.lt.u32 %p1, %l, 8;
    @%p1 bra FIRST;
    mov.u32 %m, 2;
    setp.eq.u32 %p2, %i, %t1;
    @%p2 bra SECOND;
    add.u32 %i, %i, 1;
    bra TOP;
FIRST:
    mov.u32 %m, 3;
    bra END;
SECOND:
    mov.u32 %m, 4;
END:
    mov.u32 %m, 5;
    ret;
"""

EARLY_RETURN = """
    setp.ge.u32 %p1, %l, 24;
    @%p1 ret;
    mov.u32 %m, 1;
    setp.lt.u32 %p2, %l, 8;
    @!%p2 bra END;
    mov.u32 %m, 2;
    ret;
END:
    mov.u32 %m, 3;
    ret;
"""

SHORT_CIRCUIT = """
    setp.lt.u32 %p1, %l, 16;
    @!%p1 bra END;
    mov.u32 %m, 1;
    and.b32 %t1, %l, 1;
    setp.eq.u32 %p2, %t1, 0;
    @!%p2 bra END;
    mov.u32 %m, 2;
END:
    mov.u32 %m, 3;
    ret;
"""

INTO_A_LOOP = """
    setp.lt.u32 %p1, %l, 16;
    @%p1 bra SECOND;
FIRST:
    mov.u32 %m, 1;
    add.u32 %i, %i, 1;
    setp.ge.u32 %p2, %i, 3;
    @%p2 bra END;
SECOND:
    mov.u32 %m, 2;
    add.u32 %i, %i, 1;
    setp.ge.u32 %p3, %i, 3;
    @%p3 bra END;
    bra FIRST;
END:
    mov.u32 %m, 3;
    ret;
"""

LOW, HIGH = 0x0000FFFF, 0xFFFF0000
EVEN, ODD = 0x55555555, 0xAAAAAAAA

KERNELS = {
    "nested if and else": (NESTED, [(1, 0xFF), (2, 0xFF00), (3, LOW), (4, HIGH), (5, FULL)]),
    "loop of lane % 4 + 1 laps": (
        LOOP,
        [(1, FULL), (1, 0xEEEEEEEE), (1, 0xCCCCCCCC), (1, 0x88888888), (2, FULL)],
    ),
    "break": (BREAK, [(1, FULL), (2, ODD), (1, ODD), (3, FULL)]),
    "continue": (
        CONTINUE,
        [(1, FULL), (2, 0xFFFFFF00), (3, FULL), (1, FULL), (2, 0xFFFFFF00), (3, FULL)],
    ),
    # Lanes below 8 leave by the first exit, the others by the second, even ones a lap earlier: what
    # post-dominates the second branch is END, so that even and odd lanes do not meet at SECOND.
    "loop with two exits": (
        TWO_EXITS,
        [
            *((1, FULL), (2, FULL ^ 0xFF), (1, ODD ^ 0xAA), (2, ODD ^ 0xAA)),
            *((4, ODD ^ 0xAA), (4, EVEN ^ 0x55), (3, 0xFF), (5, FULL)),
        ],
    ),
    "early return": (EARLY_RETURN, [(1, 0x00FFFFFF), (2, 0xFF), (3, 0x00FFFF00)]),
    "short circuit": (SHORT_CIRCUIT, [(1, LOW), (2, LOW & EVEN), (3, FULL)]),
    # The loop has two entries, so its lanes meet only behind it.
    "goto into a loop": (
        INTO_A_LOOP,
        [*((1, HIGH), (2, HIGH), (1, HIGH)), *((2, LOW), (1, LOW), (2, LOW)), (3, FULL)],
    ),
}


@pytest.mark.parametrize("device", MODELS)
@pytest.mark.parametrize("name", KERNELS)
def test_masks_step_by_step(name: str, device: str) -> None:
    body, expected = KERNELS[name]
    assert places(traced(body, device)) == expected


@pytest.mark.parametrize("device", MODELS)
@pytest.mark.parametrize("name", KERNELS)
def test_the_compiled_machine_counts_the_steps_of_the_trace(name: str, device: str) -> None:
    body, _ = KERNELS[name]
    steps = traced(body, device).warp().steps
    counters = marked.kernel(body, wl.Device(device))[1, 32]().counters
    assert counters.warp_instructions == len(steps)
    assert counters.thread_instructions == sum(step.active.bit_count() for step in steps)


def test_an_adversary_takes_branches_first_before_7_0() -> None:
    """NESTED jumps to its else sides: they run first, the inner one inside the outer then side."""
    expected = [(4, HIGH), (2, 0xFF00), (1, 0xFF), (3, LOW), (5, FULL)]
    assert places(traced(NESTED, "gtx-1080", schedule="adversarial")) == expected
    # A side that is already where the others go has nothing to run, whoever chooses.
    body, expected = KERNELS["break"]
    assert places(traced(body, "gtx-1080", schedule="adversarial")) == expected


def test_a_seed_chooses_the_side_of_each_branch_before_7_0() -> None:
    """Two branches of two sides each: four orders, and 32 seeds show them all."""
    inner = [(1, 0xFF), (2, 0xFF00)]
    lower = [[*inner, (3, LOW)], [*reversed(inner), (3, LOW)]]
    upper = [(4, HIGH)]
    orders = [order for low in lower for order in (low + upper, upper + low)]
    seen = [places(traced(NESTED, "gtx-1080", schedule="random", seed=s)) for s in range(32)]
    assert {tuple(one[:-1]) for one in seen} == {tuple(order) for order in orders}
    assert {one[-1] for one in seen} == {(5, FULL)}
    assert seen[3] == places(traced(NESTED, "gtx-1080", schedule="random", seed=3))


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_which_side_stores_last_is_the_policys_before_7_0(engine: str) -> None:
    source = """
.version 8.0
.target sm_60
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .pred %p; .reg .u32 %l; .reg .u64 %out;
    ld.param.u64 %out, [out];
    mov.u32 %l, %tid.x;
    setp.lt.u32 %p, %l, 16;
    @%p bra TAKEN;
    st.global.u32 [%out], 1;
    bra END;
TAKEN:
    st.global.u32 [%out], 2;
END:
    ret;
}
"""

    def left(schedule: str, seed: int = 0) -> int:
        gpu = wl.Device("gtx-1080", engine=engine, schedule=schedule, seed=seed)
        out = gpu.zeros(1, np.int32)
        gpu.compile(source, "ptx")["k"][1, 32](out)
        return int(out.copy_to_host()[0])

    assert left("converge") == left("fair") == 2
    assert left("adversarial") == 1
    assert {left("random", seed) for seed in range(16)} == {1, 2}


def switch(ways: int) -> str:
    """A switch over lane % ways, of which each case has three instructions."""
    names = [f"CASE_{case}" for case in range(ways)]
    lines = [f"    and.b32 %t1, %l, {ways - 1};"]
    for case, name in enumerate(names):
        lines += [f"    setp.eq.u32 %p1, %t1, {case};", f"    @%p1 bra {name};"]
    for case, name in enumerate(names):
        lines += [f"{name}:", f"    mov.u32 %m, {case};", "    add.u32 %i, %i, 1;", "    bra END;"]
    return "\n".join([*lines, "END:", f"    mov.u32 %m, {ways};", "    ret;\n"])


@pytest.mark.parametrize("device", MODELS)
@pytest.mark.parametrize("ways", [1, 2, 32])
def test_a_switch_costs_as_many_times_as_it_has_ways(ways: int, device: str) -> None:
    trace = traced(switch(ways), device)
    passed = places(trace)
    of_case = [sum(1 << lane for lane in range(case, 32, ways)) for case in range(ways)]
    assert sorted(passed[:-1]) == list(enumerate(of_case))
    assert passed[-1] == (ways, FULL)
    steps = [trace.instructions[step.instruction] for step in trace.warp().steps]
    assert steps.count("add.u32 %i, %i, 1;") == ways
    assert steps.count("bra END;") == ways


@pytest.mark.parametrize("device", MODELS)
def test_an_if_between_warps_is_free(device: str) -> None:
    trace = traced(IF_BELOW_32, device, 64)
    assert places(trace, 0) == [(1, FULL), (3, FULL)]
    assert places(trace, 1) == [(2, FULL), (3, FULL)]
    counters = marked.kernel(IF_BELOW_32, wl.Device(device))[1, 64]().counters
    assert counters.branches == 2 + 1  # the first warp also jumps over the second side
    assert counters.divergent_branches == counters.reconvergences == 0


# ---- why lanes are off --------------------------------------------------------------------------


def off_at(trace: wl.Trace, place: int) -> list[dict[str, int]]:
    """The reasons, where not zero, at each passing of a marker by warp 0."""
    reasons = ("absent", "exited", "other_path", "gathering", "syncing", "at_barrier")
    found = []
    for step in trace.warp().steps:
        if trace.instructions[step.instruction] == f"mov.u32 %m, {place};":
            masks = {reason: getattr(step.off, reason) for reason in reasons}
            assert sum(masks.values()) + step.active == FULL  # each lane in one place
            found.append({reason: mask for reason, mask in masks.items() if mask})
    return found


@pytest.mark.parametrize("device", MODELS)
def test_the_sides_of_an_if_are_on_another_path_then_wait(device: str) -> None:
    trace = traced(NESTED, device)
    assert off_at(trace, 1) == [{"other_path": HIGH | 0xFF00}]
    assert off_at(trace, 2) == [{"other_path": HIGH, "gathering": 0xFF}]
    assert off_at(trace, 3) == [{"other_path": HIGH}]
    assert off_at(trace, 4) == [{"gathering": LOW}]
    assert off_at(trace, 5) == [{}]
    nested_paths = {places(trace)[i][0]: n for i, n in enumerate(_depths(trace))}
    assert nested_paths == {1: 2, 2: 2, 3: 1, 4: 1, 5: 0}


def _depths(trace: wl.Trace) -> list[int]:
    """How deep the reconvergence stack is at each marker."""
    marked = [s for s in trace.warp().steps if "%m," in trace.instructions[s.instruction]]
    return [len(step.stack) for step in marked]


@pytest.mark.parametrize("device", MODELS)
def test_lanes_that_returned_or_were_not_launched_are_distinguished(device: str) -> None:
    trace = traced(EARLY_RETURN, device, block=28)
    assert off_at(trace, 1) == [{"absent": 0xF0000000, "exited": 0x0F000000}]
    [end] = off_at(trace, 3)
    assert end == {"absent": 0xF0000000, "exited": 0x0F0000FF}


def test_lanes_wait_for_those_that_a_member_mask_names() -> None:
    trace = traced(
        """
    setp.lt.u32 %p1, %l, 16;
    @!%p1 bra ELSE;
    bar.warp.sync 0xffffffff;
    mov.u32 %m, 1;
    bra END;
ELSE:
    mov.u32 %m, 2;
    bar.warp.sync 0xffffffff;
    mov.u32 %m, 3;
END:
    ret;
""",
        "v100",
    )
    # One side is at its bar.warp.sync when the other runs to its own.
    assert off_at(trace, 2) == [{"syncing": LOW}]


def test_lanes_wait_at_a_barrier_of_the_block() -> None:
    trace = traced(
        """
    setp.lt.u32 %p1, %l, 16;
    @!%p1 bra ELSE;
    bar.sync 0;
    bra END;
ELSE:
    mov.u32 %m, 2;
    bar.sync 0;
END:
    ret;
""",
        "v100",
    )
    assert off_at(trace, 2) == [{"at_barrier": LOW}]


def test_a_trace_is_bounded_and_says_what_it_left_out() -> None:
    launcher = marked.kernel(IF_BELOW_32, wl.Device("v100"))[1, 96]
    whole = launcher.trace()
    assert [(w.block, w.warp) for w in whole.warps] == [(0, 0), (0, 1), (0, 2)]
    assert (whole.left_out.steps, whole.left_out.warps) == (0, 0)
    some = launcher.trace(limits=wl.TraceLimits(warps=2, steps=3))
    assert [len(some.warp(0, w).steps) for w in range(2)] == [3, 3]
    assert (some.left_out.steps, some.left_out.warps) == (whole.steps.count - 6, 1)
    with pytest.raises(KeyError, match="warp 2"):
        some.warp(0, 2)


def test_a_trace_of_a_faulty_kernel_ends_with_the_fault() -> None:
    source = "__global__ void k(int *out) { out[threadIdx.x] = 1; }"
    gpu = wl.Device("v100")
    out = gpu.zeros(31, np.int32)
    trace = gpu.compile(source)["k"][1, 32].trace(out)
    assert trace.error.startswith("Invalid __global__ write of size 4")
    assert trace.instructions[trace.warp().steps[-1].instruction].startswith("st.global")


def test_a_trace_survives_its_journey() -> None:
    source = "__global__ void k(int *out) { out[threadIdx.x] = 1; }"
    gpu = wl.Device("v100")
    out = gpu.zeros(32, np.int32)
    trace = gpu.compile(source)["k"][1, 32].trace(out)
    assert wl.Trace.from_bytes(trace.to_bytes()) == trace
    [access] = [a for step in trace.warp().steps for a in step.accesses if a.op == "store"]
    assert access.lanes == tuple(range(32))
    assert access.addresses == tuple(out.address + 4 * lane for lane in range(32))
