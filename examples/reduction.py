"""Two tree reductions with one result: the counters show which of them wastes lanes."""

from pathlib import Path

import numpy as np

import warploom as wl

N = 1 << 14
THREADS = 256


def main() -> None:
    gpu = wl.Device("h100")
    module = gpu.load(Path(__file__).with_suffix(".cu"))
    host = np.random.default_rng(1).integers(0, 100, N).astype(np.float32)
    x = gpu.to_device(host)
    runs = {}
    for name in ("reduce", "reduce_naive"):
        sums = gpu.zeros(N // THREADS, np.float32)
        run = module[name][N // THREADS, THREADS, None, 4 * THREADS](x, sums, N)
        assert sums.copy_to_host().sum() == host.sum()
        runs[name] = run.counters
    print(f"{'':28}{'contiguous':>12}{'naive':>12}")
    for counter in ("warp_instructions", "divergent_branches", "average_active_lanes"):
        good, bad = (getattr(runs[name], counter) for name in ("reduce", "reduce_naive"))
        print(f"{counter:28}{good:12,.5g}{bad:12,.5g}")
    assert runs["reduce"].divergent_branches < runs["reduce_naive"].divergent_branches
    assert runs["reduce"].warp_instructions < runs["reduce_naive"].warp_instructions


if __name__ == "__main__":
    main()
