"""Holds Ctrl-C back where it would be lost, and lets it end a process that begins.

Python raises KeyboardInterrupt wherever the main thread is. In a finalizer, or in a callback from
C, it prints the exception and goes on; and each object of LLVM that `llvmlite` hands out has a
finalizer, so that a kernel's compilation is full of them. What may run without end (launches,
waits) holds interrupts, therefore, and lets them through where it looks for them anyway.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

INTERRUPTED = 130
"""The exit status after Ctrl-C: that of a process that SIGINT has ended, to a shell."""

WAKE_SECONDS = 0.2
"""How long a wait lasts at most until it looks for an interrupt again."""

Handler = Callable[[int, FrameType | None], Any]


class _Held:
    """A handler of SIGINT that keeps the first for the handler `before` it."""

    def __init__(self, before: Handler) -> None:
        self.before = before
        self.arrived: tuple[int, FrameType | None] | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.arrived = self.arrived or (number, frame)

    def let_through(self) -> None:
        """Calls the handler before, which may raise, for an interrupt that has arrived."""
        arrived, self.arrived = self.arrived, None
        if arrived is not None:
            self.before(*arrived)


@contextmanager
def interrupts_held() -> Generator[None]:
    """Holds an interrupt that arrives within until the end, or until it is let through.

    Does nothing in other threads, which never see one, and where no function of Python's handles
    the signal.
    """
    before = signal.getsignal(signal.SIGINT)
    held = _Held(before) if callable(before) else None
    if held is None or not _is_handled_by(held):
        yield
        return
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is held:  # else somebody has set another one meanwhile
            signal.signal(signal.SIGINT, before)
        held.let_through()


def _is_handled_by(held: _Held) -> bool:
    """Sets the handler of interrupts, and returns whether this thread may: the main thread alone.
    Which one that is, `threading` does not know for certain: if it is first imported in a thread
    that a library has started, that one counts as the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return False
    try:
        signal.signal(signal.SIGINT, held)
    except ValueError:
        return False
    return True


def let_interrupts_through() -> None:
    """Raises an interrupt that was held back, if there is one: to be called where it is not lost
    and nothing is left half done."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, _Held) and threading.current_thread() is threading.main_thread():
        handler.let_through()


def wait_until(ready: Callable[[float], bool]) -> None:
    """Waits until `ready`, which waits for so many seconds at most, returns true.

    A wait of Python without a limit goes on if an interrupt arrives just before it begins: a signal
    wakes the main thread, but does not stop it from going to sleep. One that arrives in a finalizer
    is held until the next look.
    """
    with interrupts_held():
        while not ready(WAKE_SECONDS):
            let_interrupts_through()


def end_at_interrupts() -> None:
    """Lets Ctrl-C end the process at once, with INTERRUPTED, where it would raise
    KeyboardInterrupt: raised in an import it would show a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)


def raise_interrupts() -> None:
    """Lets Ctrl-C raise KeyboardInterrupt from now on, where it ended the process at once."""
    if signal.getsignal(signal.SIGINT) is _end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end_at_once(number: int, frame: FrameType | None) -> None:
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(INTERRUPTED)
