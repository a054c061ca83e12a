"""Lets a program that is ended by SIGTERM give its report first.

The handler is one of C's (`native/driver.h`), which writes to a pipe: the program's main thread may
be in code that never returns to Python. A thread reads the pipe, gives the report and ends the
process as the signal would have.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path


def before_termination(callback: Callable[[], None]) -> None:
    """Calls `callback` when SIGTERM comes, and lets that end the process then. Does nothing where
    the program has decided itself what the signal does."""
    reading, writing = os.pipe()
    library = ctypes.CDLL(str(Path(__file__).parent / "lib" / "libcuda.so.1"))
    if not library.warploom_report_termination(writing):
        os.close(reading)
        os.close(writing)
        return
    threading.Thread(
        target=_wait, args=(reading, callback), name="warploom termination", daemon=True
    ).start()


def _wait(reading: int, callback: Callable[[], None]) -> None:
    if not os.read(reading, 1):
        return
    try:
        callback()
    finally:
        # `signal.signal` is for Python's main thread alone.
        ctypes.CDLL(None).signal(int(signal.SIGTERM), ctypes.c_void_p(None))
        os.kill(os.getpid(), signal.SIGTERM)
