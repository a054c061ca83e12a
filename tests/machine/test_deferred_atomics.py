"""Checks atomics on shared words, which compiled code defers and counts in batches: the counts,
effects and faults equal those of the reference machine, which counts each of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import some_now

import warploom as wl

WORDS = 600

SOURCE = """
__device__ unsigned step(unsigned *own, unsigned at, unsigned t, unsigned value)
{
    switch (KIND) {
    case 0: atomicAdd(&own[at], 1u); return 0;
    case 1: atomicAdd(&own[at], value); return 0;
    case 2: return atomicAdd(&own[at], 3u);
    case 3: return atomicCAS(&own[at], value, t);
    case 4: return __float_as_uint(atomicAdd((float *)&own[at], 0.1f));
    case 5: return atomicExch(&own[at], value);
    case 6: atomicMax(&own[at], 7u); return 0;
    case 7: return atomicInc(&own[at], 5u);
    default: atomicAdd((unsigned *)((char *)own + at), 1u); return 0;
    }
}

extern "C" __global__ void k(unsigned *out, const unsigned *places, int rounds)
{
    __shared__ unsigned own[600];
    unsigned t = threadIdx.x, seen = 0;
    for (int b = t; b < 600; b += blockDim.x) own[b] = b % 5;
    __syncthreads();
    for (int r = 0; r < rounds; r++) {
        unsigned at = places[r * blockDim.x + t];
        if (at < 100000) seen = seen * 31 + step(own, at, t, t % 3);
    }
    __syncthreads();
    for (int b = t; b < 600; b += blockDim.x) out[b] = own[b];
    out[600 + t] = seen;
}
"""
OFF = 100000


def run(engine: str, kind: int, places: npt.NDArray[np.uint32]) -> object:
    """Returns the memory and all counters after a launch; of a fault, its location."""
    gpu = wl.Device("a100", engine=engine)
    out, rounds = gpu.zeros(WORDS + 64, np.uint32), len(places)
    module = gpu.compile(SOURCE.replace("KIND", str(kind)))
    try:
        made = module["k"][1, 64](out, gpu.to_device(places.ravel()), rounds)
    except wl.MemoryFault as fault:
        return fault.kind, fault.thread, fault.line, fault.size
    return out.copy_to_host().tolist(), dict(made.counters)


@st.composite
def rounds(draw: st.DrawFn) -> npt.NDArray[np.uint32]:
    """Draws the word that each thread accesses in each iteration: first in one range, until
    compiled code has stopped searching for patterns; then in other ranges, or anywhere."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    start = draw(st.sampled_from([0, 40, 96, 340, 344, 360]))
    width = draw(st.sampled_from([1, 30, 200, 256, 240]))
    made = [start + rng.integers(0, width, (60, 64)) % (WORDS - start)]
    for _ in range(draw(st.integers(1, 5))):
        start, width = int(rng.integers(0, WORDS)), int(rng.choice([3, 60, 256, WORDS]))
        some = (start + rng.integers(0, width, (int(rng.integers(1, 90)), 64))) % WORDS
        off = rng.random(some.shape) < rng.choice([0, 0, 0.01, 0.5])
        made.append(np.where(off, OFF, some))
    return np.concatenate(made).astype(np.uint32)


@pytest.mark.parametrize("kind", some_now(range(8), 3))
@settings(max_examples=4)
@given(places=rounds())
def test_both_machines_leave_and_count_the_same(kind: int, places: npt.NDArray[np.uint32]) -> None:
    assert run("compiled", kind, places) == run("reference", kind, places)


@pytest.mark.parametrize("wrong", [WORDS * 4, WORDS * 4 + 1, 6, WORDS * 4 + 4, 70000])
@pytest.mark.parametrize("start", [0, WORDS * 4 - 1024])
def test_faults_name_the_same_lane(wrong: int, start: int) -> None:
    """Accesses words of a window, also at the end of shared memory, and then one that is out of
    bounds or misaligned."""
    rng = np.random.default_rng(1)
    places = (start + 4 * rng.integers(0, 256, (100, 64))).astype(np.uint32)
    places[90, 41] = wrong
    found = run("compiled", 8, places)
    assert found == run("reference", 8, places)
    assert found[1] == (41, 0, 0)  # type: ignore[index]
