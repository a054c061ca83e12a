"""Waits until no other thread runs an import for this package.

Much is imported where it is first called, often by a thread that launches: modules of this package,
and libraries. Python holds a lock for each module that is being imported; in a process that is
forked meanwhile, the lock's owner does not exist, and whoever imports the module there waits for
ever.
"""

from __future__ import annotations

import importlib.machinery
import logging
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_stack
from types import FrameType

# It locks itself in forks by a hook that has to run after what calls `wait_for_imports`, so it is
# imported before that is registered: an import may log.
_LOG = logging.getLogger(__name__)

_PACKAGE = str(Path(__file__).parents[1])

_IMPORTLIB = importlib.machinery.PathFinder.find_spec.__code__.co_filename.rpartition("_")[0]
"""How the names of the files begin whose code runs an import: `<frozen importlib.`."""


_thread = threading.local()


def wait_for_imports() -> None:
    """Returns once no other thread runs an import for this package (`is_importing`); at once in
    `forks_at_once`, and if this thread is in an import itself, which another may wait for."""
    if getattr(_thread, "forks_at_once", False) or not is_importing():
        return
    if any(frame.f_code.co_filename.startswith(_IMPORTLIB) for frame, _ in walk_stack(None)):
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
    """Returns whether another thread is in an import that code of this package has begun, or in one
    of its modules. Imports of the user's own are not waited for: one may run a whole program."""
    stacks = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    own = threading.get_ident()
    return any(_imports(top) for thread, top in stacks.items() if thread != own)


def _imports(top: FrameType) -> bool:
    """Returns whether a thread's stack, from its top, has both an import and this package on it."""
    files = [frame.f_code.co_filename for frame, _ in walk_stack(top)]
    has_import = any(file.startswith(_IMPORTLIB) for file in files)
    return has_import and any(file.startswith(_PACKAGE) for file in files)
