"""The threads that run machine code: one job each at a time, and again after that."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from warploom.machine.threads import Runner

SECONDS = 60.0


def ran(runner: Runner, value: int) -> int:
    where: list[int] = []

    def job() -> int:
        where.append(threading.get_ident())
        return value

    runner.start(job)
    assert runner.ended(SECONDS)
    assert where[0] != threading.get_ident()
    return runner.give_back()


def test_a_runner_that_was_given_back_serves_again() -> None:
    first = Runner.borrow()
    assert ran(first, 5) == 5
    again = Runner.borrow()
    assert again is first
    assert ran(again, 7) == 7


def test_two_borrowers_have_two_runners() -> None:
    one, other = Runner.borrow(), Runner.borrow()
    assert one is not other
    assert (ran(one, 1), ran(other, 2)) == (1, 2)


def test_a_runner_has_ended_only_when_its_job_has() -> None:
    """And says so as often as it is asked: an interrupt may lose the first answer."""
    runner, gate = Runner.borrow(), threading.Event()
    runner.start(lambda: int(gate.wait(SECONDS)))
    assert not runner.ended(0.01)
    gate.set()
    assert runner.ended(SECONDS)
    assert runner.ended(0.0)
    assert runner.give_back() == 1
    assert ran(Runner.borrow(), 3) == 3


def core_of_this_thread() -> int:
    """Field 39 of its stat (proc_pid_stat(5)); the second, its name, is in brackets."""
    return int(Path("/proc/thread-self/stat").read_text().rpartition(")")[2].split()[36])


@pytest.mark.skipif(sys.platform != "linux", reason="only there are threads moved")
def test_jobs_with_places_begin_on_their_cores_and_may_leave_them() -> None:
    allowed = os.sched_getaffinity(0)
    for place in range(2 * len(allowed)):
        runner, free = Runner.borrow(), list[bool]()

        def job(free: list[bool] = free) -> int:
            core = core_of_this_thread()
            free.append(os.sched_getaffinity(0) == allowed)
            return core

        runner.start(job, place)
        assert runner.ended(SECONDS)
        assert runner.give_back() == sorted(allowed)[place % len(allowed)]
        assert free == [True]
