"""Makes a debugger run the launches of this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from warploom.core.errors import WarploomError
from warploom.host.loaded import LoadedKernel
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.tally import Tally
from warploom.program.program import Program


class Debugger(Protocol):
    """Runs launches in place of an engine."""

    def wants(self, kernel: LoadedKernel) -> bool:
        """Returns whether launches of a kernel are debugged."""
        ...

    def execute(
        self, kernel: LoadedKernel, program: Program, launch: Launch, memory: DeviceMemory
    ) -> Callable[[], Tally]:
        """Runs a launch to its end; returns what makes its tally."""
        ...


class Quit(BaseException):
    """The user wants no more of the program that is debugged; `code` is its exit code, `error` what
    has stopped the launch where it stood, and `position` how many warp instructions it had
    executed."""

    def __init__(self, code: int = 0) -> None:
        super().__init__()
        self.code = code
        self.error: WarploomError | None = None
        self.position = 0


attached: list[Debugger] = []
"""The debugger that `attach` has set, if there is one."""


def attach(debugger: Debugger | None) -> None:
    """Sets the debugger that runs the launches it wants from now on; None: no debugger."""
    attached[:] = [] if debugger is None else [debugger]


def debugger_of(kernel: LoadedKernel) -> Debugger | None:
    """Returns the debugger that wants the launches of a kernel, if there is one."""
    return next((each for each in attached if each.wants(kernel)), None)
