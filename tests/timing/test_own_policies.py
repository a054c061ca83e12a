"""Tests warp schedulers and prefetchers that users write in Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import WarploomError
from warploom.host.run import Run
from warploom.timing.layout import USER_WORDS

KERNEL = """
extern "C" __global__ void lines(const float *x, float *y, int rounds) {
    float sum = 0;
    #pragma unroll 1
    for (int r = 0; r < rounds; r++) {
        sum += x[32 * r + threadIdx.x % 32];
        sum = __fsqrt_rn(sum);
    }
    y[threadIdx.x] = sum;
}
"""


@wl.warp_scheduler
def oldest(slot, age, last, instruction, now, words):  # type: ignore[no-untyped-def]
    return age


@wl.prefetcher
def following(line, missed, instruction, slot, nth, words):  # type: ignore[no-untyped-def]
    if nth == 0:
        words[0] += 1
    return line + 1 + nth if nth < 2 else -1


@wl.prefetcher
def beyond(line, missed, instruction, slot, nth, words):  # type: ignore[no-untyped-def]
    return words[USER_WORDS]


def ran(block: int = 32, grid: int = 1) -> Run:
    gpu = wl.Device("v100", record=True)
    x = gpu.to_device(np.ones(32 * 64, np.float32))
    return gpu.compile(KERNEL)["lines"][grid, block](x, gpu.zeros(block, np.float32), 64)


def test_policy_in_python_equals_built_in_policy() -> None:
    run = ran(block=512, grid=3)
    own, known = run.time(scheduler=oldest), run.time(scheduler="oldest")
    assert (own.cycles, own.warp_states) == (known.cycles, known.warp_states)
    assert (own.scheduler, known.scheduler) == ("oldest", "oldest")


def test_prefetched_lines_hit_l1() -> None:
    """One warp loads 64 lines, one an iteration; lines 1 to 65 are prefetched. Without that each
    load waits for the memory."""
    run = ran()
    before, ahead = run.time(), run.time(prefetcher=following)
    assert (before.prefetched_lines, ahead.prefetched_lines) == (0, 65)
    assert before.cycles - ahead.cycles > 20 * before.spec.latency_l2
    two = run.time(prefetcher=following, workers=2)
    assert (two.cycles, two.prefetched_lines) == (ahead.cycles, 65)


def test_index_beyond_policy_memory_raises() -> None:
    message = "the prefetcher raised an exception, perhaps because of.* an index beyond"
    with pytest.raises(WarploomError, match=message):
        ran().time(prefetcher=beyond)


def test_function_that_numba_rejects_is_named() -> None:
    def three(a, b, c):  # type: ignore[no-untyped-def]
        return a

    with pytest.raises(WarploomError, match="Numba cannot compile three, which must take 6"):
        ran().time(scheduler=wl.warp_scheduler(three))


def test_example_affects_three_kernels() -> None:
    script = Path(__file__).parents[2] / "examples" / "policies.py"
    made = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, env=os.environ
    )
    rows = [
        [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]+", row)]
        for row in made.stdout.splitlines()
    ]
    assert len(rows) == 3
    for gto, youngest, ahead, lines in rows:
        assert lines > 0
        assert len({gto, youngest, ahead}) == 3
    assert rows[1][2] < 0.7 * rows[1][0], "a stride is found, and waits end"
    assert rows[2][2] > rows[2][0], "what is scattered is not, and the requests are in the way"
