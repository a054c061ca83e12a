"""The process in which the server runs a kernel: a request comes in, a trace or a refusal goes out.

Nothing that a kernel does here reaches the server: the process has a limit of memory, and whoever
started it ends it after a while.
"""

from __future__ import annotations

import sys

import msgspec

from warploom.core.errors import WarploomError
from warploom.machine.memory import CAPACITY
from warploom.ui.schema import LaunchRequest, Refusal

TRACE, REFUSAL = b"T", b"R"
"""What the first byte of an answer says that it is."""

OWN_BYTES = 6 << 30
"""What the interpreter, the compilers and their libraries reserve at most."""


def main() -> None:
    """Read a request from the standard input, write the answer to the standard output."""
    limit_memory(int(sys.argv[1]))
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=LaunchRequest)
    answer = answer_to(request)
    sys.stdout.buffer.write(answer)


def limit_memory(most: int) -> None:
    """Let this process have so many bytes beside what it reserves for the device."""
    try:
        import resource
    except ImportError:  # systems without such limits
        return
    whole = CAPACITY + OWN_BYTES + most
    resource.setrlimit(resource.RLIMIT_AS, (whole, whole))


def answer_to(request: LaunchRequest) -> bytes:
    """The trace of a launch, or why there is none."""
    from warploom.ui.record import record, refusal_of

    try:
        return TRACE + record(request).to_bytes()
    except WarploomError as error:
        refusal = refusal_of(error)
    except MemoryError:
        refusal = Refusal("memory", "The run wanted more memory than it may have (--memory).")
    return REFUSAL + msgspec.json.encode(refusal)


if __name__ == "__main__":
    main()
