"""Tests the modelled time of a launch that begins with the caches that an equal launch left."""

from __future__ import annotations

import numpy as np
import pytest
from chains import POINTERS

import warploom as wl
from warploom.devices.timing import find_timing
from warploom.host.run import Run
from warploom.timing.saved import ReplayState

COPY = """
extern "C" __global__ void copy(const float *a, float *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        b[i] = a[i];
}
"""
SKIPPED = f"""
extern "C" __global__ void skipped(float *x, int n)
{{
    float a = 1;
    if (n) {{
        a = x[0];
        {"a = a * a + x[1];" * 64}
    }}
    x[2 * n] = a;
}}
"""
MIB = 1 << 20


def copied(elements: int) -> Run:
    """Returns a recorded launch on an H100 that copies as many floats."""
    gpu = wl.Device("h100", record=True)
    a, b = gpu.zeros(elements, np.float32), gpu.zeros(elements, np.float32)
    return gpu.compile(COPY)["copy"][elements // 256, 256](a, b, elements)


def test_what_fits_into_l2_is_read_from_it() -> None:
    """2 MiB are read and 2 MiB written, of an L2 of 50 MB."""
    run = copied(2 * MIB // 4)
    cold, warm = run.time(), run.time(caches="warm")
    assert (cold.caches, warm.caches) == ("cold", "warm")
    assert cold.dram_read_bytes == 2 * MIB
    assert warm.dram_read_bytes == 0
    assert warm.cycles < cold.cycles


def test_what_does_not_fit_into_l2_is_read_again() -> None:
    """A stream of 256 MiB has evicted each of its lines when it begins again (LRU)."""
    run = copied(128 * MIB // 4)
    whole = run.time(caches="warm")
    assert whole.dram_read_bytes == 128 * MIB * whole.sampled_blocks // whole.blocks


def test_blocks_that_are_not_replayed_evict_lines_as_well() -> None:
    """Eight waves of blocks copy 9 MB, which fit into L2; all blocks copy 128 MiB."""
    run = copied(128 * MIB // 4)
    part = run.time(caches="warm", sample=8)
    assert part.sampled_blocks < part.blocks
    assert part.dram_read_bytes == 128 * MIB * part.sampled_blocks // part.blocks


def test_translated_pages_are_not_translated_again() -> None:
    """16 dependent loads from 16 pages of 2 MiB are in DRAM and translated each at first, and then
    in L2: each is faster by the latency of translation and by that of DRAM beyond L2's."""
    gpu = wl.Device("h100", record=True)
    a, out = gpu.zeros(64 * MIB // 4, np.uint32), gpu.zeros(1, np.uint32)
    run = gpu.compile(POINTERS)["chain"][1, 1](a, out, 4 * MIB // 4, 16)
    figures = find_timing(gpu.spec)
    faster = figures.latency_translation + figures.latency_dram - figures.latency_l2
    saved = run.time().cycles - run.time(caches="warm").cycles
    # The instructions are in their cache as well: a few lines, each some hundred cycles.
    assert 16 * faster <= saved <= 18 * faster


def test_the_target_of_a_jump_is_in_the_instruction_cache() -> None:
    """The jump over 64 products misses the instruction cache at first, in one warp."""
    gpu = wl.Device("h100", record=True)
    run = gpu.compile(SKIPPED)["skipped"][1, 32](gpu.zeros(1, np.float32), 0)
    cold, warm = (run.time(caches=caches, code="ptx") for caches in ("cold", "warm"))
    assert warm.warp_states["no_instruction"] < cold.warp_states["no_instruction"]
    assert warm.warp_states["branch_resolving"] > 0


def test_a_saved_replay_goes_on_with_the_same_caches_alone() -> None:
    run = copied(MIB // 4)
    begun = run.replay(caches="warm")
    begun.advance(500)
    state: ReplayState = begun.state
    again = run.replay(caches="warm", workers=1)
    again.restore(state)
    assert again.time().cycles == run.time(caches="warm").cycles
    with pytest.raises(wl.WarploomError, match="caches"):
        run.replay().restore(state)


def test_an_unknown_state_of_caches_is_refused() -> None:
    with pytest.raises(wl.WarploomError, match="cold"):
        copied(1024).time(caches="hot")
