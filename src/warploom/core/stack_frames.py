"""Determines whether a function that has locked something still runs in the calling thread.

A signal handler may raise an exception between any two instructions, as that of Ctrl-C does, also
after a lock has been acquired and before the `try` or `with` that would release it. The lock is
left locked then by a function whose frame is no longer on the stack of its thread.
"""

from __future__ import annotations

import threading
from inspect import currentframe
from types import FrameType


def caller_outside(*files: str) -> FrameType | None:
    """Returns the innermost frame of the calling thread that is of none of these files, nor of this
    module or `threading`."""
    frame = currentframe()
    while frame is not None and frame.f_code.co_filename in (*files, __file__, threading.__file__):
        frame = frame.f_back
    return frame


def is_active(frame: FrameType) -> bool:
    """Returns whether a frame is on the stack of the calling thread."""
    active = currentframe()
    while active is not None and active is not frame:
        active = active.f_back
    return active is not None
