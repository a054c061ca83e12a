"""Lanes that part and wait for each other, in both models of control and under every policy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warploom as wl

SOURCE = Path(__file__).with_name("divergence.cu")
POLICIES = ("converge", "fair", "random", "adversarial")
STACK, INDEPENDENT = "gtx-1080", "v100"


@pytest.fixture(scope="module")
def modules():
    """The kernels on a device, by name, policy and engine; compiled once."""
    kept: dict[tuple[str, str, str], tuple[wl.Device, wl.Module]] = {}

    def get(name: str, policy: str = "converge", engine: str = "compiled"):
        key = (name, policy, engine)
        if key not in kept:
            gpu = wl.Device(name, schedule=policy, seed=7, engine=engine)
            kept[key] = gpu, gpu.load(SOURCE)
        return kept[key]

    return get


def lanes_of(error: wl.DeadlockError) -> list[tuple[int, ...]]:
    return [group.lanes for group in error.groups]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_lock_in_a_warp_deadlocks_before_7_0(modules, engine) -> None:
    gpu, module = modules(STACK, engine=engine)
    lock, count = gpu.zeros(1, np.int32), gpu.zeros(1, np.int32)
    with pytest.raises(wl.DeadlockError) as caught:
        module["spin_lock"][1, 32](lock, count)
    # Lane 0 has the lock and waits for the others behind the loop; they await the lock.
    assert sorted(lanes_of(caught.value)) == [(0,), tuple(range(1, 32))]
    assert "divergence.cu:5" in str(caught.value)
    assert count.copy_to_host()[0] == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_a_lock_in_a_warp_is_fine_from_7_0_on(modules, policy) -> None:
    gpu, module = modules(INDEPENDENT, policy)
    lock, count = gpu.zeros(1, np.int32), gpu.zeros(1, np.int32)
    module["spin_lock"][2, 64](lock, count)
    assert count.copy_to_host()[0] == 2 * 64


def test_lanes_of_one_warp_cannot_wait_for_each_other_before_7_0(modules) -> None:
    """One of the two orders runs the waiting lane first, and the other side never begins."""
    gpu, module = modules(STACK)
    outcomes = []
    for producer in (0, 1):
        out = gpu.zeros(1, np.int32)
        try:
            module["exchange"][1, 32](out, producer)
            outcomes.append(int(out.copy_to_host()[0]))
        except wl.DeadlockError:
            outcomes.append("deadlock")
    assert "deadlock" in outcomes


@pytest.mark.parametrize("producer", [0, 1])
@pytest.mark.parametrize("policy", POLICIES)
def test_lanes_of_one_warp_exchange_from_7_0_on(modules, policy, producer) -> None:
    gpu, module = modules(INDEPENDENT, policy)
    out = gpu.zeros(1, np.int32)
    module["exchange"][1, 32](out, producer)
    assert out.copy_to_host()[0] == 42


def warp_sum(made: tuple[wl.Device, wl.Module], kernel: str) -> int:
    gpu, module = made
    out = gpu.zeros(1, np.int32)
    module[kernel][1, 32](gpu.to_device(np.arange(32, dtype=np.int32)), out)
    return int(out.copy_to_host()[0])


def test_lockstep_code_is_right_before_7_0_and_can_go_wrong_above(modules) -> None:
    total = sum(range(32))
    assert warp_sum(modules(STACK), "sum_lockstep") == total
    assert warp_sum(modules(STACK, "adversarial"), "sum_lockstep") == total
    assert warp_sum(modules(INDEPENDENT, "adversarial"), "sum_lockstep") != total


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", [STACK, INDEPENDENT])
def test_synchronised_code_is_right_under_every_policy(modules, name, policy) -> None:
    assert warp_sum(modules(name, policy), "sum_synchronised") == sum(range(32))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_barrier_that_some_threads_skip_is_explained(modules, policy) -> None:
    gpu, module = modules(INDEPENDENT, policy)
    with pytest.raises(wl.DeadlockError) as caught:
        module["some_reach_the_barrier"][1, 64](gpu.zeros(2, np.int32))
    waiting = {"barrier": 0, "memory": 0}
    for group in caught.value.groups:
        kind = "barrier" if "barrier 0" in group.waits_for else "memory"
        waiting[kind] += len(group.lanes)
    assert waiting == {"barrier": 40, "memory": 24}


def test_blocks_that_are_not_resident_cannot_be_waited_for(modules) -> None:
    """A V100 holds 80 SMs x 2 blocks of 1024 threads; of more, the first wait for blocks that never
    begin."""
    gpu, module = modules(INDEPENDENT)
    chain, most = module["chain"], 80 * 2
    with pytest.raises(wl.DeadlockError, match="1 block has not started"):
        chain[most + 1, 1024](gpu.zeros(most + 1, np.int32))
    flags = gpu.zeros(most, np.int32)
    chain[most, 1024](flags, cooperative=True)
    assert flags.copy_to_host().all()
    with pytest.raises(wl.LaunchError) as refused:
        chain[most + 1, 1024](gpu.zeros(most + 1, np.int32), cooperative=True)
    assert (refused.value.requested, refused.value.limit) == (most + 1, most)


@pytest.mark.parametrize("policy", ["converge", "random", "adversarial"])
def test_looking_back_and_waiting_for_the_grid_end(modules, policy) -> None:
    gpu, module = modules(INDEPENDENT, policy)
    host = np.arange(1, 51, dtype=np.int32)
    sums, ready = gpu.zeros(50, np.int32), gpu.zeros(50, np.int32)
    module["look_back"][50, 32](gpu.to_device(host), sums, ready, cooperative=True)
    assert np.array_equal(sums.copy_to_host(), np.cumsum(host))
    arrived, out = gpu.zeros(1, np.int32), gpu.zeros(50, np.int32)
    module["grid_barrier"][50, 64](arrived, out, cooperative=True)
    assert set(out.copy_to_host()) == {50}


@pytest.mark.parametrize("policy", POLICIES)
def test_parts_of_a_warp_shuffle_among_themselves(modules, policy) -> None:
    gpu, module = modules(INDEPENDENT, policy)
    out = gpu.zeros(32, np.int32)
    module["halves"][1, 32](out)
    parts = [t ^ 1 if t < 16 else t ^ 2 for t in range(32)]
    # __shfl_down_sync by 16: the upper half reads beyond the warp and keeps its own.
    expected = [parts[t] + parts[t + 16 if t < 16 else t] for t in range(32)]
    assert out.copy_to_host().tolist() == expected


def test_a_kernel_that_merely_runs_long_is_let_run(modules) -> None:
    gpu, module = modules(INDEPENDENT)
    out = gpu.zeros(32, np.uint32)
    run = module["long_runs"][1, 32](out, 20_000)
    expected = np.arange(32, dtype=np.uint32)
    for i in range(40_000):
        step = expected * np.uint32(1664525) + np.uint32(1013904223)
        expected = np.where((np.arange(32) % 2 == 1) | (i < 20_000), step, expected)
    assert np.array_equal(out.copy_to_host(), expected)
    assert run.counters.divergent_branches >= 1
    with pytest.raises(wl.InstructionLimit):
        module["long_runs"][1, 32](out, 20_000, max_instructions=10_000)
