"""Measures the time that each host thread spends on compiling kernels."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager


class CompileTime(threading.local):
    """Holds the seconds that each thread has spent on compiling so far."""

    seconds = 0.0


compile_time = CompileTime()


@contextmanager
def compiling() -> Generator[None]:
    """Adds the duration of the `with` block to this thread's compile time."""
    started = time.perf_counter()
    try:
        yield
    finally:
        compile_time.seconds += time.perf_counter() - started
