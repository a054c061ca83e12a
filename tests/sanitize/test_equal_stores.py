"""Lanes of a warp that store to the same places: `same-value` where the values are equal, though
they are not in memory yet when the detector compares them; `race` where they differ."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("type", ["unsigned char", "short", "int", "double", "int4"])
@pytest.mark.parametrize("places", [2, 8, 31])
def test_what_stores_to_the_same_places_are(type: str, places: int, engine: str) -> None:
    """Of 64 threads all but the first of a place store where another one has."""
    # Each aligned four bytes are told of by themselves: those of a root differ in both.
    values = {"int4": "make_int4(v, v, v, v)", "double": "sqrt(v + 0.3)"}
    value = values.get(type, f"({type})v")
    gpu = wl.Device(engine=engine, sanitize=("race",))
    kernel = gpu.compile(
        f"__global__ void put({type} *x, int step) {{"
        f"  int v = 1 + step * threadIdx.x; x[threadIdx.x % {places}] = {value}; }}"
    )["put"]
    for step, kind in ((0, "same-value"), (1, "race")):
        found = kernel[1, 64](gpu.zeros(64 * 16, np.uint8), np.int32(step)).findings
        assert [one.kind for one in found] == [kind]
