"""What surrounds a kernel: imports, launches, the command line, memory.

    python benchmarks/overheads.py [--write]

Launches: medians of 2,000 calls from Python of a kernel that returns at once, with three arguments,
all counters on. Processes: the quickest of five. Memory: a process of its own makes the arrays of
a workload, resets the mark of its largest resident size (/proc/self/clear_refs, proc(5)), runs it
twice and looks at the mark; what is beyond host arrays and device buffers is Warploom with Python
and its libraries. --write puts the tables into docs/performance.md.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

import documents
import numpy as np
from workloads import MAKERS, Workload

import warploom as wl

ROOT = Path(__file__).parent.parent
EMPTY = 'extern "C" __global__ void k(int n, float a, float *x) { if (n < 0) x[0] = a; }'
LAUNCHES, PROCESSES = 2000, 5
SAXPY = ["-c", "from warploom.cli.main import main; main()", "run",
         str(ROOT / "examples" / "saxpy.cu"), "--kernel", "saxpy", "--grid", "4",
         "--block", "256", "--arg", "1000", "--arg", "2.0", "--arg", "f32[1000]=arange",
         "--arg", "f32[1000]=ones"]  # fmt: skip


def launch_microseconds() -> str:
    """Returns the median of many launches, and the code of the last one."""
    gpu = wl.Device("h100")
    launcher = gpu.compile(EMPTY)["k"][1, 32]
    x, times = gpu.zeros(1, np.float32), list[float]()
    for _ in range(LAUNCHES):
        start = time.perf_counter()
        launcher(1, 2.0, x)
        times.append(time.perf_counter() - start)
    return f"{1e6 * statistics.median(times):.1f} us  {launcher(1, 2.0, x).tier}"


def process_seconds(*arguments: str) -> float:
    """The quickest of several processes of Python, after one that fills the cache."""
    times: list[float] = []
    for _ in range(1 + PROCESSES):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def overheads() -> str:
    bare = process_seconds("-c", "pass")
    rows = {
        "launch with three arguments": launch_microseconds(),
        "import warploom": f"{process_seconds('-c', 'import warploom') - bare:.2f} s",
        "warploom run examples/saxpy.cu": f"{process_seconds(*SAXPY):.2f} s",
    }
    return "\n".join(f"{name:34}{value:>10}" for name, value in rows.items())


def memory() -> str:
    lines = [f"{'MB':16}{'host arrays':>14}{'buffers':>10}{'largest':>10}{'beyond':>10}"]
    for make in MAKERS:
        command = [sys.executable, __file__, "--resident", make.__name__]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        host, buffers, largest = (int(word) / 1e6 for word in done.stdout.split())
        beyond = largest - host - buffers
        lines.append(f"{make.__name__:16}{host:14.1f}{buffers:10.1f}{largest:10.1f}{beyond:10.1f}")
    return "\n".join(lines)


def run_alone(name: str) -> None:
    """Print bytes: host arrays, device buffers, the largest resident size of this process."""
    [(make, sizes)] = [item for item in MAKERS.items() if item[0].__name__ == name]
    work = make(sizes["full"])
    arrays = [a for a in work.arguments if isinstance(a, np.ndarray)]
    Path("/proc/self/clear_refs").write_text("5", "utf-8")
    _launch_twice(work)
    status = Path("/proc/self/status").read_text("utf-8")
    [kilobytes] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    held = sum(array.nbytes for array in arrays)
    print(held, held, 1024 * int(kilobytes))


def _launch_twice(work: Workload) -> None:
    gpu = wl.Device("h100")
    launcher = gpu.load(work.source)[work.kernel][work.grid, work.block, None, work.shared_bytes]
    given = [gpu.to_device(a) if isinstance(a, np.ndarray) else a for a in work.arguments]
    for _ in range(2):
        launcher(*given)


def main() -> None:
    options = argparse.ArgumentParser(description="Measure what surrounds a kernel.")
    options.add_argument("--write", action="store_true", help="write docs/performance.md")
    options.add_argument("--resident", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.resident:
        run_alone(given.resident)
        return
    for section, table in (("overheads", overheads()), ("memory", memory())):
        print(f"{table}\n")
        if given.write:
            documents.write(section, table)


if __name__ == "__main__":
    main()
