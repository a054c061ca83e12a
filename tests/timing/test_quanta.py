"""Quanta that run in one call of machine code end like quanta that run one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_accounts import TWO, balanced
from test_saved import same

import warploom as wl
from warploom.timing import replay
from warploom.timing.result import Timing

SPIN = """__global__ void spin(long long *out, long long clocks)
{
    unsigned first = clock();
    long long passed = 0;
    while (passed < clocks) passed = (unsigned)clock() - first;
    out[blockIdx.x] = passed;
}"""


def timed(text: str, grid: int, block: int, *args: Any) -> tuple[Timing, int]:
    """Returns the modelled time of a launch, and how many calls ran its quanta."""
    gpu = wl.Device("v100", record=True)
    module = gpu.compile(text)
    run = module[module.kernels[0]][grid, block](*args)
    calls: list[int] = []
    quanta = replay.Replay._quanta

    def counted(self: Any, *given: Any) -> bool:
        calls.append(0)
        return quanta(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay.Replay, "_quanta", counted)
        return run.time(timeline=4000, workers=1), len(calls)


@pytest.mark.parametrize(
    ("text", "grid", "block", "args"),
    [
        (SPIN, 3, 40, (np.zeros(3, np.int64), np.int64(3000))),
        (TWO, 64, 256, (np.zeros(1 << 14, np.float32), np.zeros(1, np.float32), 1 << 14)),
    ],
)
def test_several_quanta_are_as_single_ones(
    text: str, grid: int, block: int, args: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    several, _ = timed(text, grid, block, *args)
    monkeypatch.setattr(replay, "MOST_QUANTA", 1)
    single, _ = timed(text, grid, block, *args)
    same(several, single)
    balanced(several)


def test_a_long_spin_takes_few_calls() -> None:
    """Nothing happens between the quanta of a warp that only computes: each call runs as many as
    it may. A quantum is about the latency of L2, hundreds of cycles."""
    timing, calls = timed(SPIN, 1, 1, np.zeros(1, np.int64), np.int64(100_000))
    assert timing.cycles > 100_000
    assert calls < timing.cycles / 100 / replay.MOST_QUANTA + 10
