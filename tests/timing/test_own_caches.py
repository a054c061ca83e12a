"""Tests replacement policies, cache geometries and address mappings that users write in Python."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import OptionTypeError, WarploomError
from warploom.host.run import Run
from warploom.timing.layout import SET_WORDS

KERNEL = """
extern "C" __global__ void ring(const float *x, float *y, int lines, int turns) {
    float sum = 0;
    #pragma unroll 1
    for (int t = 0; t < turns; t++)
        sum += x[32 * (t % lines)];
    y[threadIdx.x] = sum;
}
extern "C" __global__ void copy(const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
}
"""
RING, LAPS = 8, 8
COPIED = 1 << 18


@wl.replacement_policy
def last_way(place, way, line, ways, now, words):  # type: ignore[no-untyped-def]
    """Fills the ways of a set, then replaces the last of them."""
    if way < 0:
        words[0] += 1
    return min(words[0] - 1, ways - 1)


@wl.replacement_policy
def least_recent(place, way, line, ways, now, words):  # type: ignore[no-untyped-def]
    """Replaces the least recently used line, as the model does."""
    words[31] += 1
    oldest = 0
    for other in range(ways):
        oldest = other if words[other] < words[oldest] else oldest
    words[oldest if way < 0 else way] = words[31]
    return oldest


@wl.replacement_policy
def beyond(place, way, line, ways, now, words):  # type: ignore[no-untyped-def]
    return words[SET_WORDS]


@wl.address_mapping
def all_to_first(line, places):  # type: ignore[no-untyped-def]
    return 0


@wl.address_mapping
def by_zero(line, places):  # type: ignore[no-untyped-def]
    return line // (places - places)


@cache
def ring() -> Run:
    """Runs a warp that loads a word of each of 8 lines, repeatedly, 64 in all."""
    gpu = wl.Device("v100", record=True)
    x, y = gpu.zeros(32 * RING, np.float32), gpu.zeros(32, np.float32)
    return gpu.compile(KERNEL)["ring"][1, 32](x, y, RING, RING * LAPS)


@cache
def copy() -> Run:
    gpu = wl.Device("v100", record=True)
    x, y = gpu.zeros(COPIED, np.float32), gpu.zeros(COPIED, np.float32)
    return gpu.compile(KERNEL)["copy"][COPIED // 256, 256](x, y)


def test_policy_that_retains_lines_hits_them() -> None:
    """Eight lines of one set of four ways: LRU evicts the line that is needed next. With three
    lines retained, these hit in every round but the first."""
    kept = wl.CacheModel(ways=4, mapping=all_to_first, replacement=last_way)
    assert ring().time(l1=kept).l1_hit_rate == 3 * (LAPS - 1) / (RING * LAPS)
    usual = wl.CacheModel(ways=4, mapping=all_to_first)
    assert ring().time(l1=usual).l1_hit_rate == 0


def test_more_ways_hold_lines_of_a_set() -> None:
    roomy = wl.CacheModel(ways=8, mapping=all_to_first)
    assert ring().time(l1=roomy).l1_hit_rate == (LAPS - 1) / LAPS


def test_size_of_cache_can_be_set() -> None:
    """A cache of one line cannot hold eight lines, one of eight can."""
    assert ring().time(l1=wl.CacheModel(bytes=128, ways=1)).l1_hit_rate == 0
    assert ring().time(l1=wl.CacheModel(bytes=128 * 8, ways=8)).l1_hit_rate == (LAPS - 1) / LAPS


def test_lru_as_user_function_gives_same_time() -> None:
    run = copy()
    usual, own = run.time(), run.time(l1=least_recent, l2=least_recent)
    assert (own.cycles, own.warp_states) == (usual.cycles, usual.warp_states)
    assert run.time(l2=least_recent, workers=2).cycles == usual.cycles


def test_policy_of_l2_is_called() -> None:
    """L2 has one set of four ways, and L1 one line. Each load requests a sector from L2, the store
    at the end four."""
    small = wl.CacheModel(bytes=128, ways=1)
    l2 = wl.CacheModel(bytes=128 * 4, ways=4, replacement=last_way)
    hits = 3 * (LAPS - 1)
    assert ring().time(l1=small, l2=l2).l2_hit_rate == hits / (RING * LAPS + 4)


def test_dram_mapping_to_one_bank_has_bandwidth_of_one() -> None:
    run = copy()
    spec, usual = run.time().spec, run.time().cycles
    one = run.time(dram=all_to_first).cycles
    read = 4 * COPIED
    assert one >= read * spec.dram_banks / spec.dram_bytes_per_cycle
    assert one > spec.dram_banks / 2 * usual


def test_exceptions_of_user_functions_are_reported() -> None:
    with pytest.raises(WarploomError, match="the replacement policy of L1 raised an exception"):
        ring().time(l1=beyond)
    with pytest.raises(WarploomError, match="the replacement policy of L2 raised an exception"):
        ring().time(l2=beyond)
    with pytest.raises(WarploomError, match="the mapping of DRAM raised an exception"):
        ring().time(dram=by_zero)
    with pytest.raises(WarploomError, match="the mapping of L2 raised an exception"):
        ring().time(l2=wl.CacheModel(mapping=by_zero))


def test_impossible_caches_are_refused() -> None:
    with pytest.raises(WarploomError, match="invalid L1 of 128 bytes with 4 ways"):
        ring().time(l1=wl.CacheModel(bytes=128, ways=4))
    for ways in (-1, 0, 17):
        with pytest.raises(WarploomError, match=f"with {ways} ways"):
            ring().time(l1=wl.CacheModel(ways=ways))
        with pytest.raises(WarploomError, match=f"with {ways} ways"):
            ring().time(l2=wl.CacheModel(ways=ways))
    with pytest.raises(OptionTypeError, match="l1 takes"):
        ring().time(l1=all_to_first)  # type: ignore[typeddict-item]
