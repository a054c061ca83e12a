"""Bounds what the process of a run may use, and ends it with the server, however that ends."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

OWN_BYTES = 6 << 30
"""Addresses that the interpreter, the compilers and their libraries reserve at most; they use a
small part of them (`ui.runner` watches how much)."""

MOST_FILE_BYTES = 256 << 20
"""Size of the largest file that a run may write, for its compilers and the cache of its code."""


def limit_resources(memory: int, seconds: float | None = None) -> None:
    """Bounds the addresses, the files and, unless `seconds` is None, the processor time of this
    process and of those that it starts, on systems that have such limits.

    `memory` bytes are allowed for each of two devices, which reserve all of their memory at once
    (`ui.record` makes one to time a launch, and one to trace it), and as many for all else.
    `seconds` are allowed on each core; the server ends a run earlier, by the clock.
    """
    try:
        import resource
    except ImportError:
        return
    limits = {
        resource.RLIMIT_AS: OWN_BYTES + 3 * memory,
        resource.RLIMIT_FSIZE: MOST_FILE_BYTES,
        resource.RLIMIT_CORE: 0,
    }
    if seconds is not None:
        limits[resource.RLIMIT_CPU] = int(seconds * (os.cpu_count() or 1)) + 1
    for kind, wanted in limits.items():
        _, most = resource.getrlimit(kind)
        limit = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(kind, (limit, limit))


def end_with(parent: int, folder: Path) -> None:
    """Ends this process when the parent process has ended, however that ends: a thread waits for
    the end of the pipe with the descriptor `parent`, whose other end the parent holds open.
    `folder` has the temporary files of the run."""
    threading.Thread(target=_end_after, args=(parent, folder), daemon=True).start()


def end_run(folder: Path) -> NoReturn:
    """Removes a run's temporary files, as its parent cannot, and ends this process and those that
    it started."""
    shutil.rmtree(folder, ignore_errors=True)
    if hasattr(os, "killpg") and os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _end_after(pipe: int, folder: Path) -> None:
    """Reads a pipe to its end, then ends the run."""
    with suppress(OSError):
        while os.read(pipe, 1):
            pass
    end_run(folder)
