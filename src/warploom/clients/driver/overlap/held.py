"""Holds the work of streams until the host waits, to run it in another order than that of the calls
(`Settings.stream_order`): what a program does not wait for has not happened yet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from itertools import count

from warploom.clients.driver.overlap.work import Work
from warploom.clients.session import session
from warploom.clients.settings import ISSUED, RANDOM
from warploom.core.mutex import Mutex
from warploom.simt.split_policy import hash_pair

HELD_SECONDS = 1.0
"""How long work is held at most while the host does not wait for any: it may wait for what a kernel
writes."""

_lock = Mutex("hold work")
_held: list[Work] = []
_choices = count()
"""Counts the choices that the seed has made."""


def holds_work() -> bool:
    """Returns whether work of streams is held until the host waits for it."""
    return session().settings.stream_order != ISSUED


def has(work: Work) -> bool:
    """Returns whether a work is held."""
    return work in _held


def has_any() -> bool:
    """Returns whether any work is held."""
    return bool(_held)


def hold(work: Work, begin: Callable[[Work], object]) -> None:
    """Holds a work that could begin; `begin` is called with it after HELD_SECONDS, if the host has
    waited for nothing."""
    with _lock:
        _held.append(work)
        if len(_held) == 1:
            _start_timer(begin)


def _start_timer(begin: Callable[[Work], object]) -> None:
    timer = threading.Timer(HELD_SECONDS, _begin_oldest, (begin,))
    timer.daemon = True
    timer.start()


def _begin_oldest(begin: Callable[[Work], object]) -> None:
    """Begins the work that has been held for longest."""
    with _lock:
        work = _held.pop(0) if _held else None
        if _held:
            _start_timer(begin)
    if work is not None:
        begin(work)


def take_next(wanted: Collection[Work]) -> Work | None:
    """Removes the next work from those that are held, and returns it; None if there is none. Under
    LATE it is the first that is wanted, so that all else is as late as it can be; under RANDOM any
    of them, by the seed."""
    settings = session().settings
    with _lock:
        if not _held:
            return None
        number = 0
        if settings.stream_order == RANDOM:
            number = hash_pair(settings.seed, next(_choices)) % len(_held)
        else:
            number = next((index for index, work in enumerate(_held) if work in wanted), 0)
        return _held.pop(number)
