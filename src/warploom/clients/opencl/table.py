"""The registry of OpenCL's entries, what an error in one becomes, and how it is reported."""

from __future__ import annotations

import traceback
from collections.abc import Sequence

from warploom.clients.driver.ordering import program_place
from warploom.clients.driver.results import DriverError
from warploom.clients.driver.table import explain
from warploom.clients.opencl.errors import ClError, Status, status_of
from warploom.clients.registry import Registry
from warploom.clients.session import session
from warploom.core.errors import WarploomError
from warploom.sanitize.findings import API, WARNING, Finding


def report_refusal(name: str, status: Status, why: str) -> None:
    """Records a call that was refused, with its line in the program, where programs are checked."""
    if API not in session().settings.tools:
        return
    place = program_place()
    reason = f": {why}" if why else ""
    message = f"{name} returned CL_{status.name}{reason}" + (
        f"\n    called at {place}" * bool(place)
    )
    session().findings.append(
        Finding(API, "refused call", WARNING, "host", place, "", (), "", message)
    )


def code_of(error: BaseException, name: str) -> int:
    """Returns the code for what a call raised."""
    match error:
        case ClError():
            report_refusal(name, error.status, error.explained)
            return error.status
        case DriverError():
            report_refusal(name, status_of(error), error.explained)
            return status_of(error)
        case WarploomError():
            explain(error)
            return status_of(error)
        case KeyboardInterrupt():
            # An error would be raised in its place by clients in Python.
            registry.interrupt()
            return Status.SUCCESS
        case MemoryError():
            return Status.OUT_OF_HOST_MEMORY
        case _:
            trouble = "".join(traceback.format_exception(error))
            explain(f"{name} failed because of a defect in Warploom:\n{trouble}")
            return Status.OUT_OF_RESOURCES


def code_of_missing(name: str, _words: Sequence[int]) -> int:
    """Returns the code for a function of an extension that the platform has not."""
    report_refusal(
        name,
        Status.INVALID_OPERATION,
        "the platform does not support the extension that defines this function",
    )
    return Status.INVALID_OPERATION


registry = Registry(code_of, code_of_missing, lambda: session().report_once())
entry = registry.entry
