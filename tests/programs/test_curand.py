"""Random numbers by curand_kernel.h, where NVIDIA's cuRAND headers are installed
(`pip install nvidia-curand`)."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.frontends.cuda_cpp import header_folders

pytestmark = pytest.mark.skipif(
    not any((folder / "curand_kernel.h").exists() for folder in header_folders()),
    reason="the headers of cuRAND are not installed",
)

SOURCE = """
#include <curand_kernel.h>
extern "C" __global__ void k(uint4 *out, unsigned long long seed) {
    curandStatePhilox4_32_10_t state;
    curand_init(seed, threadIdx.x, 0, &state);
    out[threadIdx.x] = curand4(&state);
}
"""


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Ten rounds of Philox4x32 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3")."""
    c, k = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [
            (second >> 32) ^ c[1] ^ k[0],
            second & 0xFFFFFFFF,
            (first >> 32) ^ c[3] ^ k[1],
            first & 0xFFFFFFFF,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_philox(engine: str) -> None:
    """The subsequence is the upper half of the counter, the seed the key (cuRAND Library,
    "Bit Generation")."""
    seed = 0x123456789
    out = np.zeros((32, 4), np.uint32)
    wl.Device("h100", engine=engine).compile(SOURCE)["k"][1, 32](out, seed)
    key = [seed & 0xFFFFFFFF, seed >> 32]
    assert out.tolist() == [philox([0, 0, i, 0], key) for i in range(32)]
