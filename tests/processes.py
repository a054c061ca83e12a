"""Processes that tests start and do not wait for at once."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def started(command: Sequence[str], **options: Any) -> Generator[subprocess.Popen[Any]]:
    """Starts a process; at the end it is killed, if it has not ended, and its pipes are closed.
    Ctrl-C ends it also where the tests run in the background, which ignores that."""
    if os.name == "posix":
        options["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.kill()
