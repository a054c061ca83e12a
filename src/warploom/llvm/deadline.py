"""Limits the processor time that emitting a kernel's LLVM IR may use, and raises an error beyond.

The limit is 300 s, or the number in the environment variable WARPLOOM_COMPILE_SECONDS. LLVM's own
passes run after that and cannot be interrupted; they last about as long again, since a kernel of
that size is compiled with the least optimization (`llvm.opt_level`).
"""

from __future__ import annotations

import os
import time

from warploom.core.errors import CompileError, WarploomError
from warploom.program.program import Program

VARIABLE = "WARPLOOM_COMPILE_SECONDS"
SECONDS = 300.0


class Deadline:
    """Holds the processor time at which emitting a kernel's code in this thread has to end.

    Raises WarploomError if WARPLOOM_COMPILE_SECONDS is not a positive number.
    """

    def __init__(self, program: Program) -> None:
        """Begins the time limit now, for the code of `program`."""
        self.program = program
        self.seconds = _limit_in_seconds()
        # Of this thread, not of the clock on the wall: what else runs on the computer must not
        # decide whether a kernel compiles.
        self._end = time.thread_time() + self.seconds

    def check(self) -> None:
        """Raises CompileError if the thread has used more processor time than its limit since this
        object was made; callers check between parts of a kernel's code."""
        if time.thread_time() <= self._end:
            return
        program = self.program
        raise CompileError(
            f"kernel {program.title} was not compiled: compiling its {len(program.instructions):,} "
            f"instructions took longer than {self.seconds:g} s of processor time. Split the kernel "
            f"or unroll less, increase {VARIABLE} (in seconds), or run the kernel with the "
            "reference engine (engine='reference'), which does not compile kernels."
        )


def _limit_in_seconds() -> float:
    """Returns the limit that WARPLOOM_COMPILE_SECONDS sets, or the default (SECONDS, 300). Raises
    WarploomError if it is no positive number."""
    text = os.environ.get(VARIABLE) or str(SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise WarploomError(
            f"{VARIABLE}={text} is not a valid time limit: it must be a positive number of seconds"
        )
    return seconds
