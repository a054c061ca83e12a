"""Chooses the cores on which worker threads of a launch start: by their numbers, from the one after
the caller's own core on, which comes last.

A thread that is woken may be placed on the core of the thread that woke it, and within the few
milliseconds of a launch the scheduler does not move it. So it is bound to another core before it is
woken, and unbound when it starts there.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from functools import cache
from itertools import repeat


def other_cores() -> Iterator[int | None]:
    """Yields cores for worker threads endlessly: all that this thread may use, in rising order from
    the next above its own, which is the last in each cycle. Always None if the system does not
    report the core."""
    own = _own_core()
    if own is None:
        yield from repeat(None)
        return
    cores = sorted(os.sched_getaffinity(0))
    ordered = [core for core in cores if core > own] + [core for core in cores if core <= own]
    while True:
        yield from ordered


def bind(thread: int, cores: set[int]) -> set[int] | None:
    """Restricts a thread (by its system id) to these cores; returns the cores that it could use
    before, None if the system does not allow the change."""
    try:
        allowed = os.sched_getaffinity(thread)
        os.sched_setaffinity(thread, cores)
    except OSError:
        return None
    return allowed


def _own_core() -> int | None:
    """Returns the number of the core that this thread runs on now, None if that is not known."""
    getcpu = _sched_getcpu()
    own = -1 if getcpu is None else getcpu()
    return own if own >= 0 else None


@cache
def _sched_getcpu() -> Callable[[], int] | None:
    """Returns the C function `sched_getcpu`; None where it does not exist or threads cannot be
    bound (everywhere but on Linux)."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    return getattr(ctypes.CDLL(None), "sched_getcpu", None)
