"""Checks that threads which run in parallel start on cores of their own."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

from warploom.machine.compiled.cores import bind, other_cores
from warploom.machine.compiled.threads import Runner

SECONDS = 60.0

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there can threads move")


def own_core() -> int:
    """Returns field 39 of this thread's stat (proc_pid_stat(5)); the second, its name, is in
    brackets."""
    return int(Path("/proc/thread-self/stat").read_text("utf-8").rpartition(")")[2].split()[36])


def begun(runner: Runner, core: int) -> tuple[int, set[int]]:
    """Returns the core on which a job started, and those that it was allowed."""
    found = list[set[int]]()

    def job() -> int:
        found.append(os.sched_getaffinity(0))
        return own_core()

    runner.start(job, core)
    assert runner.wait_until_idle(SECONDS)
    at = runner.give_back()
    assert Runner.borrow() is runner
    return at, found[0]


def test_a_job_begins_on_its_core_and_may_leave_it() -> None:
    allowed, runner = os.sched_getaffinity(0), Runner.borrow()
    runner.start(lambda: 0)  # its thread has begun when this has ended
    assert runner.wait_until_idle(SECONDS)
    for core in sorted(allowed) * 2:
        # On a busy computer the system may have moved it on before it looks.
        assert (core, allowed) in [begun(runner, core) for _ in range(5)]
    runner.give_back()


def test_every_core_is_yielded_once_per_cycle() -> None:
    allowed = os.sched_getaffinity(0)
    for core in allowed:
        with ThreadPoolExecutor(1) as pool:
            # Pinned, so that it is known which is its own.
            pool.submit(os.sched_setaffinity, 0, {core}).result()
            assert pool.submit(lambda: list(islice(other_cores(), 2))).result() == [core, core]
    found = list(islice(other_cores(), 2 * len(allowed)))
    assert set(found[: len(allowed)]) == allowed
    assert found[len(allowed) :] == found[: len(allowed)]


def test_binding_to_a_missing_core_does_nothing() -> None:
    allowed = os.sched_getaffinity(0)
    with ThreadPoolExecutor(1) as pool:
        thread = pool.submit(threading.get_native_id).result()
        assert bind(thread, {max(allowed) + 1000}) is None
        assert os.sched_getaffinity(thread) == allowed
