"""Sessions on core files: a launch that went wrong, where it did; and the file of a session."""

from __future__ import annotations

from pathlib import Path

from warploom.debug.inspection import DebugError
from warploom.debug.session import Session, Stop
from warploom.debug.stops import FINDINGS
from warploom.debug.target import Target
from warploom.host.core_files.format import Core
from warploom.host.core_files.opening import open_core
from warploom.host.core_files.saving import Cause, Snapshot
from warploom.machine.memory.snapshots import MemorySnapshots


def opened_session(file: Path) -> tuple[Session, Stop]:
    """Returns a session on the launch of a core file, and where it stands: where the launch went
    wrong. Raises WarploomError where the file cannot be opened."""
    opened = open_core(file)
    kernel, context = opened.kernel, opened.kernel.context
    target = Target.of(kernel.program, opened.launch, context.memory, context.spec, context.options)
    session = Session(kernel, target)
    session.sources = opened.sources
    return session, _stand(session, opened.core)


def _stand(session: Session, core: Core) -> Stop:
    """Moves a session to where its launch failed."""
    if core.position is not None:
        stop = session.goto(core.position)
        return stop if core.reason in ("position", "launch") else session.go_on()
    for event, tool in FINDINGS.items():
        if tool in core.tools:
            session.catch(event)
    return session.start()


def save_core(session: Session, file: Path) -> None:
    """Saves the launch of a session to a core file that opens where it stands. Raises WarploomError
    where it cannot be written, and DebugError where the user has changed the launch."""
    if session.timeline.edited:
        raise DebugError(
            "the launch was changed by `set variable`, and a core file cannot contain such a change"
        )
    error, position = session.stepper.error, session.position
    cause = None if error is None else Cause.of(error, position)
    memory = session.target.memory
    with session.timeline.at_begin():
        image = MemorySnapshots(
            memory, allocates=session.target.allocates, constants=True
        ).capture()
        snapshot = Snapshot.of(session.kernel, session.launch, image)
        snapshot.save(file, cause or Cause("position", "", position))
    session.goto(position)
