"""What counting costs: the engine's kernels with all counters and device rules, and without any.

    python benchmarks/observers.py

The eight workloads of peers.py. Both versions of a kernel run in turn, and the quickest of several
launches of each counts, for other work on the computer only ever adds time. Checks of addresses
stay on in both.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from workloads import Workload, workloads

import warploom as wl
from warploom.llvm import disk_cache
from warploom.lower.access.access_costs import AccessCosts
from warploom.lower.access.range_cache import RangeCache
from warploom.lower.access.store_batching import StoreBatch
from warploom.lower.frame.frame import Frame

LAUNCHES = 9

Launch = Callable[[], wl.Run]


find = disk_cache.find


def found(kind: str, key: str) -> bytes | None:
    """What is in the cache, but for kernels."""
    return None if kind == "kernel" else find(kind, key)


def without_counters(make: Callable[[], Launch]) -> Launch:
    """A launch whose kernel was compiled with nothing to count."""

    def nothing(*_: object) -> None:
        return None

    with (
        patch.object(AccessCosts, "count", nothing),
        patch.object(RangeCache, "count", nothing),
        patch.object(RangeCache, "count_separately", nothing),
        patch.object(RangeCache, "uncount", nothing),
        patch.object(StoreBatch, "_count", nothing),
        patch.object(StoreBatch, "_pattern_matches", lambda *_: list[Any]()),
        patch.object(Frame, "count", nothing),
        # What was compiled before counts, and what is compiled now must not be kept.
        patch.object(
            disk_cache, "find", lambda kind, key: find(kind, key) if kind != "kernel" else None
        ),
        patch.object(disk_cache, "store", nothing),
    ):
        launch = make()
        launch()
    return launch


def quickest(*launches: Launch) -> list[float]:
    """The quickest launch of each, in seconds, all taking turns."""
    times = [float("inf")] * len(launches)
    for _ in range(LAUNCHES):
        for index, launch in enumerate(launches):
            start = time.perf_counter()
            launch()
            times[index] = min(times[index], time.perf_counter() - start)
    return times


def measure(name: str, make: Callable[[], Launch]) -> float:
    """Print one row, and give the share of the speed that is left; `make` gives a launch on a
    device of its own."""
    bare, counted = without_counters(make), make()
    counted()
    plain, full = quickest(bare, counted)
    tiers = " and ".join(dict.fromkeys((bare().tier, counted().tier)))
    cost = 100 * (1 - plain / full)
    print(f"{name:26}{1e3 * plain:12.2f}{1e3 * full:12.2f}{cost:10.1f} %   {tiers}")
    return plain / full


def launch_of(work: Workload) -> Launch:
    gpu = wl.Device("h100")
    launcher = gpu.load(work.source)[work.kernel][work.grid, work.block, None, work.shared_bytes]
    given = [gpu.to_device(a) if isinstance(a, np.ndarray) else a for a in work.arguments]
    return lambda: launcher(*given)


def main() -> None:
    os.environ["WARPLOOM_OPT_LEVEL"] = "3"
    print(f"{'kernel':26}{'bare, ms':>12}{'counted, ms':>12}{'cost':>12}")
    left = [measure(work.name, partial(launch_of, work)) for work in workloads()]
    print(f"{'geometric mean':50}{100 * (1 - statistics.geometric_mean(left)):10.1f} %")


if __name__ == "__main__":
    main()
