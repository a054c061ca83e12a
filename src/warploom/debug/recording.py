"""Records the launch of a session for the view, and where the session stands in that recording."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.core.errors import WarploomError
from warploom.debug.inspection import DebugError
from warploom.debug.session import Session
from warploom.host.records.recording import recording_of
from warploom.host.records.tracing import trace_of
from warploom.observe.limits import TraceLimits
from warploom.observe.trace import Trace

STEPS = 4096
"""Steps that are recorded of a warp after the position."""

SLOW = 100_000
"""Positions up to which the reference machine records, which keeps registers."""


@dataclass(frozen=True)
class Recorded:
    """A trace, and the step and the warp in it at which a session stands."""

    trace: Trace
    step: int
    warp: int


def recorded(session: Session) -> Recorded:
    """Returns a trace of the block in focus. Raises DebugError where the user has changed the
    launch, which a trace cannot show, or where no block runs."""
    if session.timeline.edited:
        raise DebugError(
            "the launch was changed by `set variable`; the view cannot show such a change"
        )
    target, block, warps = session.target, session.focus.block, session.launch.warps_per_block
    issued = [_issued(session, block, warp) for warp in range(warps)]
    limits = TraceLimits(
        warps=warps, steps=max(issued) + STEPS, registers=warps, blocks=frozenset([block])
    )
    engine = "reference" if session.position <= SLOW else "compiled"
    position, error = session.position, None
    recording = recording_of(session.kernel, limits, engine)
    with session.timeline.at_begin():
        try:
            recording.execute(target.program, target.launch, target.memory, None)
        except WarploomError as wrong:
            error = wrong
    found = recording.recorded()
    session.goto(position)
    trace = trace_of(session.kernel, target.launch, engine, found, error, [])
    return Recorded(trace, sum(issued), session.focus.warp)


def _issued(session: Session, block: int, number: int) -> int:
    """Returns how many instructions a warp has executed."""
    warp = session.warp(block, number)
    if warp is None:
        raise DebugError(f"block {block} is not running now; choose a running block")
    running = session.stepper.has_warp and session.stepper.warp is warp
    return warp.state.issued + (warp.used if running else 0)
