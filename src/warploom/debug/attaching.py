"""Takes over launches: each that it wants is debugged by a face, then run to its end."""

from __future__ import annotations

from collections.abc import Callable

from warploom.core.mangled import read_symbol
from warploom.debug.session import Session
from warploom.debug.target import Target
from warploom.host.debugging import Quit
from warploom.host.engines import find_engine
from warploom.host.loaded import LoadedKernel
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.tally import Tally
from warploom.program.program import Program

Face = Callable[[Session], bool]
"""Lets the user debug a launch; returns False where no further launch is to be debugged."""


class AttachedDebugger:
    """Debugs the launches of kernels with a name, or of all, by a face; `on_quit` is called where
    the user wants no more, before that is raised."""

    def __init__(
        self, face: Face, kernel: str = "", on_quit: Callable[[Quit], None] | None = None
    ) -> None:
        self._face, self._kernel, self._on_quit = face, kernel, on_quit
        self._detached = False

    def wants(self, kernel: LoadedKernel) -> bool:
        """Returns whether launches of a kernel are debugged."""
        names = (kernel.name, *read_symbol(kernel.name).spellings)
        return not self._detached and (not self._kernel or self._kernel in names)

    def execute(
        self, kernel: LoadedKernel, program: Program, launch: Launch, memory: DeviceMemory
    ) -> Callable[[], Tally]:
        """Debugs a launch, then runs it to its end. Raises what the kernel raises, and Quit."""
        context = kernel.context
        target = Target.of(program, launch, memory, context.spec, context.options)
        session = Session(kernel, target)
        try:
            self._detached = not self._face(session)
        except Quit as quit:
            quit.error, quit.position = session.stepper.error, session.position
            if self._on_quit is not None:
                self._on_quit(quit)
            raise
        return finish(session)


def finish(session: Session) -> Callable[[], Tally]:
    """Runs the launch of a session to its end, from where the user has left it; returns what makes
    its tally. Where the user has changed the state, nothing was counted: the tally has zeros.
    Raises what the kernel raises."""
    target, context = session.target, session.kernel.context
    if session.timeline.edited:
        session.breakpoints.clear()
        session.go_on()
        if session.stepper.error is not None:
            raise session.stepper.error
        warps = target.launch.blocks * target.launch.warps_per_block
        empty = Tally.empty(target.program, warps)
        return lambda: empty
    session.timeline.rewind()
    engine = find_engine(context.engine_name, context.spec, context.options, 1)
    try:
        return engine(target.program, target.launch, target.memory, None)
    finally:
        target.output.show()
