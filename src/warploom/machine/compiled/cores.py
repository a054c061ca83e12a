"""Chooses the cores on which threads that run side by side begin.

A thread that is woken may land on the core of the one that woke it, and for the few milliseconds of
a launch nothing moves it. So it is bound to another one before, and let go when it begins there.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from functools import cache
from itertools import repeat


def other_cores() -> Iterator[int | None]:
    """Cores for threads beside this one, its own last and then again; None where the system does
    not tell."""
    own = _own_core()
    if own is None:
        yield from repeat(None)
        return
    cores = sorted(os.sched_getaffinity(0))
    behind = [core for core in cores if core > own] + [core for core in cores if core <= own]
    while True:
        yield from behind


def bind(thread: int, cores: set[int]) -> set[int] | None:
    """Let a thread (its number in the system) run on these cores only; gives where it could before.
    None where the system does not let it."""
    try:
        allowed = os.sched_getaffinity(thread)
        os.sched_setaffinity(thread, cores)
    except OSError:
        return None
    return allowed


def _own_core() -> int | None:
    """Return the core that this thread is on."""
    ask = _sched_getcpu()
    own = -1 if ask is None else ask()
    return own if own >= 0 else None


@cache
def _sched_getcpu() -> Callable[[], int] | None:
    """Returns what tells a thread its core; only Linux has it, and lets threads be bound."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    return getattr(ctypes.CDLL(None), "sched_getcpu", None)
