"""Waits until no other thread imports a module of this package.

Most of the package is imported where it is first called, often by a thread that launches. Python
holds a lock for each module that is being imported; in a process that is forked meanwhile, the
lock's owner does not exist, and whoever imports the module there waits for ever.
"""

from __future__ import annotations

import importlib.machinery
import logging
import sys
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from traceback import walk_stack
from typing import Any

# It locks itself in forks by a hook that has to run after what calls `wait_for_imports`, so it is
# imported before that is registered: an import may log.
_LOG = logging.getLogger(__name__)

PACKAGE = __name__.partition(".")[0]

_IMPORTLIB = importlib.machinery.PathFinder.find_spec.__code__.co_filename.rpartition("_")[0]
"""How the names of the files begin whose code runs an import: `<frozen importlib.`."""


_thread = threading.local()


def wait_for_imports() -> None:
    """Returns once no other thread imports a module of this package; at once in `forks_at_once`,
    and if this thread is in an import itself, which another thread may wait for."""
    if getattr(_thread, "forks_at_once", False) or not is_importing() or _imports_itself():
        return
    _LOG.debug("waiting for another thread's import")
    while is_importing():
        time.sleep(0.001)


@contextmanager
def forks_at_once() -> Generator[None]:
    """Lets this thread fork while others import: it holds a lock that an import may wait for. What
    runs in the child may need none of their modules."""
    _thread.forks_at_once = True
    try:
        yield
    finally:
        _thread.forks_at_once = False


def is_importing() -> bool:
    """Returns whether some thread holds, or waits for, the lock of a module of this package."""
    return any(name.partition(".")[0] == PACKAGE for name in tuple(_module_locks()))


def _module_locks() -> Mapping[str, object]:
    """Returns Python's locks of the modules that are being imported, by name. There is no public
    way to them; a version that has none by that name gets an empty map: forks do not wait then."""
    bootstrap: Any = sys.modules["_frozen_importlib"]
    return getattr(bootstrap, "_module_locks", {})


def _imports_itself() -> bool:
    """Returns whether an import is on this thread's stack."""
    frames = (frame for frame, _ in walk_stack(None))
    return any(frame.f_code.co_filename.startswith(_IMPORTLIB) for frame in frames)
