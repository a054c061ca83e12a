"""Times launches in processes that have compiled nothing, each with a cache of its own."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import dataclass
from itertools import accumulate

import warploom as wl
import warploom.compilation.emission
import warploom.machine.compiled.engine
from families import CASES
from families.measuring import OPT_LEVEL, Launch

TIERS, BASELINE, LEVEL_1, LEVEL_3 = "", "baseline", "1", "3"
"""What a process runs: the code that Warploom chooses, or one code from the first launch on."""


@dataclass(frozen=True)
class Work:
    """Says what a process does: the kernel, by its name in CASES, in its natural shape; the code,
    as above; the folder of the cache; and the number of launches, None for as many as take
    `seconds` after the first."""

    kernel: str
    code: str
    cache: str
    launches: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Launches:
    """Holds the processor seconds of each launch of a process, compilation included where a launch
    waited for it, and the code in which the last one ended."""

    seconds: tuple[float, ...]
    tier: str

    @property
    def totals(self) -> list[float]:
        """Returns the seconds of the first launch, of the first two, and so on."""
        return list(accumulate(self.seconds))


def in_new_process(work: Work) -> Launches:
    """Does the work in a process forked from this one, which imports the engine and launches
    nothing, so that neither compiled code nor a compiler is left from work before."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=lambda: sender.send(launches_of(work))
    )
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        raise SystemExit(f"{work.kernel}: the process ended before its launches did") from None
    finally:
        process.join()


def launches_of(work: Work) -> Launches:
    """Launches a kernel in this process, checks the results of the last launch, and returns
    processor seconds of each, without those of loading its PTX and of a compiler beside it.

    Raises AssertionError where a result is wrong.
    """
    case = next(one for one in CASES if one.name == work.kernel)
    _choose(work)
    gpu = wl.Device(workers=1)
    kernel = gpu.load(case.path)[case.kernel]
    launch = Launch(gpu, kernel, case, case.shapes[0])
    seconds = [launch()]
    while _goes_on(work, seconds):
        seconds.append(launch())
    launch.check()
    return Launches(tuple(seconds), launch.tier())


def _goes_on(work: Work, seconds: list[float]) -> bool:
    """Returns whether another launch is due."""
    if work.launches is not None:
        return len(seconds) < work.launches
    return sum(seconds) - seconds[0] < work.seconds


def _choose(work: Work) -> None:
    """Sets the variables that choose the code and the cache of this process."""
    os.environ["WARPLOOM_CACHE_DIR"] = work.cache
    os.environ.pop(OPT_LEVEL, None)
    if work.code:
        os.environ[OPT_LEVEL] = work.code
