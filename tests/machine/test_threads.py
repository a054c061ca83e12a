"""Checks the threads that run machine code: one job at a time, and reuse."""

from __future__ import annotations

import threading

import pytest

from warploom.machine.compiled.threads import Runner

SECONDS = 60.0


def ran(runner: Runner, value: int) -> int:
    where: list[int] = []

    def job() -> int:
        where.append(threading.get_ident())
        return value

    runner.start(job)
    assert runner.wait_until_idle(SECONDS)
    assert where[0] != threading.get_ident()
    return runner.give_back()


def test_a_returned_runner_is_reused() -> None:
    first = Runner.borrow()
    assert ran(first, 5) == 5
    again = Runner.borrow()
    assert again is first
    assert ran(again, 7) == 7


def test_two_borrowers_have_two_runners() -> None:
    one, other = Runner.borrow(), Runner.borrow()
    assert one is not other
    assert (ran(one, 1), ran(other, 2)) == (1, 2)


def test_the_exception_of_a_job_is_raised_where_its_result_is_taken() -> None:
    runner = Runner.borrow()

    def job() -> int:
        raise MemoryError("no buffers")

    runner.start(job)
    assert runner.wait_until_idle(SECONDS)
    with pytest.raises(MemoryError, match="no buffers"):
        runner.give_back()
    assert Runner.borrow() is runner
    assert ran(runner, 4) == 4


def test_a_runner_has_ended_only_when_its_job_has() -> None:
    """Checks that repeated calls return the same answer: an interrupt may lose the first one."""
    runner, gate = Runner.borrow(), threading.Event()
    runner.start(lambda: int(gate.wait(SECONDS)))
    assert not runner.wait_until_idle(0.01)
    gate.set()
    assert runner.wait_until_idle(SECONDS)
    assert runner.wait_until_idle(0.0)
    assert runner.give_back() == 1
    assert ran(Runner.borrow(), 3) == 3
