"""Checks and times the launches of one kernel, shape by shape."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import warploom as wl
from families.base import Case, LaunchShape, Problem
from families.tables import Measurement, Timing

ROUNDS, ROUND_SECONDS = 3, 0.15
OPT_LEVEL = "WARPLOOM_OPT_LEVEL"


class Launch:
    """Launches a kernel in one shape on device buffers of its own."""

    def __init__(self, gpu: wl.Device, kernel: wl.Kernel, case: Case, shape: LaunchShape) -> None:
        self.case, self.shape = case, shape
        self.problem = case.build(shape)
        self._values = [
            gpu.to_device(value) if isinstance(value, np.ndarray) else value
            for value in self.problem.arguments
        ]
        self._launcher = kernel[self.problem.grid, shape.block, None, self.problem.shared_bytes]
        self._run: wl.Run | None = None

    def __call__(self) -> float:
        """Launch once; return seconds of the processor, without those of reading counters."""
        if self.case.in_place:
            for index in self.problem.expected:
                self._values[index].view[...] = self.problem.arguments[index]
        start = time.process_time()
        self._run = self._launcher(*self._values)
        return time.process_time() - start

    def warp_instructions(self) -> int:
        """Returns the warp instructions of the last launch; each launch has as many."""
        assert self._run is not None
        return self._run.counters.warp_instructions

    def tier(self) -> str:
        """Returns the code in which the last launch ended (`Run.tier`)."""
        assert self._run is not None
        return self._run.tier

    def serial_reason(self) -> str:
        """Returns why the last launch had one worker (`Run.serial_reason`)."""
        assert self._run is not None
        return self._run.serial_reason

    def check(self) -> None:
        """Compare what the last launch wrote with the expected results.

        Raises AssertionError where they differ.
        """
        for index, wanted in self.problem.expected.items():
            self.case.check(self.shape, index, self._values[index].copy_to_host(), wanted)

    def free(self) -> None:
        """Free the device buffers."""
        for value in self._values:
            if isinstance(value, wl.Buffer):
                value.free()


def launches(case: Case, shapes: Iterable[LaunchShape]) -> Iterator[tuple[Launch, float]]:
    """Yields a checked launch for each shape, and the seconds that the first launch took.

    Raises AssertionError where a result is wrong.
    """
    gpu = wl.Device(workers=1)
    kernel = gpu.load(case.path)[case.kernel]
    for shape in shapes:
        launch = Launch(gpu, kernel, case, shape)
        first = launch()
        launch.check()
        yield launch, first
        launch.free()


def measure(case: Case, shapes: Iterable[LaunchShape], native: bool) -> Measurement:
    """Times a kernel in all shapes; with `native`, its native loop as well.

    Raises AssertionError where a result is wrong.
    """
    timings: list[Timing] = []
    native_seconds: float | None = None
    for launch, first in launches(case, shapes):
        with optimised():
            second = launch()
            launch.check()
            seconds = _best(launch)
        compiling, optimising = (max(taken - seconds, 0.0) for taken in (first, second))
        counted = launch.warp_instructions()
        timings.append(
            Timing(launch.shape.label, counted, seconds, compiling, optimising, launch.tier())
        )
        if native and case.native and native_seconds is None:
            native_seconds = _native_seconds(case, launch)
    return Measurement(case.name, tuple(timings), native_seconds)


@contextmanager
def optimised() -> Generator[None]:
    """Has kernels that are launched meanwhile optimised before they run."""
    before = os.environ.get(OPT_LEVEL)
    os.environ[OPT_LEVEL] = "3"
    try:
        yield
    finally:
        os.environ.pop(OPT_LEVEL)
        if before is not None:
            os.environ[OPT_LEVEL] = before


def _best(launch: Callable[[], float]) -> float:
    """Returns the seconds of a launch in the fastest round."""
    launch()
    return min(_round(launch) for _ in range(ROUNDS))


def _round(launch: Callable[[], float]) -> float:
    """Launches for ROUND_SECONDS; returns mean seconds."""
    done = [launch()]
    while sum(done) < ROUND_SECONDS:
        done.append(launch())
    return sum(done) / len(done)


def _native_seconds(case: Case, launch: Launch) -> float:
    """Returns processor seconds of the native loop on copies of the arguments, checked first."""
    assert case.native
    native, problem = case.native, launch.problem
    once = _copies(problem)
    native(*once)
    for index, wanted in problem.expected.items():
        case.check(launch.shape, index, once[index], wanted)

    def again() -> float:
        if case.in_place:
            for index in problem.expected:
                once[index][...] = problem.arguments[index]
        start = time.process_time()
        native(*once)
        return time.process_time() - start

    return _best(again)


def _copies(problem: Problem) -> list[Any]:
    """Returns the arguments with copies of arrays."""
    return [a.copy() if isinstance(a, np.ndarray) else a for a in problem.arguments]
