"""Runs the program `warploom`; prepares its signals and streams before all other imports.

Ctrl-C ends the process with status 130 at once until a command begins (`raise_interrupts`). SIGTERM
and SIGHUP remove temporary folders first.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from warploom.core.interrupts import end_at_interrupts


def main() -> None:
    """Runs the command line and exits with its code."""
    end_at_interrupts()
    from warploom.core.streams import prepare_streams

    prepare_streams()
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end_cleanly)
    from warploom.cli.main import main as run

    run()


def _end_cleanly(number: int, frame: FrameType | None) -> None:
    """Removes temporary folders, then ends the process as the signal does by default."""
    if "warploom.core.temporary" in sys.modules:
        from warploom.core.temporary import remove_temporary_folders

        remove_temporary_folders()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    main()
