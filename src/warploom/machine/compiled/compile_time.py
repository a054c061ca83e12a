"""Measures the time that each host thread spends on compiling kernels."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager


class _Spent(threading.local):
    """Holds the compile time of each thread, in seconds."""

    seconds = 0.0


_spent = _Spent()


@contextmanager
def compiling() -> Generator[None]:
    """Adds the duration of the `with` block to this thread's compile time."""
    started = time.perf_counter()
    try:
        yield
    finally:
        _spent.seconds += time.perf_counter() - started


def compile_seconds() -> float:
    """Returns the seconds that this thread has spent on compiling so far."""
    return _spent.seconds
