"""Peers that are too slow for the full sizes: each in a process of its own, on small ones.

    oclgrind python benchmarks/simulators.py Oclgrind
    NUMBA_ENABLE_CUDASIM=1 python benchmarks/simulators.py "CUDA simulator"

What they print, as JSON, are seconds by workload for one of its units; peers.py starts them and
works out what the full size would take at that rate.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import opencl
from workloads import Workload, workloads

ROUNDS = 3

COMMANDS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "Oclgrind": (("oclgrind",), {}),
    "CUDA simulator": ((), {"NUMBA_ENABLE_CUDASIM": "1"}),
}
"""What starts each, and its environment."""

Prepared = tuple[Callable[[], None], Callable[[], list[Any]]]


def rates(name: str) -> dict[str, float]:
    """Seconds a unit by workload, in a new process. Raises OSError where what starts it is missing,
    CalledProcessError where it fails."""
    before, environment = COMMANDS[name]
    if before and not shutil.which(before[0]):
        raise FileNotFoundError(f"{before[0]} is not installed")
    command = [*before, sys.executable, __file__, name]
    done = subprocess.run(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def on_cuda_simulator(work: Workload, arguments: list[Any]) -> Prepared:
    import simulated

    kernel = getattr(simulated, work.kernel)[work.grid, work.block]

    def results() -> list[Any]:
        fresh = [a.copy() if isinstance(a, np.ndarray) else a for a in work.arguments]
        kernel(*fresh)
        return fresh

    return lambda: kernel(*arguments), results


def measured(name: str, work: Workload) -> float:
    """Seconds for one unit of a workload whose results are right: median of ROUNDS launches."""
    prepare = opencl.prepared if name == "Oclgrind" else on_cuda_simulator
    fresh = [a.copy() if isinstance(a, np.ndarray) else a for a in work.arguments]
    launch, results = prepare(work, fresh)
    work.check(name, results())
    times: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        launch()
        times.append(time.perf_counter() - start)
    return statistics.median(times) / work.units


def main() -> None:
    name = sys.argv[1]
    print(json.dumps({work.name: measured(name, work) for work in workloads(name)}))


if __name__ == "__main__":
    main()
