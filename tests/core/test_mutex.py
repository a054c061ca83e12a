"""Mutexes that signal handlers cannot wait for in vain, and that forks wait for."""

from __future__ import annotations

import os
import sys
import threading
from types import FrameType
from typing import Any

import pytest

from warploom.core.errors import LaunchError
from warploom.core.mutex import Mutex


def test_a_thread_cannot_wait_for_itself() -> None:
    mutex = Mutex("open the box")
    with mutex, pytest.raises(LaunchError, match="cannot open the box here"):
        mutex.acquire()
    with mutex:
        assert not mutex.acquire(blocking=False)


def test_another_thread_waits() -> None:
    mutex, order = Mutex("work"), list[str]()

    def second() -> None:
        with mutex:
            order.append("second")

    with mutex:
        thread = threading.Thread(target=second)
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_each_mutex_free_and_its_work_done() -> None:
    """The parent's thread is in the middle of its work when the other one forks."""
    mutex, halves = Mutex("count halves"), list[int]()
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        with mutex:
            halves.append(1)
            begun.set()
            go_on.wait()
            halves.append(2)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    threading.Timer(0.2, go_on.set).start()
    child = os.fork()
    if child == 0:
        os._exit(0 if mutex.acquire(blocking=False) and halves == [1, 2] else 1)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert mutex.acquire(blocking=False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_thread_may_fork_while_it_holds_a_mutex() -> None:
    with Mutex("fork") as _, Mutex("fork again"):
        child = os.fork()
        if child == 0:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_condition_of_python_3_14_finds_what_it_needs() -> None:
    """`threading.Condition.__init__` reads `lock.locked` from Python 3.14 on."""
    mutex = Mutex("work")
    assert not mutex.locked()
    with mutex:
        assert mutex.locked()
    assert not mutex.locked()


@pytest.mark.parametrize("instruction", range(60))
def test_an_exception_in_the_midst_of_acquiring_leaves_no_mutex_locked(instruction: int) -> None:
    """A handler raises at each instruction in turn of code that uses a mutex, as Ctrl-C does where
    it arrives. Then its thread uses the mutex, and another one does."""
    mutex, left = Mutex("work"), instruction

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == -1:
                raise KeyboardInterrupt
        return trace

    def use() -> None:
        with mutex:
            pass

    sys.settrace(trace)
    try:
        use()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    use()
    assert not mutex.locked()
    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_what_a_function_holds_stays_held_where_it_calls_others() -> None:
    mutex = Mutex("work")

    def attempt() -> bool:
        return mutex.acquire(blocking=False)

    with mutex:
        assert not attempt()
        assert mutex.locked()
    assert attempt()
    mutex.release()
