"""The registry of the driver's entries, and what an error in one becomes."""

from __future__ import annotations

import logging
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial

from warploom.clients.driver.error_log import error_log
from warploom.clients.driver.overlap import works
from warploom.clients.driver.overlap.work import DEFAULT_QUEUE, Queue
from warploom.clients.driver.results import STICKY, DriverError, Result, result_of
from warploom.clients.driver.state import state
from warploom.clients.registry import Registry, nothing
from warploom.clients.session import session
from warploom.core.errors import WarploomError

log = logging.getLogger("warploom.driver")

SYNCHRONOUS = (
    (re.compile(r"cu(da)?Mem(cpy|set)(?!.*Async)"), DEFAULT_QUEUE),
    (re.compile(r"cu(da)?(Mem)?Free(?!.*Async)"), None),
)
"""Names of functions for which the host waits, and the stream whose work they follow; None: all."""

_missed: set[str] = set()


def explain(error: object) -> None:
    """Prints the text of an error, which says more than its code, to standard error and the log."""
    sys.stdout.flush()
    print(f"warploom: {error}", file=sys.stderr, flush=True)
    error_log.add(str(error))


def spoil(result: Result) -> None:
    """Leaves the current context unusable, as CUDA does after such an error."""
    if result in STICKY and state.stack:
        state.stack[-1].error = result


def code_of(error: BaseException, name: str) -> int:
    """Returns the code for what a call raised, explained to the user where the code says too
    little."""
    match error:
        case DriverError():
            if error.explained:
                explain(error.explained)
            return error.result
        case WarploomError():
            explain(error)
            return result_of(error)
        case KeyboardInterrupt():
            registry.interrupt()
            return Result.LAUNCH_FAILED
        case MemoryError():
            return Result.OUT_OF_MEMORY
        case _:
            trouble = "".join(traceback.format_exception(error))
            explain(f"{name} failed because of a defect in Warploom:\n{trouble}")
            return Result.UNKNOWN


def code_of_missing(name: str, _words: Sequence[int]) -> int:
    """Returns the code for a function that is not there; it is named once in the log."""
    if name not in _missed:
        _missed.add(name)
        log.warning("warploom: %s is not supported (CUDA_ERROR_NOT_SUPPORTED)", name)
    return Result.NOT_SUPPORTED


def reported(perform: Callable[[], object]) -> None:
    """Performs work of a stream that the program does not wait for; an error is explained, and ends
    the context if it is one that does."""
    try:
        perform()
    except BaseException as error:
        spoil(Result(code_of(error, "work of a stream")))


def before(name: str) -> Callable[[], None]:
    """Returns what is done before each call of a function: copies and fills without a stream follow
    unfinished work as those of the legacy default stream do, and the host waits for them; it waits
    for all work where it frees memory."""
    queues = [queue for pattern, queue in SYNCHRONOUS if pattern.match(name)]
    return partial(_wait_for, queues[0]) if queues else nothing


def _wait_for(queue: Queue | None) -> None:
    works.host_waits_for(works.unfinished_before(queue))


def finish() -> None:
    """Ends what the process leaves unfinished, and writes its report."""
    works.finish()
    session().report_once()


registry = Registry(code_of, code_of_missing, finish, before)
entry = registry.entry
