"""Warploom beside what else runs such kernels on a CPU, in one run.

    python benchmarks/peers.py [--write] [--json FILE] [--rounds 9]

Eight workloads: Warploom with one and two workers, every counter and bounds check on; Numba's
native loops on one thread; PoCL through pyopencl on one thread; Oclgrind and Numba's CUDA simulator
by rate, measured on small sizes (`apt-get install pocl-opencl-icd oclgrind`, the extra `bench`).
A peer that is missing is named and left out. Every result is checked against NumPy; launches of all
but the two simulators take turns, on the same arrays (in which pages of the computer these lie can
change SAXPY's time by half), and the median of the rounds after a first is given, in milliseconds.
In each turn the last of three launches is timed: the first ones find cores asleep and
caches full of what others left there. Warploom has no switch that turns counters off; observers.py
measures what they cost.

At the foot of the first table stands what two threads could gain while it was measured: two cores
of a shared computer may be one of its host's.

The second table is Warploom's distance to this computer's limits, measured in the same run: how
long one thread needs at least to move each byte once, and to do the operations. --write puts both
into docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ["POCL_MAX_PTHREAD_COUNT"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["WARPLOOM_OPT_LEVEL"] = "3"

import documents
import numpy as np
import opencl
import simulators
from workloads import Workload, workloads

import warploom as wl

Launch = Callable[[], None]
Prepared = tuple[Launch, Callable[[], list[Any]]]
"""What launches once, and what gives the arguments as they are after one fresh launch."""

Table = dict[str, dict[str, float]]
"""Milliseconds by workload and peer."""


Peer = Callable[[Workload, list[Any]], Prepared]
"""Takes the arguments with arrays that all peers share: it launches on those."""


def shared(work: Workload) -> list[Any]:
    """The arguments, with buffers for arrays."""
    memory = wl.Device("h100")
    return [memory.to_device(a) if isinstance(a, np.ndarray) else a for a in work.arguments]


def on_warploom(work: Workload, arguments: list[Any], workers: int) -> Prepared:
    gpu = wl.Device("h100", workers=workers)
    launcher = gpu.load(work.source)[work.kernel][work.grid, work.block, None, work.shared_bytes]
    given = [_lent(gpu, a) if isinstance(a, np.ndarray) else a for a in arguments]

    def results() -> list[Any]:
        fresh = [gpu.to_device(a) if isinstance(a, np.ndarray) else a for a in work.arguments]
        launcher(*fresh)
        return [f.copy_to_host() if isinstance(f, wl.Buffer) else f for f in fresh]

    return lambda: launcher(*given) and None, results


def _lent(gpu: wl.Device, array: np.ndarray) -> int:
    """The address of an array, which kernels of a device can access from now on."""
    return gpu.memory.lend(int(array.ctypes.data), array.nbytes, array).address


def on_numba(work: Workload, arguments: list[Any]) -> Prepared:
    def results() -> list[Any]:
        fresh = [a.copy() if isinstance(a, np.ndarray) else a for a in work.arguments]
        work.native(*fresh)
        return fresh

    return lambda: work.native(*arguments), results


PEERS: dict[str, Peer] = {
    "Warploom": lambda work, arguments: on_warploom(work, arguments, 1),
    "2 workers": lambda work, arguments: on_warploom(work, arguments, 2),
    "Numba": on_numba,
    "PoCL": opencl.prepared,
}


def available() -> dict[str, Peer]:
    """The peers that are here; the others are named."""
    try:
        import pyopencl  # pyright: ignore[reportMissingImports]

        pyopencl.get_platforms()
    except Exception as error:
        print(f"PoCL is left out: {error}", file=sys.stderr)
        return {name: peer for name, peer in PEERS.items() if name != "PoCL"}
    return PEERS


def simulated() -> Iterator[tuple[str, dict[str, float]]]:
    """Seconds a unit by workload, of each simulator that is here; the others are named."""
    for name in simulators.COMMANDS:
        try:
            yield name, simulators.rates(name)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)


def measured(work: Workload, peers: dict[str, Peer], rounds: int) -> dict[str, float]:
    """Milliseconds by peer, the medians of rounds in which they take turns of three launches."""
    ready, given = dict[str, Launch](), shared(work)
    arguments = [a.view if isinstance(a, wl.Buffer) else a for a in given]
    for name, peer in peers.items():
        launch, results = peer(work, arguments)
        work.check(name, results())
        launch()
        ready[name] = launch
    times: dict[str, list[float]] = {name: [] for name in ready}
    for _ in range(rounds):
        for name, launch in ready.items():
            for _ in range(2):
                launch()
            times[name].append(_seconds(launch))
    return {name: 1e3 * statistics.median(taken) for name, taken in times.items()}


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def limits() -> tuple[float, float]:
    """What one thread can do: bytes a second, read and written by an addition to an array of 256 MB
    in place, and operations a second of OpenBLAS's product of matrices of order 2048. The best of
    five each. (A copy reads what it overwrites as well, unseen.)"""
    source, target = np.ones(1 << 26, np.float32), np.zeros(1 << 26, np.float32)
    square = np.ones((2048, 2048), np.float32)
    moved = min(_seconds(lambda: np.add(target, source, out=target)) for _ in range(5))
    done = min(_seconds(lambda: np.matmul(square, square)) for _ in range(5))
    return 3 * source.nbytes / moved, 2 * 2048**3 / done


def two_threads() -> float:
    """How many times as many products of matrices two threads do as one does."""
    square = np.ones((512, 512), np.float32)

    def product(_: int = 0) -> None:
        np.matmul(square, square)

    one = min(_seconds(product) for _ in range(5))
    with ThreadPoolExecutor(2) as pool:
        two = min(_seconds(lambda: list(pool.map(product, range(2)))) for _ in range(5))
    return 2 * one / two


def tier(work: Workload) -> str:
    """Returns the code in which Warploom runs a workload (`Run.tier`)."""
    gpu, given = wl.Device("h100"), list[Any]()
    launcher = gpu.load(work.source)[work.kernel][work.grid, work.block, None, work.shared_bytes]
    for argument in work.arguments:
        given.append(gpu.to_device(argument) if isinstance(argument, np.ndarray) else argument)
    return launcher(*given).tier


def side_by_side(table: Table, gains: list[float]) -> str:
    """The table of milliseconds, and the geometric means at its foot."""
    names = list(next(iter(table.values())))
    lines = [f"{'milliseconds':14}" + "".join(f"{name:>16}" for name in names)]
    for work, row in table.items():
        lines.append(f"{work:14}" + "".join(f"{row[name]:16,.2f}" for name in names))
    lines.append("")
    for name in names[1:]:
        ratio = statistics.geometric_mean(row[name] / row["Warploom"] for row in table.values())
        rate = " (by rate)" if name in simulators.COMMANDS else ""
        lines.append(
            f"speed of Warploom with one worker relative to {name}{rate},"
            f" geometric mean: {ratio:,.2f}"
        )
    lines.append(
        f"\nafter each workload, two threads of OpenBLAS did {min(gains):.2f} to {max(gains):.2f}"
        f" times as much work as one thread (median {statistics.median(gains):.2f})"
    )
    return "\n".join(lines)


def distances(table: Table, works: list[Workload]) -> str:
    """How far each workload is from what the computer can do."""
    bandwidth, rate = limits()
    lines = [
        f"one thread transfers {bandwidth / 1e9:.1f} GB/s and performs {rate / 1e9:.0f} GFLOP/s",
        f"{'':14}{'MB':>10}{'MFLOP':>10}{'bytes, ms':>12}{'FLOP, ms':>12}"
        f"{'Warploom, ms':>14}{'times':>8}",
    ]
    for work in works:
        moving, doing = 1e3 * work.bytes_moved / bandwidth, 1e3 * work.operations / rate
        taken = table[work.name]["Warploom"]
        lines.append(
            f"{work.name:14}{work.bytes_moved / 1e6:10.1f}{work.operations / 1e6:10.1f}"
            f"{moving:12.2f}{doing:12.2f}{taken:14.2f}{taken / max(moving, doing):8.1f}"
        )
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description="Measure Warploom beside its peers.")
    options.add_argument("--json", type=Path, help="write the milliseconds there as well")
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--write", action="store_true", help="write docs/performance.md")
    given = options.parse_args()
    works, peers, slow = workloads(), available(), dict(simulated())
    table: Table = {}
    gains: list[float] = []
    for work in works:
        row = table[work.name] = measured(work, peers, given.rounds)
        row |= {name: 1e3 * rate[work.name] * work.units for name, rate in slow.items()}
        gains.append(two_threads())
        print(work.name, {name: round(taken, 2) for name, taken in row.items()}, flush=True)
    codes = ", ".join(sorted({tier(work) for work in works}))
    peers_table = f"{side_by_side(table, gains)}\nWarploom ran its code of {codes}"
    tables = {"peers": peers_table, "limits": distances(table, works)}
    for section, text in tables.items():
        print(f"\n{text}")
        if given.write:
            documents.write(section, text)
    if given.json:
        given.json.write_text(json.dumps(table, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
