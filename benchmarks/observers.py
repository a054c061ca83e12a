"""What counting costs: the engine's kernels with all counters and device rules, and without any.

    python benchmarks/observers.py

The eight workloads of peers.py. Both versions of a kernel run in turn, and the quickest of several
launches of each counts, for other work on the computer only ever adds time. Checks of addresses
stay on in both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from llvmlite import ir
from workloads import Workload, workloads

import warploom as wl
from warploom.codegen import cache
from warploom.codegen.access import Shape
from warploom.codegen.access_costs import AccessCosts
from warploom.codegen.common_access import CommonAccess
from warploom.codegen.frame import Frame
from warploom.codegen.group_ways import GroupWays
from warploom.codegen.lanes import I1, I32, I64, LANES
from warploom.codegen.put_off import PutOff
from warploom.codegen.row_access import RowAccess
from warploom.codegen.some_lanes import SomeLanes
from warploom.codegen.sweep_access import SweepAccess

LAUNCHES = 9

Launch = Callable[[], wl.Run]


find = cache.find


def found(kind: str, key: str) -> bytes | None:
    """What is in the cache, but for kernels."""
    return None if kind == "kernel" else find(kind, key)


def without_counters(make: Callable[[], Launch]) -> Launch:
    """A launch whose kernel was compiled with nothing to count."""

    def nothing(*_: object) -> None:
        return None

    def inside(
        self: SomeLanes, index: int, shape: Shape, first: Any, step: int, bits: Any
    ) -> tuple[Any, None]:
        """What of the look at an access of some lanes is a check."""
        b, common = self.b, self.memory.common
        aligned = b.icmp_unsigned("==", b.and_(first, I64(shape.size - 1)), I64(0))
        some = b.and_(aligned, b.icmp_unsigned("!=", bits, I32(0)))
        extent = LANES * step or shape.size
        return b.and_(some, common.inside(index, shape.space, first, extent)), None

    with (
        patch.object(AccessCosts, "count", nothing),
        patch.object(CommonAccess, "count", nothing),
        patch.object(RowAccess, "count", nothing),
        patch.object(RowAccess, "note", nothing),
        patch.object(RowAccess, "is_known", lambda *_: ir.Constant(I1, 1)),
        patch.object(GroupWays, "count", nothing),
        patch.object(PutOff, "_count", nothing),
        patch.object(PutOff, "_is_known", lambda *_: list[Any]()),
        patch.object(SomeLanes, "like_another", inside),
        patch.object(SomeLanes, "count", nothing),
        patch.object(SweepAccess, "count", nothing),
        patch.object(Frame, "count", nothing),
        # What was compiled before counts, and what is compiled now must not be kept.
        patch.object(
            cache, "find", lambda kind, key: find(kind, key) if kind != "kernel" else None
        ),
        patch.object(cache, "keep", nothing),
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
    print(f"{name:26}{1e3 * plain:12.2f}{1e3 * full:12.2f}{100 * (1 - plain / full):10.1f} %")
    return plain / full


def launch_of(work: Workload) -> Launch:
    gpu = wl.Device("h100")
    launcher = gpu.load(work.source)[work.kernel][work.grid, work.block, None, work.shared_bytes]
    given = [gpu.to_device(a) if isinstance(a, np.ndarray) else a for a in work.arguments]
    return lambda: launcher(*given)


def main() -> None:
    print(f"{'kernel':26}{'bare, ms':>12}{'counted, ms':>12}{'cost':>12}")
    left = [measure(work.name, partial(launch_of, work)) for work in workloads()]
    print(f"{'geometric mean':50}{100 * (1 - statistics.geometric_mean(left)):10.1f} %")


if __name__ == "__main__":
    main()
