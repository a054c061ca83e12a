"""Threads that run side by side begin on cores of their own."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

from warploom.machine.cores import cores_beside, move_to

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there can threads move")


def own_core() -> int:
    """Field 39 of this thread's stat (proc_pid_stat(5)); the second, its name, is in brackets."""
    return int(Path("/proc/thread-self/stat").read_text().rpartition(")")[2].split()[36])


def moved(core: int) -> tuple[int, set[int]]:
    move_to(core)
    return own_core(), os.sched_getaffinity(0)


def test_a_thread_moves_and_may_go_on_from_there() -> None:
    allowed = os.sched_getaffinity(0)
    with ThreadPoolExecutor(1) as pool:
        for core in sorted(allowed) * 2:
            assert pool.submit(moved, core).result() == (core, allowed)


def test_every_core_comes_once_before_one_comes_again() -> None:
    allowed = os.sched_getaffinity(0)
    for core in allowed:
        with ThreadPoolExecutor(1) as pool:
            # Pinned, so that it is known which is its own.
            pool.submit(os.sched_setaffinity, 0, {core}).result()
            assert pool.submit(lambda: list(islice(cores_beside(), 2))).result() == [core, core]
    found = list(islice(cores_beside(), 2 * len(allowed)))
    assert set(found[: len(allowed)]) == allowed
    assert found[len(allowed) :] == found[: len(allowed)]


def test_a_core_that_is_not_allowed_is_left_alone() -> None:
    with ThreadPoolExecutor(1) as pool:
        _, allowed = pool.submit(moved, max(os.sched_getaffinity(0)) + 1000).result()
    assert allowed == os.sched_getaffinity(0)
