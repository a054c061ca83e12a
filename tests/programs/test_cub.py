"""CUB's collectives of a block and of a warp, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warploom as wl

SOURCE = Path(__file__).with_name("cub_blocks.cu")
DEVICES = [("7.5", "reference"), ("9.0", "compiled")]
RNG = np.random.default_rng(11)


@pytest.fixture(scope="module", params=DEVICES, ids="-".join)
def module(request: pytest.FixtureRequest) -> wl.Module:
    cc, engine = request.param
    return wl.Device(cc=cc, engine=engine).load(SOURCE, ["--std=c++17"])


def test_a_scan_with_transposed_loads_and_stores(module: wl.Module) -> None:
    x = RNG.integers(-1000, 1000, 256, np.int32)
    out = np.zeros(256, np.int32)
    module["scan"][1, 64](x, out)
    assert (out == np.cumsum(x) - x).all()


def test_reductions_and_scans(module: wl.Module) -> None:
    x = RNG.permutation(96).astype(np.int32)
    out = np.zeros(101, np.int32)
    module["reduce"][1, 96](x, out)
    warps = x.reshape(3, 32)
    assert out[:2].tolist() == [x.sum(), x[:90].max()]
    assert (out[2:5] == warps.sum(1)).all()
    assert (out[5:] == (warps.cumsum(1) - warps).ravel()).all()


def test_a_radix_sort_of_pairs(module: wl.Module) -> None:
    keys = RNG.integers(0, 50, 128, np.uint32)
    values = np.arange(128, dtype=np.int32)
    order = np.argsort(keys, kind="stable")
    found, moved = keys.copy(), values.copy()
    module["sort"][1, 64](found, moved)
    assert (found == keys[order]).all()
    assert (moved == values[order]).all()


def test_a_merge_sort_of_a_warp(module: wl.Module) -> None:
    x = RNG.integers(-50, 50, 96, np.int32)
    found = x.copy()
    module["merge"][1, 32](found)
    assert (found == np.sort(x)).all()


def test_a_histogram(module: wl.Module) -> None:
    x = RNG.integers(0, 16, 256, np.uint8)
    out = np.zeros(16, np.uint32)
    module["count"][1, 64](x, out)
    assert (out == np.bincount(x, minlength=16)).all()
