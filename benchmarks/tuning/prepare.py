"""Prints what it costs to prepare configurations for tuning, step by step.

    python benchmarks/tuning/prepare.py [--kernel convolution|sha256] [--count N]

tunes a kernel of about 10,000 PTX instructions in an empty cache: in one configuration; then, each
from an empty cache too, in N (10) that differ by the size of their blocks alone, and in N that
differ by a macro. Prints the seconds of each step, of the processor, with those of the programs
that it starts: the steps of NVIDIA's programs are NVRTC, ptxas and nvdisasm. What is done once in a
process, such as imports, a small kernel does before. Python's byte code is there, as an installer
leaves it.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import warploom as wl

SOURCE = Path(__file__).with_name("prepared.cu")
DEVICE = "rtx-3090"
SMALL = """
extern "C" __global__ void small(int n, float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
"""
STEPS = {
    "NVRTC": ("warploom.frontends.cuda_cpp:compile_cuda",),
    "parser": ("warploom.ptx.parser:parse", "warploom.ptx.verify:verify"),
    "program": ("warploom.program.build:build",),
    "emission": ("warploom.compilation.emission:emit_ir",),
    "LLVM": ("warploom.llvm.objects:object_of", "warploom.compilation.jit:_load"),
    "first blocks": ("warploom.machine.compiled.work:WorkerLaunch.run",),
    "record": (
        "warploom.timing.record.records:RecordBuilder.add",
        "warploom.timing.record.records:RecordBuilder.record",
    ),
    "ptxas, nvdisasm": (
        "warploom.host.programs.assembly:_printed",
        "warploom.host.programs.ptxas:_messages",
    ),
    "listing": ("warploom.machinecode.listing:read_listing",),
    "matching": ("warploom.machinecode.counted:Matching.of",),
    "rerouting": ("warploom.timing.machinecode.record:machine_code_record",),
    "machine work": ("warploom.timing.machinecode.work:machine_work",),
    "replay": ("warploom.timing.replay:Replay.run",),
}
"""The functions whose seconds, without those of others in here, make a step."""
THEIRS = ("NVRTC", "ptxas, nvdisasm")
"""The steps of NVIDIA's programs."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of SOURCE, its arguments, and how many threads it has."""

    arguments: tuple[Any, ...]
    threads: int


KERNELS = {
    "convolution": Kernel((np.zeros(1 << 15, np.float32), np.zeros(1 << 16, np.float32)), 1 << 15),
    "sha256": Kernel((np.zeros(8 << 15, np.uint32), 1), 1 << 15),
}
BLOCKS, SALTS = "block", "SALT"


@dataclass
class Clock:
    """Sums up the processor's seconds of steps, each without those inside of it."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _running: list[str] = field(default_factory=list[str])
    _since: float = 0.0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count what is done meanwhile as a step."""
        self._turn()
        self._running.append(name)
        yield
        self._turn()
        self._running.pop()

    def _turn(self) -> None:
        now = processor_seconds()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now

    def watch(self, step: str, place: str) -> None:
        """Count the calls of a function, wherever it has been imported, as a step."""
        module, _, path = place.partition(":")
        owner: Any = importlib.import_module(module)
        *parts, name = path.split(".")
        for part in parts:
            owner = getattr(owner, part)
        given = vars(owner)[name]
        bound = isinstance(given, classmethod)
        function: Callable[..., Any] = given.__func__ if bound else given

        @functools.wraps(function)
        def timed(*args: Any, **named: Any) -> Any:
            with self.step(step):
                return function(*args, **named)

        setattr(owner, name, classmethod(timed) if bound else timed)
        for other in list(sys.modules.values()):
            ours = not parts and other.__name__.startswith("warploom")
            if ours and vars(other).get(name) is function:
                setattr(other, name, timed)


def processor_seconds() -> float:
    """Return the seconds of this process and of those that it has waited for."""
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def prepare(name: str, space: dict[str, list[Any]]) -> None:
    """Tune in the configurations of a space and print the seconds of each step."""
    wl.tune(SMALL, "small", {"block": [64]}, 64, np.zeros(64, np.float32), sample=1, device=DEVICE)
    clock = Clock()
    for step, places in STEPS.items():
        for place in places:
            clock.watch(step, place)
    with clock.step("other"):
        found = wl.tune(
            SOURCE,
            name,
            space,
            *KERNELS[name].arguments,
            problem_size=KERNELS[name].threads,
            options=(f"-D{name.upper()}",),
            device=DEVICE,
            sample=1,
        )
    for trial in found.refused:
        print(trial.configuration, trial.refused)
    count = len(found.ranked)
    seconds = clock.seconds
    own = sum(spent for step, spent in seconds.items() if step not in THEIRS)
    for step in (*STEPS, "other"):
        print(f"{step:<16}{seconds[step]:>8.2f} s{seconds[step] / count:>8.2f} s")
    print(f"{'all':<16}{sum(seconds.values()):>8.2f} s{sum(seconds.values()) / count:>8.2f} s")
    print(f"{'of these ours':<16}{own:>8.2f} s{own / count:>8.2f} s, less the replay", end="")
    print(f"{(own - seconds['replay']) / count:>8.2f} s a configuration", flush=True)


def spaces(count: int) -> dict[str, dict[str, list[Any]]]:
    """Return the spaces by what their configurations differ in."""
    return {
        "one configuration": {BLOCKS: [128], SALTS: [0]},
        f"{count} sizes of blocks": {BLOCKS: [32 * n for n in range(1, count + 1)], SALTS: [0]},
        f"{count} values of a macro": {BLOCKS: [128], SALTS: list(range(count))},
    }


def main() -> None:
    reader = argparse.ArgumentParser(description="What configurations cost to prepare")
    reader.add_argument("--kernel", choices=KERNELS, default="convolution")
    reader.add_argument("--count", type=int, default=10)
    reader.add_argument("--only", help=argparse.SUPPRESS)
    chosen = reader.parse_args()
    every = spaces(chosen.count)
    if chosen.only:
        prepare(chosen.kernel, every[chosen.only])
        return
    for name in every:
        print(f"\n{chosen.kernel}, {name}: seconds in all, and a configuration", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ)
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            environment["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "bytecode")
            environment["WARPLOOM_CACHE_DIR"] = folder
            command = [sys.executable, __file__, "--kernel", chosen.kernel]
            command += ["--count", str(chosen.count), "--only", name]
            subprocess.run(command, env=environment, check=True)


if __name__ == "__main__":
    main()
