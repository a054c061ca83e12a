"""Instructions of the processor that a launch takes, counted by callgrind.

    python benchmarks/instructions.py [--record]

Launched are the eight workloads of peers.py, in small sizes, and kernels of kernels.py in odd
shapes. Times creep unseen, for every computer has its own; these counts are the same on each that
has the versions of `made_with`. The code is made for the level x86-64-v3, which is what valgrind
offers: first in a process of its own, to fill the cache, for compilers are too slow under
valgrind. Then one process launches each kernel first a few and then more times under callgrind,
and asks it to write down its counts in between; what more launches take more is the launches'
own. `kernel` is machine code of the kernel and its helpers, `host` is Python and all libraries on
the way there and back.

What was counted last is in `instructions.json`; --record writes it anew. Needs valgrind.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib.metadata
import json
import mmap
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from families import CASES
from families.base import Case, LaunchShape
from families.measuring import Launch
from workloads import Workload, workloads

import warploom as wl

KEPT = Path(__file__).with_suffix(".json")
ODD = (
    ("9-point, floats", "24x8"),
    ("7-point, 3-D", "6x6x6"),
    ("scan in shared memory", "8x8"),
    ("sum of squares", "250"),
    ("softmax by shuffles", "192"),
    ("SHA-256", "256+77"),
)
"""Kernels of kernels.py in shapes that are no natural ones."""

LEVEL = "x86-64-v3"
ENVIRONMENT = {
    "WARPLOOM_PROCESSOR": LEVEL,
    "PYTHONHASHSEED": "0",
    "WARPLOOM_OPT_LEVEL": "3",
}
FEW, MANY = 2, 5
MAPS = "maps"
"""The file in which a process leaves the map of its memory."""

_BASE = ord("C") << 24 | ord("T") << 16
DUMP, START = _BASE, _BASE + 4
"""Callgrind's requests CALLGRIND_DUMP_STATS and CALLGRIND_START_INSTRUMENTATION (callgrind.h)."""

_REQUEST = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3")
"""Machine code of a function that hands six numbers, at its argument, to valgrind: four rotations
that change nothing and an exchange of a register with itself (valgrind.h for amd64)."""

GROWTH = {"kernel": 1.05, "host": 1.1}
"""What has grown more than this since it was recorded is a defect."""

Counts = dict[str, dict[str, int]]


def made_with() -> dict[str, str]:
    """The versions on which the counts depend."""
    names = ("llvmlite", "numba", "numpy", "nvidia-cuda-nvrtc")
    found = {name: importlib.metadata.version(name) for name in names}
    found["python"] = ".".join(platform.python_version_tuple()[:2])
    return {**found, "C library": " ".join(platform.libc_ver())}


