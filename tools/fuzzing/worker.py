"""A worker: a process of its own that runs one case after another, within limits of memory."""

from __future__ import annotations

import importlib
import os
import re
import resource
import signal
import time
import traceback
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from fuzzing.branches import TakenSides
from fuzzing.cases import Case, Outcome
from fuzzing.targets import TARGETS, files, forms

HEADROOM = 6 << 30
"""Address space that a worker may take beyond what it has once the machines are loaded; the ranges
that devices reserve count."""

RETIRE = 2 << 30
"""A worker that has taken so much of it is replaced: each case may take 4 GiB."""


def address_space() -> int:
    """Returns the bytes of address space that this process has (proc(5), statm)."""
    pages = int(Path("/proc/self/statm").read_text("utf-8").split()[0])
    return pages * resource.getpagesize()


def serve(connection: Connection, plant: str) -> None:
    """Receives cases, or targets and seeds, until the connection ends; sends for each its outcome,
    the case where something is wrong, and whether the worker is to be replaced.

    `plant` names a function, as `module:function`, that is called first: tests of the fuzzer plant
    errors in Warploom with it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    silence()
    files.traces()  # loads both machines
    if plant:
        module, _, function = plant.partition(":")
        getattr(importlib.import_module(module), function)()
    taken = TakenSides()
    base = address_space()
    resource.setrlimit(resource.RLIMIT_AS, (base + HEADROOM, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    connection.send(None)
    while True:
        try:
            asked: Case | tuple[str, int] = connection.recv()
        except EOFError:
            return
        began = time.process_time()
        if not isinstance(asked, Case) and asked[0] == "forms":
            taken.add(forms.opcodes(asked[1]))
        outcome, case = examine(asked)
        seconds = time.process_time() - began
        outcome = replace(outcome, processor_seconds=seconds, sides=taken.collect())
        connection.send((outcome, case, address_space() - base > RETIRE))


def silence() -> None:
    """Drops what kernels and compilers print."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)


def examine(asked: Case | tuple[str, int]) -> tuple[Outcome, Case | None]:
    """Runs a case, which a target and a seed can stand for; returns it where something is wrong."""
    case, before = asked if isinstance(asked, Case) else None, peak_bytes()
    try:
        if not isinstance(asked, Case):
            case = TARGETS[asked[0]].generate(asked[1])
        assert case is not None
        TARGETS[case.target].check(case)
    except (Exception, SystemExit) as error:
        return outcome_of(error), case
    taken = peak_bytes() - before
    if taken > TARGETS[case.target].most_bytes:
        return Outcome("memory", "memory", f"it takes {taken:,} bytes of the host"), case
    return Outcome(), None


def peak_bytes() -> int:
    """Returns the most memory that this process has had."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def outcome_of(error: BaseException) -> Outcome:
    """Returns the outcome of a case that raised: a wrong result for an assertion of the fuzzer's,
    else an exception, distinguished by its type and where it was raised."""
    name, message = type(error).__name__, f"{type(error).__name__}: {error}"
    if isinstance(error, AssertionError) and name != "AssertionError":
        place = re.sub(r"\d+", "", str(error).split(" ")[0])
        return Outcome("wrong result", f"{name} {place}", message)
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "warploom" in frame.filename] or list(frames)
    place = f"{Path(ours[-1].filename).name} in {ours[-1].name}"
    shown = f"{message[:1000]} ({place}, line {ours[-1].lineno})"
    return Outcome("exception", f"{name} in {place}", shown)
