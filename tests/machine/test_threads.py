"""Checks the threads that run machine code: one job at a time, and reuse."""

from __future__ import annotations

import signal
import threading

import pytest

from warploom.machine.compiled import threads
from warploom.machine.compiled.running import PooledThreads
from warploom.machine.compiled.threads import Runner
from warploom.machine.turn import Cancellation

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


def test_a_signal_that_comes_late_does_not_end_the_next_job() -> None:
    """The thread is suspended after its first job, before it wakes who waits for that; meanwhile
    that one has seen that the job is over, and starts another."""

    class LateLock:
        """Releases the lock of `runner` when `late` is set."""

        def __init__(self) -> None:
            self._lock, self.late = runner._job_done, threading.Event()

        def __getattr__(self, name: str) -> object:
            return getattr(self._lock, name)

        def release(self) -> None:
            self.late.wait(SECONDS)
            self._lock.release()

    runner, gate, first_ended = Runner(), threading.Event(), threading.Event()
    lock = runner._job_done = LateLock()  # type: ignore[assignment]

    def first() -> int:
        first_ended.set()
        return 1

    runner.start(first)
    first_ended.wait(SECONDS)
    while not runner.wait_until_idle(0.01):
        pass
    assert runner.give_back() == 1
    assert Runner.borrow() is runner
    runner.start(lambda: int(gate.wait(SECONDS)) + 1)
    lock.late.set()
    assert not runner.wait_until_idle(0.2)
    assert not runner.wait_until_idle(0.2)
    gate.set()
    while not runner.wait_until_idle(1.0):
        pass
    assert runner.give_back() == 2


def test_an_interrupt_leaves_no_job_that_never_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """It arrives in the middle of starting a job: it is raised once the job has begun, which
    `abort` can wait for."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    ran_jobs: list[int] = []
    bind = threads.bind

    def interrupted(thread: int, cores: set[int]) -> set[int] | None:
        if threading.current_thread() is threading.main_thread():
            signal.raise_signal(signal.SIGINT)
        return bind(thread, cores)

    monkeypatch.setattr(threads, "bind", interrupted)
    ran(Runner.borrow(), 1)  # a thread that has run is bound to a core
    pooled = PooledThreads(Cancellation())
    try:
        with pytest.raises(KeyboardInterrupt):
            pooled.start([lambda: ran_jobs.append(1) or 0], spread=True)
        pooled.abort()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ran_jobs == [1]
