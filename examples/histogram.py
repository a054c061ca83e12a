"""Histogram: atomics on one address take their turns, and the counters say how many turns."""

from pathlib import Path

import numpy as np

import warploom as wl

N = 1 << 15


def main() -> None:
    gpu = wl.Device("h100")
    kernel = gpu.load(Path(__file__).with_suffix(".cu"))["histogram"]
    rng = np.random.default_rng(3)
    inputs = {
        "evenly spread": rng.integers(0, 256, N).astype(np.uint8),
        "all the same": np.full(N, 7, np.uint8),
    }
    passes = {}
    for name, data in inputs.items():
        bins = gpu.zeros(256, np.uint32)
        run = kernel[8, 256](gpu.to_device(data), bins, N)
        assert np.array_equal(bins.copy_to_host(), np.bincount(data, minlength=256))
        passes[name] = run.counters.atomic_passes / run.counters.atomic_requests
        print(f"{name}: {passes[name]:.2f} passes an atomic request")
    assert passes["all the same"] > passes["evenly spread"]


if __name__ == "__main__":
    main()
