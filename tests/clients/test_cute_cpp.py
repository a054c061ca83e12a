"""Products of matrices by CuTe's C++ and CUTLASS's pipelines (`programs/cute_products.cu`), which
NVRTC compiles with the headers of NVIDIA's wheel: right against NumPy under every schedule."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warploom as wl
from tests.clients.conftest import PROGRAMS
from warploom.frontends.cuda_cpp import compile_cuda

CCCL = Path(sys.prefix) / "cccl" / "nvidia" / "cu13" / "include"
"""The headers that CUTLASS 4.2 was written for, which `make test-clients` installs: those of the
newest wheel declare `std::tuple_size` in another way."""

M, N, K = 256, 128, 320
TILE_BYTES = 128 * 64 * 2
SHARED = {
    "by_warps": 2 * 3 * TILE_BYTES,
    "by_a_group": 2 * TILE_BYTES,
    "by_groups": 2 * 4 * TILE_BYTES + 2 * 4 * 8,
}


@cache
def compiled() -> str:
    """Return the PTX of the kernels; skip where headers are missing. It takes a minute."""
    wheel = importlib.util.find_spec("cutlass_library")
    if wheel is None or wheel.origin is None or not CCCL.exists():
        pytest.skip("nvidia-cutlass or its CCCL is not installed")
    folders = [Path(wheel.origin).parent / "source" / "include", CCCL, CCCL / "cccl"]
    options = ["--gpu-architecture=sm_90a", "-std=c++17", "-default-device"]
    options += [f"-I{folder}" for folder in folders]
    program = PROGRAMS / "cute_products.cu"
    return compile_cuda(program.read_text("utf-8"), str(program), (9, 0), options)


@pytest.mark.nightly
@pytest.mark.parametrize("schedule", ["converge", "fair", "random", "adversarial"])
@pytest.mark.parametrize("name", SHARED)
def test_a_product(name: str, schedule: str) -> None:
    random = np.random.default_rng(1)
    a, b = ((random.integers(-8, 8, shape) / 4).astype(np.float16) for shape in ((M, K), (N, K)))
    gpu = wl.Device("h100", schedule=schedule, seed=3)
    d = gpu.zeros((M, N), np.float32)
    given: list[Any] = [gpu.to_device(each) for each in (a, b)]
    if name == "by_groups":
        given = [gpu.tensor_map(each, (128, 64), swizzle="128B") for each in given]
    threads = 384 if name == "by_groups" else 128
    kernel = gpu.compile(compiled(), "ptx")[name]
    kernel[(M // 128, N // 128), threads, None, SHARED[name]](*given, d, M, N, K, strict=False)
    assert (d.copy_to_host() == a.astype(np.float32) @ b.astype(np.float32).T).all()
