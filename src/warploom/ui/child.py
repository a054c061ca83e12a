"""Runs a kernel in a process of its own for the server: reads a request, and writes a trace, a
verdict or a refusal.

Nothing that a kernel does here affects the server: the process has a limit of memory, and the
server ends it after a time limit.
"""

from __future__ import annotations

import sys

import msgspec

from warploom.core.errors import WarploomError
from warploom.ui.schema import Assignment, LaunchRequest, Refusal

TRACE, VERDICT, REFUSAL = b"T", b"V", b"R"
"""The first byte of an answer, by what follows."""

Requested = LaunchRequest | Assignment

LAUNCH, GRADE = "launch", "grade"
"""The kinds of requests."""

TOO_MUCH = "The run wanted more memory than it may have (--memory)."

OWN_BYTES = 6 << 30
"""Addresses that the interpreter, the compilers and their libraries reserve at most; they use a
small part of them (`ui.runner` watches how much)."""


def main() -> None:
    """Read a request from the standard input, write the answer to the standard output."""
    kind, most = sys.argv[1], int(sys.argv[2])
    limit_memory(most)
    given = sys.stdin.buffer.read()
    request: Requested
    if kind == GRADE:
        request = msgspec.json.decode(given, type=Assignment)
    else:
        request = msgspec.json.decode(given, type=LaunchRequest)
    sys.stdout.buffer.write(answer_to(request, most))


def limit_memory(most: int) -> None:
    """Bound the addresses that this process can reserve: so many bytes for each of two devices,
    which reserve all of their memory at once (`ui.record` makes one to time a launch, and one to
    trace it), and as many for all else."""
    try:
        import resource
    except ImportError:  # systems without such limits
        return
    whole = OWN_BYTES + 3 * most
    resource.setrlimit(resource.RLIMIT_AS, (whole, whole))


def answer_to(request: Requested, most: int) -> bytes:
    """Returns the trace of a launch on a device with `most` bytes of memory, the verdict on an
    assignment, or why there is neither."""
    from warploom.ui.record import record, refusal_of

    try:
        if isinstance(request, LaunchRequest):
            return TRACE + record(request, most).to_bytes()
        from warploom.ui.grading import grade

        return VERDICT + msgspec.json.encode(grade(request.lesson, request.source))
    except WarploomError as error:
        refusal = refusal_of(error)
    except MemoryError:
        refusal = Refusal("memory", TOO_MUCH)
    return REFUSAL + msgspec.json.encode(refusal)


if __name__ == "__main__":
    main()
