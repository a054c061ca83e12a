"""Runs a kernel in a process of its own for the server: reads a request, and writes a trace, a
verdict or a refusal.

Nothing that a kernel does here affects the server: the process has limits (`ui.child_limits`), and
the server ends it after a time limit. It ends with the server, however that ends.
"""

from __future__ import annotations

import sys

import msgspec

from warploom.core.errors import WarploomError
from warploom.ui.child_limits import end_with, limit_resources
from warploom.ui.schema import Assignment, LaunchRequest, Refusal

TRACE, VERDICT, REFUSAL = b"T", b"V", b"R"
"""The first byte of an answer, by what follows."""

Requested = LaunchRequest | Assignment

LAUNCH, GRADE = "launch", "grade"
"""The kinds of requests."""

TOO_MUCH = "The run wanted more memory than it may have (--memory)."

LENGTH_BYTES = 8
"""The size of the number in front of a request, little-endian: the request's length in bytes."""


def main() -> None:
    """Read a request from the standard input, write the answer to the standard output.

    The input stays open as long as the server runs.
    """
    kind, most, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    stdin = sys.stdin.buffer
    given = stdin.read(int.from_bytes(stdin.read(LENGTH_BYTES), "little"))
    end_with(stdin.fileno())
    limit_resources(most, seconds)
    request: Requested
    if kind == GRADE:
        request = msgspec.json.decode(given, type=Assignment)
    else:
        request = msgspec.json.decode(given, type=LaunchRequest)
    sys.stdout.buffer.write(answer_to(request, most))
    sys.stdout.buffer.flush()


def answer_to(request: Requested, most: int) -> bytes:
    """Returns the trace of a launch on a device with `most` bytes of memory, the verdict on an
    assignment, or why there is neither."""
    from warploom.ui.record import record, refusal_of

    try:
        if isinstance(request, LaunchRequest):
            return TRACE + record(request, most).to_bytes()
        from warploom.ui.grading import grade

        verdict = grade(request.lesson, request.source, request.name or None)
        return VERDICT + msgspec.json.encode(verdict)
    except WarploomError as error:
        refusal = refusal_of(error)
    except MemoryError:
        refusal = Refusal("memory", TOO_MUCH)
    return REFUSAL + msgspec.json.encode(refusal)


if __name__ == "__main__":
    main()
