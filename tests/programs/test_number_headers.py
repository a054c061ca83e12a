"""Half, bfloat16 and 8-bit numbers, and matrices, by NVIDIA's headers; NumPy and ml_dtypes,
which round correctly, give what they must give."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import warploom as wl

SOURCE = Path(__file__).with_name("numbers.cu")
DEVICES = [("7.5", "compiled"), ("8.0", "reference"), ("9.0", "compiled")]
X = np.linspace(0.125, 300, 32, dtype=np.float32)


@pytest.fixture(scope="module", params=DEVICES, ids="-".join)
def module(request: pytest.FixtureRequest) -> wl.Module:
    cc, engine = request.param
    return wl.Device(cc=cc, engine=engine).load(SOURCE, ["--std=c++17"])


def test_halves_and_bfloats(module: wl.Module) -> None:
    out = np.zeros((6, 32), np.float32)
    module["halves"][1, 32](X, out)
    half = X.astype(np.float16)
    wide = half.astype(np.float64)  # twice a half, and 1 added, is exact
    assert (out[0] == (2 * wide + 1).astype(np.float16)).all()
    assert (out[1] == (1 - 2 * wide).astype(np.float16)).all()
    assert (out[2] == np.sqrt(wide).astype(np.float16)).all()
    assert (out[3] == np.maximum(half, np.float16(1))).all()
    brain = X.astype(ml_dtypes.bfloat16).astype(np.float32)
    for found, exact in ((out[4], brain * brain), (out[5], brain - 1)):
        assert (found == exact.astype(ml_dtypes.bfloat16).astype(np.float32)).all()


def test_eight_bit_numbers(module: wl.Module) -> None:
    out = np.zeros((2, 32), np.float32)
    module["bytes"][1, 32](X, out)
    for found, type in zip(out, (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2), strict=True):
        assert (found == X.astype(type).astype(np.float32)).all()


def test_a_product_of_matrices(module: wl.Module) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-8, 8, (16, 16)).astype(np.float16) for _ in range(2))
    c = np.zeros((16, 16), np.float32)
    module["product"][1, 32](a, b, c)
    assert (c == a.astype(np.float32) @ b.T.astype(np.float32) + 1).all()
