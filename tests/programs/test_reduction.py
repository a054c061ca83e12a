"""Two block reductions: one sum, and counters that show why the second way is worse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warploom as wl

SOURCE = Path(__file__).parents[2] / "examples" / "reduction.cu"
THREADS, BLOCKS = 256, 16
WARPS = THREADS // 32


@pytest.fixture(scope="module", params=["compiled", "reference"])
def runs(request: pytest.FixtureRequest) -> dict[str, tuple[float, wl.Run]]:
    """The sum and the run of each way."""
    gpu = wl.Device("v100", engine=request.param)
    module = gpu.load(SOURCE)
    host = np.random.default_rng(5).integers(-50, 50, THREADS * BLOCKS).astype(np.float32)
    x = gpu.to_device(host)
    found: dict[str, tuple[float, wl.Run]] = {}
    for name in ("reduce", "reduce_naive"):
        sums = gpu.zeros(BLOCKS, np.float32)
        run = module[name][BLOCKS, THREADS, None, 4 * THREADS](x, sums, len(host))
        assert np.array_equal(sums.copy_to_host(), host.reshape(BLOCKS, THREADS).sum(axis=1))
        found[name] = float(sums.copy_to_host().sum()), run
    return found


def test_both_ways_give_the_same_sum(runs) -> None:
    assert runs["reduce"][0] == runs["reduce_naive"][0]


def test_contiguous_lanes_diverge_only_below_a_warp(runs) -> None:
    counters = runs["reduce"][1].counters
    # Strides 128, 64, 32 part whole warps; 16, 8, 4, 2, 1 and the last `t == 0` part one warp.
    assert counters.divergent_branches == BLOCKS * 6
    assert counters.barriers == BLOCKS * WARPS * 9


def test_spread_lanes_diverge_in_every_warp(runs) -> None:
    counters = runs["reduce_naive"][1].counters
    # Strides 1 to 16 leave 16, 8, 4, 2, 1 lanes of each of the 8 warps; 32, 64, 128 one lane of
    # 4, 2 and 1 warps; then `t == 0`, one warp.
    assert counters.divergent_branches == BLOCKS * (5 * WARPS + 4 + 2 + 1 + 1)


def test_the_counters_show_why_the_second_is_worse(runs) -> None:
    good, bad = (runs[name][1].counters for name in ("reduce", "reduce_naive"))
    assert bad.divergent_branches > 7 * good.divergent_branches
    # Warps that only a few lanes keep busy load for themselves: more requests for the same words.
    assert bad.shared_load_requests > 2 * good.shared_load_requests
    assert bad.shared_load_bytes_requested == good.shared_load_bytes_requested
