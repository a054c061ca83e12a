"""libcu++ (`<cuda/...>`, `<cuda/std/...>`), as NVIDIA's headers have it, on devices of several
generations: what its atomics, barriers and copies are made of differs among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warploom as wl

FOLDER = Path(__file__).parent
OPTIONS = ["--std=c++17"]
DEVICES = [("8.0", "reference"), ("9.0", "compiled")]
COPYING = [("7.5", "reference"), ("9.0", "compiled")]


def load(request: pytest.FixtureRequest, name: str) -> wl.Module:
    cc, engine = request.param
    return wl.Device(cc=cc, engine=engine).load(FOLDER / name, OPTIONS)


@pytest.fixture(scope="module", params=DEVICES, ids="-".join)
def module(request: pytest.FixtureRequest) -> wl.Module:
    return load(request, "cuda_std.cu")


@pytest.fixture(scope="module", params=COPYING, ids="-".join)
def copies(request: pytest.FixtureRequest) -> wl.Module:
    return load(request, "cuda_copies.cu")


def test_atomic_references(module: wl.Module) -> None:
    x, y, f = np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros(1, np.float32)
    module["references"][2, 64](x, y, f)
    assert (x[0], y[0], f[0]) == (3 * 128, 0, 64.0)  # the second block undoes the xor of the first


def test_atomics_in_shared_memory(module: wl.Module) -> None:
    out = np.zeros(5, np.int32)
    module["in_shared_memory"][1, 96](out)
    # 95 is not the 5 that was expected; 96 * 3 is 288, 32 in a byte.
    assert out.tolist() == [95, 32, 24, 95, 47]


def test_a_barrier_round_by_round(module: wl.Module) -> None:
    out = np.zeros(64, np.int32)
    module["barrier_rounds"][1, 64](out)
    assert out.tolist() == [4 * ((i + 1) % 64) + 6 for i in range(64)]


def test_waiting_for_a_time_only(module: wl.Module) -> None:
    out = np.full(32, 7, np.int32)
    module["time_out"][1, 32](out)
    assert set(out) == {0}


def test_a_semaphore_lets_four_in(module: wl.Module) -> None:
    out = np.zeros(12, np.int32)
    module["semaphore"][1, 12](out)
    assert set(out) == {1}


def test_a_latch_opens_once_all_came(module: wl.Module) -> None:
    out = np.zeros(64, np.int32)
    module["latch"][1, 64](out)
    assert set(out) == {sum(range(64))}


def test_a_block_waits_for_another(module: wl.Module) -> None:
    x = np.zeros(33, np.int32)
    module["wait_for_another_block"][2, 32](x)
    assert x.tolist() == [5, *range(5, 37)]


def test_values(module: wl.Module) -> None:
    out = np.zeros(32, np.float32)
    module["values"][1, 32](out)
    for i, found in enumerate(out):
        z = (i % 4 + 1 + 1j) ** 2
        rest = (i if i & 1 else -1) + 10 + i.bit_count() + 32 - (i + 1).bit_length()
        assert found == pytest.approx(z.real + abs(z) + rest, rel=1e-6)


def test_stages_of_a_pipeline(copies: wl.Module) -> None:
    x = np.arange(512, dtype=np.int32)
    out = np.zeros(128, np.int32)
    copies["staged"][1, 128](x, out, x.size)
    assert (out == np.roll(x.reshape(-1, 128).sum(0), -1)).all()


@pytest.mark.parametrize("kernel", ["with_barrier", "by_thread"])
def test_copies_that_are_awaited(copies: wl.Module, kernel: str) -> None:
    x = np.arange(256, dtype=np.int32)
    out = np.zeros(256, np.int32)
    copies[kernel][1, 256](x, out)
    assert (out == x[::-1]).all()


def test_copies_padded_with_zeros(copies: wl.Module) -> None:
    x = np.arange(1, 257, dtype=np.int32).reshape(64, 4)
    out = np.zeros((64, 4), np.int32)
    copies["primitives"][1, 64](x, out)
    expected = x.copy()
    expected[1::2, 2:] = 0
    assert (out == expected[::-1]).all()
