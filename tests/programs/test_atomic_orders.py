"""The order of a warp's atomics is undefined: a policy chooses it, in both machines alike."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

SOURCE = """
extern "C" __global__ void tickets(int *count, int *out) {
    out[threadIdx.x] = atomicAdd(count, 1);
}
extern "C" __global__ void some_in_shared(int *out) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    if (threadIdx.x % 3) out[threadIdx.x] = atomicAdd(&count, 1);
}
"""
# One program counter a warp, so that no policy takes the lanes apart.
DEVICE = "gtx-1080"


def tickets(schedule: str, seed: int, engine: str) -> list[int]:
    gpu = wl.Device(DEVICE, schedule=schedule, seed=seed, engine=engine)
    count, out = gpu.zeros(1, np.int32), gpu.zeros(32, np.int32)
    gpu.compile(SOURCE)["tickets"][1, 32](count, out)
    assert count.copy_to_host()[0] == 32
    return out.copy_to_host().tolist()


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_lanes_go_up_or_down(engine: str) -> None:
    assert tickets("converge", 0, engine) == list(range(32))
    assert tickets("adversarial", 0, engine) == list(range(31, -1, -1))


def test_a_seed_is_an_order_of_its_own() -> None:
    orders = {seed: tickets("random", seed, "compiled") for seed in range(1, 9)}
    assert all(sorted(order) == list(range(32)) for order in orders.values())
    assert len({tuple(order) for order in orders.values()}) > 4
    assert tickets("random", 3, "compiled") == orders[3]
    assert tickets("random", 3, "reference") == orders[3]


@pytest.mark.parametrize("schedule", ["adversarial", "random"])
def test_lanes_that_are_off_are_left_out(schedule: str) -> None:
    found = []
    for engine in ("compiled", "reference"):
        gpu = wl.Device(DEVICE, schedule=schedule, seed=2, engine=engine)
        out = gpu.to_device(np.full(32, -1, np.int32))
        gpu.compile(SOURCE)["some_in_shared"][1, 32](out)
        found.append(out.copy_to_host().tolist())
    assert found[0] == found[1]
    assert sorted(ticket for ticket in found[0] if ticket >= 0) == list(range(21))
    assert all((ticket >= 0) == (lane % 3 > 0) for lane, ticket in enumerate(found[0]))
