"""Runs a kernel in a process of its own for the server: reads a request, and writes a trace, a
verdict or a refusal.

Nothing that a kernel does here affects the server: the process has limits (`ui.child_limits`), and
the server ends it after a time limit. It ends with the server, however that ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from warploom.core.errors import WarploomError
from warploom.host.programs.confinement import Confinement
from warploom.ui.child_limits import end_run, end_with, limit_resources
from warploom.ui.schema import Assignment, ExploreRequest, LaunchRequest, Refusal

TRACE, VERDICT, EXPLORED, REFUSAL = b"T", b"V", b"E", b"R"
"""The first byte of an answer, by what follows."""

Requested = LaunchRequest | Assignment | ExploreRequest


class Job(msgspec.Struct, frozen=True):
    """A request for the child process, one of the three kinds, and what its sources may use."""

    confinement: Confinement
    launch: LaunchRequest | None = None
    assignment: Assignment | None = None
    explored: ExploreRequest | None = None

    @classmethod
    def of(cls, request: Requested, confinement: Confinement) -> Job:
        """Returns the job of a request."""
        if isinstance(request, LaunchRequest):
            return cls(confinement, launch=request)
        if isinstance(request, ExploreRequest):
            return cls(confinement, explored=request)
        return cls(confinement, assignment=request)


TOO_MUCH = "The run needs more memory than --memory allows."

LENGTH_BYTES = 8
"""The size of the number in front of a request, little-endian: the request's length in bytes."""


def main() -> None:
    """Reads a request from the standard input, and writes the answer to the standard output.

    The input stays open as long as the server runs. The arguments are the bytes of memory and the
    seconds that the run may use, and the folder of its temporary files.
    """
    most, seconds, folder = int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
    stdin = sys.stdin.buffer
    length = int.from_bytes(stdin.read(LENGTH_BYTES), "little")
    given = stdin.read(length)
    if len(given) < length:
        end_run(folder)  # the server has ended
    end_with(stdin.fileno(), folder)
    limit_resources(most, seconds)
    sys.stdout.buffer.write(answer_to(msgspec.json.decode(given, type=Job), most))
    sys.stdout.buffer.flush()


def answer_to(job: Job, most: int) -> bytes:
    """Returns the trace of a launch on a device with `most` bytes of memory, the verdict on an
    assignment, the launch of an explorable, or why there is none of them."""
    from warploom.ui.record import confined, refusal_of

    try:
        with confined(job.confinement):
            return _result(job, most)
    except WarploomError as error:
        refusal = refusal_of(error)
    except MemoryError:
        refusal = Refusal("memory", TOO_MUCH)
    return REFUSAL + msgspec.json.encode(refusal)


def _result(job: Job, most: int) -> bytes:
    """Returns what is asked for, and what it is."""
    if job.launch is not None:
        from warploom.ui.record import record

        return TRACE + record(job.launch, most).to_bytes()
    if job.explored is not None:
        from warploom.ui.explorables.recorded import explore

        return EXPLORED + msgspec.msgpack.encode(explore(job.explored, most))
    from warploom.ui.grading import grade

    assert job.assignment is not None
    given = job.assignment
    verdict = grade(given.lesson, given.source, given.name or None)
    return VERDICT + msgspec.json.encode(verdict)


if __name__ == "__main__":
    main()
