"""Matrix product, naive and tiled: what a tile in shared memory saves of global traffic."""

from pathlib import Path

import numpy as np

import warploom as wl

N, TILE = 64, 16


def main() -> None:
    gpu = wl.Device("h100")
    module = gpu.load(Path(__file__).with_suffix(".cu"))
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-4, 5, (N, N)).astype(np.float32) for _ in range(2))
    device_a, device_b = gpu.to_device(a), gpu.to_device(b)
    moved = {}
    for name in ("matmul_naive", "matmul_tiled"):
        c = gpu.zeros((N, N), np.float32)
        run = module[name][(N // TILE, N // TILE), (TILE, TILE)](device_a, device_b, c, N)
        assert np.array_equal(c.copy_to_host(), a @ b)
        moved[name] = run.counters.global_load_bytes_requested
        print(f"{name}: {moved[name]:,} bytes asked of global memory")
    assert moved["matmul_naive"] == TILE * moved["matmul_tiled"]
    print(f"the tiles save a factor of {TILE}: each value is used {TILE} times once it is there")


if __name__ == "__main__":
    main()
