"""Lanes at large distances, and warps whose addresses fall: races are found, and only those."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warploom as wl

SOURCE = r"""
extern "C" __global__ void scatter(const int *at, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[at[i]] = i;
}
extern "C" __global__ void scatter_pairs(const int *at, double2 *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[at[i]] = make_double2(i, -i);
}
extern "C" __global__ void update(const int *at, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[at[i]] += i;
  __syncthreads();
  out[at[i]] += 1;
}
extern "C" __global__ void exchange(const int *at, int *out) {
  int i = threadIdx.x;
  out[at[i]] = i;
  if (SYNCHRONISED) __syncthreads();
  out[at[i ^ 32]] += 1;
}
extern "C" __global__ void reversed(short *out) {
  int i = threadIdx.x;
  out[63 - i] = i;
  out[63 - i] += 1;
}
extern "C" __global__ void reversed_then(short *out) {
  int i = threadIdx.x;
  out[63 - i] = i;
  if (SYNCHRONISED) __syncthreads();
  out[i] += 1;
}
"""
THREADS = 64
ORDER = np.random.default_rng(3).permutation(512).astype(np.int32)


@pytest.fixture(scope="module", params=["compiled", "reference"])
def loaded(request: pytest.FixtureRequest) -> dict[bool, wl.Module]:
    """Returns the kernels without and with the barrier that two of them need."""
    gpu = wl.Device(engine=request.param)
    options = [f"-DSYNCHRONISED={number}" for number in range(2)]
    return {bool(n): gpu.compile(SOURCE, options=[options[n]]) for n in range(2)}


def races(launcher: Any, *args: Any) -> list[tuple[str, str, str]]:
    """Returns the severity, line and other line of what the race detector finds."""
    found = launcher(*args, sanitize=("race",)).findings
    return [(one.severity, one.line[-2:], one.other_line[-2:]) for one in found]


@pytest.mark.parametrize("name", ["scatter", "update"])
def test_lanes_that_have_their_words_to_themselves_are_clean(
    loaded: dict[bool, wl.Module], name: str
) -> None:
    out = np.zeros(512, np.int32)
    assert races(loaded[True][name][4, THREADS], ORDER[: 4 * THREADS], out) == []


def test_vectors_that_have_their_words_to_themselves_are_clean(
    loaded: dict[bool, wl.Module],
) -> None:
    out = np.zeros((512, 2))
    assert races(loaded[True]["scatter_pairs"][4, THREADS], ORDER[: 4 * THREADS], out) == []


@pytest.mark.parametrize("twin", [1, 40, 200])
def test_two_lanes_that_meet_in_one_word_race(loaded: dict[bool, wl.Module], twin: int) -> None:
    """Thread 0 writes what a lane of its warp, of its block or of another block writes, too."""
    at = ORDER[: 4 * THREADS].copy()
    at[twin] = at[0]
    found = races(loaded[True]["scatter"][4, THREADS], at, np.zeros(512, np.int32))
    assert found == [("error", ":4", ":4")]


def test_a_barrier_orders_distant_lanes(loaded: dict[bool, wl.Module]) -> None:
    """Each thread goes on with the word of the other warp's lane."""
    args = ORDER[:THREADS], np.zeros(512, np.int32)
    assert races(loaded[True]["exchange"][1, THREADS], *args) == []
    found = races(loaded[False]["exchange"][1, THREADS], *args)
    assert {severity for severity, *_ in found} == {"error"}
    assert {line for _, *both in found for line in both} == {"18", "20"}


def test_a_warp_that_goes_backwards_owns_its_elements(loaded: dict[bool, wl.Module]) -> None:
    assert races(loaded[True]["reversed"][1, THREADS], np.zeros(64, np.int16)) == []


def test_backwards_and_forwards_meet(loaded: dict[bool, wl.Module]) -> None:
    args = (np.zeros(64, np.int16),)
    assert races(loaded[True]["reversed_then"][1, THREADS], *args) == []
    found = races(loaded[False]["reversed_then"][1, THREADS], *args)
    assert found
    assert {severity for severity, *_ in found} == {"error"}
