"""Transpose three ways: scattered stores, bank conflicts, and neither."""

from pathlib import Path

import numpy as np

import warploom as wl

N = 128


def main() -> None:
    gpu = wl.Device("h100")
    module = gpu.load(Path(__file__).with_suffix(".cu"))
    matrix = np.arange(N * N, dtype=np.float32).reshape(N, N)
    source = gpu.to_device(matrix)
    seen = {}
    for name in ("transpose_naive", "transpose_tiled", "transpose_padded"):
        out = gpu.zeros((N, N), np.float32)
        counters = module[name][(N // 32, N // 32), (32, 8)](source, out, N).counters
        assert np.array_equal(out.copy_to_host(), matrix.T)
        sectors = counters.global_store_sectors / counters.global_store_requests
        conflicts = counters.shared_load_bank_conflicts
        seen[name] = (sectors, conflicts)
        print(f"{name:18}{sectors:4g} sectors a store, {conflicts:6,} bank conflicts")
    # A column of a 32-wide tile: 32 words in one bank are 32 wavefronts, 31 more than needed.
    warps = N * N // 32
    assert seen["transpose_naive"] == (32, 0)
    assert seen["transpose_tiled"] == (4, 31 * warps)
    assert seen["transpose_padded"] == (4, 0)


if __name__ == "__main__":
    main()
