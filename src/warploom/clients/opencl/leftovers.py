"""Reports at the end what a program has not released, and which commands never ended."""

from __future__ import annotations

from collections import defaultdict

from warploom.clients.host_stack import is_program, shown_frames
from warploom.clients.opencl.commands import never_ended
from warploom.clients.opencl.devices import ClDevice
from warploom.clients.opencl.memory import MemObject
from warploom.clients.opencl.objects import ClObject, handles
from warploom.clients.opencl.platforms import Platform
from warploom.clients.session import session
from warploom.sanitize.findings import API, WARNING, Finding


def add_leftovers() -> None:
    """Adds a finding for each kind of object and place that made it; memory is for the tool "leak".
    The objects of Python end with it, in no order."""
    if API not in session().settings.tools:
        return
    waiting = never_ended()
    if waiting:
        number = len(waiting)
        _add(
            "unended command",
            f"{number} command{'s' * (number > 1)} never completed, because the program did not "
            "set the status of a user event",
            "",
        )
    if not is_program():
        return
    groups: dict[tuple[str, tuple[str, ...]], int] = defaultdict(int)
    for made in handles.all(ClObject):
        if made.references > 0 and not isinstance(made, MemObject | Platform | ClDevice):
            groups[made.what, shown_frames(made.made)] += 1
    for (what, frames), number in groups.items():
        place = frames[0].rpartition("(")[2].rstrip(")") if frames else ""
        made = f"\n    created by {frames[0]}" if frames else ""
        _add(
            f"{what} not released",
            f"{number} {what}{'s were' if number > 1 else ' was'} never released{made}",
            place,
        )


def _add(kind: str, message: str, place: str) -> None:
    session().findings.append(Finding(API, kind, WARNING, "host", place, "", (), "", message))
