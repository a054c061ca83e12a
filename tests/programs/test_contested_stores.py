"""Several lanes store to one address: how many writes are made, and whose value lasts."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

SOURCE = """
extern "C" __global__ void contest(int* out, int* shared_out) {
    __shared__ int cell[4];
    out[threadIdx.x % 4] = threadIdx.x;
    cell[threadIdx.x % 4] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x < 4) shared_out[threadIdx.x] = cell[threadIdx.x];
}
"""


def contest(
    engine: str = "compiled", cc: str = "9.0", **options: object
) -> tuple[wl.Run, list[int]]:
    gpu = wl.Device(cc=cc, engine=engine, **options)  # type: ignore[arg-type]
    out, shared_out = gpu.zeros(4, np.int32), gpu.zeros(4, np.int32)
    run = gpu.compile(SOURCE)["contest"][1, 32](out, shared_out)
    return run, [*out.copy_to_host().tolist(), *shared_out.copy_to_host().tolist()]


@pytest.mark.parametrize(
    ("cc", "in_global", "in_shared"), [("1.1", 32, 8), ("2.0", 4, 4), ("7.0", 4, 4)]
)
def test_writes_by_compute_capability(cc: str, in_global: int, in_shared: int) -> None:
    """Four addresses: a write each; on 1.x one a half-warp in shared memory, one a lane in global.
    Then lanes 0 to 3 store the results."""
    counters = contest(cc=cc)[0].counters
    assert counters.global_store_writes == in_global + 4
    assert counters.shared_store_writes == in_shared


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_the_policy_says_which_lane_lasts(engine: str) -> None:
    assert contest(engine)[1] == [28, 29, 30, 31] * 2
    assert contest(engine, schedule="adversarial")[1] == [0, 1, 2, 3] * 2


def test_random_is_any_lane_of_an_address_and_follows_the_seed() -> None:
    seen: set[int] = set()
    for seed in range(12):
        values = contest(schedule="random", seed=seed)[1]
        assert values == contest("reference", schedule="random", seed=seed)[1]
        assert [value % 4 for value in values] == [0, 1, 2, 3] * 2
        seen.update(values)
    assert len(seen) > 16
