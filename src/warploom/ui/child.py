"""The process in which the server runs a kernel: a request comes in, a trace or a refusal goes out.

Nothing that a kernel does here reaches the server: the process has a limit of memory, and whoever
started it ends it after a while.
"""

from __future__ import annotations

import sys

import msgspec

from warploom.core.errors import WarploomError
from warploom.ui.schema import LaunchRequest, Refusal

TRACE, REFUSAL = b"T", b"R"
"""What the first byte of an answer says that it is."""

TOO_MUCH = "The run wanted more memory than it may have (--memory)."

OWN_BYTES = 6 << 30
"""Addresses that the interpreter, the compilers and their libraries reserve at most; they use a
small part of them (`ui.runner` watches how much)."""


def main() -> None:
    """Read a request from the standard input, write the answer to the standard output."""
    most = int(sys.argv[1])
    limit_memory(most)
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=LaunchRequest)
    answer = answer_to(request, most)
    sys.stdout.buffer.write(answer)


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


def answer_to(request: LaunchRequest, most: int) -> bytes:
    """Returns the trace of a launch on a device with `most` bytes of memory, or why there is
    none."""
    from warploom.ui.record import record, refusal_of

    try:
        return TRACE + record(request, most).to_bytes()
    except WarploomError as error:
        refusal = refusal_of(error)
    except MemoryError:
        refusal = Refusal("memory", TOO_MUCH)
    return REFUSAL + msgspec.json.encode(refusal)


if __name__ == "__main__":
    main()
