"""Checks random programs of clusters, tensor copies and warp groups: both machines, every schedule,
one and two workers have equal results."""

from __future__ import annotations

import numpy as np
import pytest
from asynchronous_programs import (
    BLOCKS,
    CLUSTER,
    LEFT_WORDS,
    SIDE,
    STORED,
    THREADS,
    program,
)
from parts import some_now

import warploom as wl

pytestmark = pytest.mark.usefixtures("share_every_launch")

POLICIES = ("converge", "fair", "random", "adversarial")
STEPS = 8


def left(text: str, seed: int, engine: str, policy: str, workers: int) -> tuple[bytes, dict]:
    """Returns the memory and the counts after a program."""
    gpu = wl.Device("h100", engine=engine, schedule=policy, seed=seed, workers=workers)
    rng = np.random.default_rng(seed)
    data = gpu.to_device(rng.integers(-3, 4, (SIDE, SIDE)).astype(np.float16))
    kept = gpu.zeros((SIDE, 16 * STORED * BLOCKS), np.float16)
    out = gpu.zeros((BLOCKS * THREADS, LEFT_WORDS), np.uint32)
    maps = (gpu.tensor_map(data, box=(rows, 8)) for rows in (64, 16))
    run = gpu.compile(text, "ptx")["k"][BLOCKS, THREADS](
        *maps, gpu.tensor_map(kept, box=(64, 8)), out, cluster_dims=CLUSTER
    )
    found = out.copy_to_host()
    assert np.isfinite(found[:, :-1].copy().view(np.float32)).all()
    return found.tobytes() + kept.copy_to_host().tobytes(), dict(run.counters)


@pytest.mark.parametrize("seed", some_now(range(8), 8))
def test_all_agree(seed: int) -> None:
    text = program(seed, STEPS)
    wanted, counts = left(text, seed, "reference", "converge", 1)
    assert any(wanted)
    for policy in POLICIES:
        for workers in (1, 2):
            found, counted = left(text, seed, "compiled", policy, workers)
            assert found == wanted, (policy, workers)
            if policy == "converge":
                assert counted == counts


@pytest.mark.parametrize("steps", some_now([STEPS // 4, STEPS // 2], 2))
@pytest.mark.parametrize("seed", some_now(range(2), 2))
def test_the_reference_agrees_where_all_completes_late(seed: int, steps: int) -> None:
    text = program(seed, steps)
    wanted, counts = left(text, seed, "compiled", "adversarial", 1)
    assert left(text, seed, "reference", "adversarial", 1) == (wanted, counts)
