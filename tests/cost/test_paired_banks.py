"""Checks loads from shared memory from 5.0 on in which pairs of lanes share an address, which
return two registers per cycle.

The sources of the expected wavefronts are in `cost.paired_banks`.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from rule_costs import ALL, accesses, cost, strided

import warploom as wl
from warploom.cost.banks import shared_32_banks
from warploom.cost.paired_banks import count_return_cycles, shared_32_banks_read
from warploom.observe.examples import colliding

LANES = np.arange(32)


@pytest.mark.parametrize(
    ("offsets", "size", "wavefronts", "conflicts"),
    [
        pytest.param(LANES // 16 * 32, 16, 2, 0, id="a word for each half-warp (A10, H100)"),
        pytest.param(LANES % 16 * 32, 16, 8, 4, id="two of each quarter-warp meet (A10, H100)"),
        pytest.param(LANES * 0, 16, 2, 0, id="one address"),
        pytest.param(LANES // 2 * 16, 16, 2, 0, id="lanes n and n ^ 1: 8 times 16 bytes a half"),
        pytest.param(LANES % 2 * 16 + LANES // 4 * 32, 16, 2, 0, id="lanes n and n ^ 2"),
        pytest.param(LANES // 2 * 32, 16, 4, 2, id="pairs whose words meet in banks"),
        pytest.param(LANES * 16, 16, 4, 0, id="each its own: quarter-warps"),
        pytest.param(LANES // 16 * 8, 8, 1, 0, id="8 bytes, two addresses"),
        pytest.param(LANES * 8, 8, 2, 0, id="8 bytes, each its own: half-warps"),
        pytest.param(LANES * 0, 4, 1, 0, id="one register cannot come back faster"),
    ],
)
def test_wavefronts_of_lanes_in_pairs(
    offsets: np.ndarray, size: int, wavefronts: int, conflicts: int
) -> None:
    found = cost(shared_32_banks_read, 4096 + offsets, ALL, size)
    assert found["wavefronts"] == found["transactions"] == wavefronts
    assert found.get("bank_conflicts", 0) == conflicts


def test_one_different_pair_makes_the_warp_load_by_quarters() -> None:
    """One active lane with another address disables the pairing for the warp; an inactive one does
    not."""
    offsets = np.where(LANES == 7, 16, 0)
    assert cost(shared_32_banks_read, 4096 + offsets, ALL, 16)["wavefronts"] == 4
    assert cost(shared_32_banks_read, 4096 + offsets, ALL ^ 1 << 7, 16)["wavefronts"] == 2


@given(accesses())
def test_a_load_takes_at_most_what_a_store_does(case: tuple[list[int], int, int]) -> None:
    addresses, mask, size = case
    load, store = (
        cost(rule, addresses, mask, size) for rule in (shared_32_banks_read, shared_32_banks)
    )
    assert load["wavefronts"] <= store["wavefronts"]
    where = np.array(addresses, np.uint64)
    if count_return_cycles(where, mask, size) == max(1, size // 4):
        assert load == store
    assert {**load, **TAKEN} == {**store, **TAKEN}


TAKEN = dict.fromkeys(("wavefronts", "transactions", "bank_conflicts"), 0)


def test_lanes_of_a_half_warp_conflict_where_registers_return_in_pairs() -> None:
    """Lanes 0, 1 and 8, 9 load words of one bank. They would be in different quarter-warps."""
    addresses = tuple((LANES // 2 * 32).tolist())
    lanes = tuple(range(32))
    assert (0, 1, 8, 9) in colliding(addresses, lanes, 16, "shared_32_banks_read")
    assert colliding(tuple(strided(16, 0).tolist()), lanes, 16, "shared_32_banks_read") == ()


SOURCE = """
extern "C" __global__ void rows(float4 *out) {
    __shared__ float4 tile[32];
    tile[threadIdx.x] = make_float4(threadIdx.x, 0, 0, 0);
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x / 16 * 2];
}
"""


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("device", ["v100", "rtx-3090", "h100"])
def test_both_machines_count_the_half_warps(engine: str, device: str) -> None:
    gpu = wl.Device(device, engine=engine)
    out = gpu.zeros((32, 4), np.float32)
    run = gpu.compile(SOURCE)["rows"][1, 32](out)
    assert run.counters.shared_load_wavefronts == 2
