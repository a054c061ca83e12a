"""Ends the compilation of a kernel that takes too long, with an error instead of a wait.

Emitting a kernel's code may take 300 processor seconds, or what the environment variable
WARPLOOM_COMPILE_SECONDS says. LLVM, which cannot be interrupted, takes about as long at its least
effort, to which kernels of that size fall (`llvm.opt_level`).
"""

from __future__ import annotations

import os
import time

from warploom.core.errors import CompileError, WarploomError
from warploom.program.program import Program

VARIABLE = "WARPLOOM_COMPILE_SECONDS"
SECONDS = 300.0


class Deadline:
    """The end of the processor time that this thread may spend on emitting a kernel's code.

    Raises WarploomError where the variable holds no positive number.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.seconds = _seconds()
        self._end = time.thread_time() + self.seconds

    def check(self) -> None:
        """Raises CompileError where the time is over."""
        if time.thread_time() <= self._end:
            return
        program = self.program
        raise CompileError(
            f"kernel {program.title} is not compiled: its {len(program.instructions):,}"
            f" instructions took longer than {self.seconds:g} s of processor time. Split the kernel"
            f" or unroll less, set {VARIABLE} to more seconds, or run it on the device's"
            f" engine 'reference', which does not compile."
        )


def _seconds() -> float:
    given = os.environ.get(VARIABLE) or str(SECONDS)
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise WarploomError(f"{VARIABLE}={given} is no number of seconds above 0; set it to one")
    return seconds