def counted() -> Counts:
    """Instructions a launch, by workload, of its `kernel` and its `host`.

    Raises CalledProcessError where one of the processes fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **ENVIRONMENT}
        own = [sys.executable, __file__, "--launch", folder]
        subprocess.run(own, env=environment, check=True)
        callgrind = [
            "valgrind", "--tool=callgrind", "--quiet", "--instr-atstart=no",
            "--dump-instr=yes", "--compress-pos=no", f"--callgrind-out-file={folder}/counts",
        ]  # fmt: skip
        subprocess.run([*callgrind, *own], env=environment, check=True)
        made = made_at_run_time(Path(folder, MAPS).read_text())
        parts = sorted(Path(folder).glob("counts.*"), key=lambda path: int(path.suffix[1:]))
        return dict(_differences([by_origin(part, made) for part in parts]))


def _differences(parts: list[dict[str, int]]) -> Iterator[tuple[str, dict[str, int]]]:
    """What a launch takes; there are three parts for each workload: how it was prepared, FEW
    launches and MANY launches."""
    for number, name in enumerate(WORKLOADS):
        _, few, many = parts[3 * number : 3 * number + 3]
        kinds = ("kernel",) if name in LARGE else ("kernel", "host")
        yield name, {kind: (many[kind] - few[kind]) // (MANY - FEW) for kind in kinds}


def made_at_run_time(maps: str) -> list[range]:
    """The addresses of machine code that belongs to no file, from a process's map of its memory
    (proc_pid_maps(5))."""
    rows = [line.split(maxsplit=5) for line in maps.splitlines()]
    bounds = [row[0].split("-") for row in rows if "x" in row[1] and len(row) < 6]
    return [range(int(first, 16), int(last, 16)) for first, last in bounds]


def by_origin(part: Path, made: list[range]) -> dict[str, int]:
    """Sums up what callgrind wrote, by where the instructions are. (It does not see how a library
    calls code that was made at run time, and takes that for the library's.)

    Format: Valgrind manual, "Callgrind Format Specification".
    """
    counts = {"kernel": 0, "host": 0}
    inclusive = False
    for line in part.read_text().splitlines():
        if line.startswith("calls="):
            inclusive = True  # the next line's cost is the called function's
        elif line.startswith("0x"):
            address, _, *costs = line.split()
            if not inclusive:
                inside = any(int(address, 16) in stretch for stretch in made)
                counts["kernel" if inside else "host"] += sum(map(int, costs))
            inclusive = False
    return counts


def launch(folder: Path) -> None:
    """Launch every workload FEW and then MANY times, each in a part of callgrind's counts; PTX is
    kept in `folder`, for its compiler is slow under valgrind."""
    gpu = wl.Device("h100", workers=1)
    launchers = [make(gpu, folder) for make in WORKLOADS.values()]
    for launcher in launchers:
        launcher()
    callgrind = Callgrind()
    gc.collect()
    gc.disable()
    callgrind.ask(START)
    for launcher in launchers:
        launcher()
        callgrind.ask(DUMP)
        for times in (FEW, MANY):
            for _ in range(times):
                launcher()
            callgrind.ask(DUMP)
    (folder / MAPS).write_text(Path("/proc/self/maps").read_text())


class Callgrind:
    """Asks the callgrind that this process runs under; where there is none, nothing happens."""

    def __init__(self) -> None:
        all_rights = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        self._code = mmap.mmap(-1, mmap.PAGESIZE, prot=all_rights)
        self._code.write(_REQUEST)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._code))
        self._function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def ask(self, request: int) -> None:
        self._function((ctypes.c_uint64 * 6)(request))


def peer(work: Workload, gpu: wl.Device, folder: Path) -> Callable[[], object]:
    """Returns what launches a workload of peers.py."""
    values = [gpu.to_device(a) if isinstance(a, np.ndarray) else a for a in work.arguments]
    kernel = _kernel(gpu, work.source, work.kernel, folder)
    launcher = kernel[work.grid, work.block, None, work.shared_bytes]
    return lambda: launcher(*values)


def odd(case: Case, shape: LaunchShape, gpu: wl.Device, folder: Path) -> Callable[[], object]:
    """Returns what launches a kernel of kernels.py in one of its shapes."""
    return Launch(gpu, _kernel(gpu, case.path, case.kernel, folder), case, shape)


Make = Callable[[wl.Device, Path], Callable[[], object]]
SMALL: dict[str, Make] = {work.name: partial(peer, work) for work in workloads("Oclgrind")}
LARGE: dict[str, Make] = {
    f"{case.name}, {shape.label}": partial(odd, case, shape)
    for case in CASES
    for shape in case.shapes
    if (case.name, shape.label) in ODD
}
"""Launches so large that the host's part says nothing: it differs by a tenth from run to run."""

WORKLOADS = SMALL | LARGE


def _kernel(gpu: wl.Device, source: Path, name: str, folder: Path) -> wl.Kernel:
    """Returns a kernel; PTX of its file is made where it is not in the folder yet."""
    kept = folder / f"{source.stem}.ptx"
    if not kept.exists():
        kept.write_text(gpu.load(source).ptx)
    return gpu.load(kept)[name]


def grown(now: Counts, before: Counts) -> list[str]:
    """Says what takes more than it did, by more than GROWTH."""
    return [
        f"{name}: {kind} takes {now[name][kind]:,} instructions a launch, {count:,} before"
        for name, kinds in before.items()
        for kind, count in kinds.items()
        if now[name][kind] > GROWTH[kind] * count
    ]


def main() -> None:
    options = argparse.ArgumentParser(description="Count instructions of launches.")
    options.add_argument("--record", action="store_true", help=f"write {KEPT.name}")
    options.add_argument("--launch", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.launch:
        launch(given.launch)
        return
    if not shutil.which("valgrind"):
        raise SystemExit("valgrind is not installed (Debian: apt-get install valgrind)")
    now = counted()
    print(f"{'instructions a launch':28}{'kernel':>14}{'host':>14}")
    for name, counts in now.items():
        print(f"{name:28}" + "".join(f"{count:14,}" for count in counts.values()))
    if given.record:
        KEPT.write_text(json.dumps({"made with": made_with(), "counts": now}, indent=2) + "\n")
    else:
        print("\n".join(grown(now, json.loads(KEPT.read_text())["counts"])))


if __name__ == "__main__":
    main()
