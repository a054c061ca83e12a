"""Starts the program `warploom`: prepares its signals and streams before all other imports.

Ctrl-C ends the process with status 130 at once until a command begins, and raises KeyboardInterrupt
from then on (`raise_interrupts`): raised in an import it would show a traceback. SIGTERM and SIGHUP
remove temporary folders first.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
"""The exit status after Ctrl-C: that of a process that SIGINT has ended, to a shell."""


def main() -> None:
    """Run the command line and exit with its code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)
    from warploom.cli.streams import prepare_streams

    prepare_streams()
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end_cleanly)
    from warploom.cli.main import main as run

    run()


def raise_interrupts() -> None:
    """Lets Ctrl-C raise KeyboardInterrupt from now on, where it ended the process at once."""
    if signal.getsignal(signal.SIGINT) is _end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end_at_once(number: int, frame: FrameType | None) -> None:
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(INTERRUPTED)


def _end_cleanly(number: int, frame: FrameType | None) -> None:
    """Removes temporary folders, then ends the process as the signal does by default."""
    if "warploom.core.temporary" in sys.modules:
        from warploom.core.temporary import remove_temporary_folders

        remove_temporary_folders()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
