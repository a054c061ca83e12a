"""Cooperative groups (CUDA C++ Programming Guide, "Cooperative Groups"), as NVIDIA's headers have
them, on devices of two generations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warploom as wl

SOURCE = Path(__file__).with_name("cooperative_groups.cu")
OPTIONS = ["--std=c++17"]
DEVICES = [("7.5", "compiled"), ("8.0", "reference")]


@pytest.fixture(scope="module", params=DEVICES, ids="-".join)
def module(request: pytest.FixtureRequest) -> wl.Module:
    cc, engine = request.param
    return wl.Device(cc=cc, engine=engine).load(SOURCE, OPTIONS)


def test_tiles_of_a_warp(module: wl.Module) -> None:
    n = 64
    x = np.arange(n, dtype=np.int32) % 13
    out = np.zeros(5 * n, np.int32)
    module["tiles"][1, n](x, out)
    total, inclusive, exclusive, moved, votes = out.reshape(5, n // 8, 8)
    tiles = x.reshape(-1, 8)
    sums = tiles.cumsum(1)
    assert (total == sums[:, -1:] + 1000 * np.arange(n // 8)[:, None]).all()
    assert (inclusive == sums).all()
    assert (exclusive == sums - tiles).all()
    at = np.arange(8)
    down = np.where(at + 3 < 8, at + 3, at)  # beyond the tile a thread reads itself
    assert (moved == tiles[:, down] + 100 * tiles[:, at ^ 1]).all()
    bits = 1 << at
    same = (tiles[:, :, None] % 3 == tiles[:, None, :] % 3) @ bits
    assert (votes == ((tiles & 1) @ bits)[:, None] | same << 8).all()


def test_threads_that_happen_to_be_together(module: wl.Module) -> None:
    n = 64
    out = np.zeros(4 * n, np.int32)
    module["coalesced"][1, n](out)
    placed, greatest, before, output = out.reshape(4, n)
    for warp in (range(32), range(32, 64)):
        members = [i for i in warp if i % 3 == 0]
        assert placed[members].tolist() == [r + 100 * len(members) for r in range(len(members))]
        assert set(greatest[members]) == {members[-1]}
        assert before[members].tolist() == [sum(members[:r]) for r in range(len(members))]
        assert set(output[members]) == {42 + n}


def test_partitions_by_label_and_by_predicate(module: wl.Module) -> None:
    n = 32
    out = np.zeros(2 * n, np.int32)
    module["partitions"][1, n](out)
    for found, label in zip(
        out.reshape(2, n), (lambda i: i % 5, lambda i: i % 4 == 1), strict=True
    ):
        groups = [[j for j in range(n) if label(j) == label(i)] for i in range(n)]
        assert found.tolist() == [100 * len(g) + g.index(i) for i, g in enumerate(groups)]


def test_tiles_of_several_warps(module: wl.Module) -> None:
    n = 128
    x = np.arange(n, dtype=np.int32)
    out = np.zeros(2 * n + 1, np.int32)
    module["many_warps"][1, n](x, out)
    sums = x.reshape(-1, 64).cumsum(1)
    assert (out[:n].reshape(-1, 64) == sums[:, -1:]).all()
    assert (out[n : 2 * n].reshape(-1, 64) == sums).all()
    assert out[2 * n] == 77


def test_a_copy_that_a_block_waits_for(module: wl.Module) -> None:
    x = np.arange(100, dtype=np.int32)
    out = np.zeros(100, np.int32)
    module["copy"][1, 64, None, 400](x, out, 100)
    assert (out == x[::-1]).all()


def test_the_whole_grid_meets(module: wl.Module) -> None:
    blocks, threads = 3, 32
    n = blocks * threads
    seen, out = np.zeros(n, np.int32), np.zeros(n, np.int32)
    module["whole_grid"][blocks, threads](seen, out, cooperative=True)
    assert set(out) == {(1 + 2 + 3) * sum(range(0, n, 37))}
    # Without a cooperative launch the headers stop the kernel: there is nothing to wait in.
    with pytest.raises(wl.DeviceTrap):
        module["whole_grid"][blocks, threads](seen, out)


def test_several_devices_are_refused() -> None:
    """Nothing is left of multi-device grids in NVIDIA's headers (CUDA 13)."""
    source = """
    #include <cooperative_groups.h>
    extern "C" __global__ void k() { cooperative_groups::this_multi_grid().sync(); }
    """
    with pytest.raises(wl.CompileError, match="this_multi_grid"):
        wl.Device("h100").compile(source, options=OPTIONS)
