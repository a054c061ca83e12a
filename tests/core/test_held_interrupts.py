"""An interrupt that arrives where Python would swallow it is raised afterwards, once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator

import pytest

from warploom.core.interrupts import interrupts_held, let_interrupts_through


@pytest.fixture(autouse=True)
def default_handler() -> Generator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


class Interrupted:
    """Receives Ctrl-C in its finalizer, where an exception is printed and forgotten."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # the signal is handled here
            pass


def test_an_interrupt_in_a_finalizer_is_raised_at_the_end() -> None:
    steps: list[int] = []

    def work() -> None:
        with interrupts_held():
            Interrupted()
            steps.append(1)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == [1]


def test_an_interrupt_is_raised_where_it_is_let_through_and_only_once() -> None:
    steps: list[int] = []
    with interrupts_held():
        Interrupted()
        with pytest.raises(KeyboardInterrupt):
            let_interrupts_through()
        let_interrupts_through()
        steps.append(1)
    let_interrupts_through()
    assert steps == [1]


def test_the_inner_of_two_hands_it_to_the_outer() -> None:
    def work() -> None:
        with interrupts_held():
            with interrupts_held():
                Interrupted()
            let_interrupts_through()

    with pytest.raises(KeyboardInterrupt):
        work()


def test_ignored_interrupts_stay_ignored_and_other_threads_change_nothing() -> None:
    handlers: list[object] = []

    def hold() -> None:
        with interrupts_held():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    hold()
    Interrupted()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert handlers == [signal.default_int_handler, signal.SIG_IGN]
