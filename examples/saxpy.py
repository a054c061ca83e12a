"""SAXPY: coalesced loads, and a tail guard that makes one warp of many diverge."""

from pathlib import Path

import numpy as np

import warploom as wl

N = (1 << 16) - 5
THREADS = 256


def main() -> None:
    gpu = wl.Device("h100")
    saxpy = gpu.load(Path(__file__).with_suffix(".cu"))["saxpy"]
    x = gpu.to_device(np.arange(N, dtype=np.float32))
    y = gpu.to_device(np.ones(N, dtype=np.float32))
    run = saxpy[-(-N // THREADS), THREADS](N, np.float32(2), x, y)

    assert np.array_equal(y.copy_to_host(), 2 * np.arange(N, dtype=np.float32) + 1)
    counters = run.counters
    sectors = counters.global_load_sectors / counters.global_load_requests
    print(f"{counters.warp_instructions} warp instructions")
    print(f"{sectors:g} sectors a load request: 32 lanes x 4 bytes are 4 sectors of 32 bytes")
    print(f"{counters.divergent_branches} divergent branch: the tail guard, in the last warp")


if __name__ == "__main__":
    main()
