"""Instructions of the processor that a launch takes, counted by callgrind.

    python benchmarks/instructions.py [--record]

Launched are the eight workloads of peers.py, in small sizes, and kernels of kernels.py in odd
shapes. Times creep unseen, for every computer has its own; these counts are the same on each that
has the versions of `made_with`. A process under callgrind (`callgrind.py`) launches each kernel
first a few and then more times; what more launches take more is the launches' own. `kernel` is
machine code of the kernel and its helpers, `host` is Python and all libraries on the way there and
back.

What was counted last is in `instructions.json`; --record writes it anew. Needs valgrind.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import callgrind
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

FEW, MANY = 2, 5
"""How often small workloads are launched; their host's part differs a little from time to time."""

GROWTH = {"kernel": 1.05, "host": 1.1}
"""What has grown more than this since it was recorded is a defect."""

Counts = dict[str, dict[str, int]]


def made_with() -> dict[str, str]:
    """The versions on which the counts depend."""
    names = ("llvmlite", "numba", "numpy", "nvidia-cuda-nvrtc")
    found = {name: importlib.metadata.version(name) for name in names}
    found["python"] = ".".join(platform.python_version_tuple()[:2])
    return {**found, "C library": " ".join(platform.libc_ver())}


def counted(*, small: bool = False) -> Counts:
    """Instructions a launch, by workload, of its `kernel` and its `host`; if `small`, of SMALL
    alone.

    Raises CalledProcessError where one of the processes fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        own = [__file__, "--launch", folder, *(["--small"] if small else [])]
        callgrind.run(own)
        names = SMALL if small else WORKLOADS
        return dict(_differences([*names], callgrind.count(own, Path(folder))))


def _differences(
    names: list[str], parts: list[dict[str, int]]
) -> Iterator[tuple[str, dict[str, int]]]:
    """What a launch takes; there are three parts for each workload: how it was prepared, FEW
    launches and MANY launches, of a large one none and one."""
    for number, name in enumerate(names):
        _, few, many = parts[3 * number : 3 * number + 3]
        if name in LARGE:
            yield name, {"kernel": many["kernel"]}
        else:
            yield name, {kind: (many[kind] - few[kind]) // (MANY - FEW) for kind in many}


def launch(folder: Path, made: dict[str, Make]) -> None:
    """Launch every workload of `made` FEW and then MANY times, large ones once, each in a part of
    callgrind's counts; PTX is kept in `folder`, for its compiler is slow under valgrind."""
    gpu = wl.Device("h100", workers=1)
    launchers = {name: make(gpu, folder) for name, make in made.items()}
    for launcher in launchers.values():
        launcher()
    counts = callgrind.Callgrind(folder)
    gc.collect()
    gc.disable()
    counts.start()
    for name, launcher in launchers.items():
        if name in SMALL:
            launcher()
        counts.dump()
        for times in (0, 1) if name in LARGE else (FEW, MANY):
            for _ in range(times):
                launcher()
            counts.dump()


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
        kept.write_text(gpu.load(source).ptx, "utf-8")
    return gpu.load(kept)[name]


def grown(now: Counts, before: Counts) -> list[str]:
    """Says which of the workloads in `now` take more than they did, by more than GROWTH."""
    return [
        f"{name}: {kind} takes {now[name][kind]:,} instructions per launch, {count:,} before"
        for name, kinds in before.items()
        if name in now
        for kind, count in kinds.items()
        if now[name][kind] > GROWTH[kind] * count
    ]


def main() -> None:
    options = argparse.ArgumentParser(description="Count instructions of launches.")
    options.add_argument("--record", action="store_true", help=f"write {KEPT.name}")
    options.add_argument("--launch", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--small", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.launch:
        launch(given.launch, SMALL if given.small else WORKLOADS)
        return
    if not shutil.which("valgrind"):
        raise SystemExit(callgrind.MISSING)
    now = counted()
    print(f"{'instructions per launch':28}{'kernel':>14}{'host':>14}")
    for name, counts in now.items():
        print(f"{name:28}" + "".join(f"{count:14,}" for count in counts.values()))
    if given.record:
        KEPT.write_text(
            json.dumps({"made with": made_with(), "counts": now}, indent=2) + "\n", "utf-8"
        )
    else:
        print("\n".join(grown(now, json.loads(KEPT.read_text("utf-8"))["counts"])))


if __name__ == "__main__":
    main()
