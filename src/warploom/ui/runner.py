"""Runs kernels for the server: each in a child process, which has limits of time, memory and
output, and ends with the server."""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
import sys
from asyncio.subprocess import Process
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from warploom.core.temporary import temporary_folder
from warploom.host.programs.confinement import Confinement
from warploom.llvm.disk_cache import cache_directory
from warploom.ui.child import (
    LENGTH_BYTES,
    REFUSAL,
    TOO_MUCH,
    Job,
    Requested,
)
from warploom.ui.schema import Refusal

OWN_RESIDENT = 512 << 20
"""Memory of a run for the interpreter, the compilers and their libraries, which use some 300 MiB;
`Limits.memory` comes on top."""

LIMITED = frozenset(["time", "memory", "output", "stopped"])
"""The kinds of refusals of runs that reached a limit."""

LOOKS_PER_SECOND = 50

PAGE = mmap.PAGESIZE

NOTHING = Confinement()
"""Entitles sources to no files but the toolkit's, and to options that name none."""


STDERR_BYTES = 64 << 10
"""So much of what a run writes to stderr is held; of more, the end."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of runs: seconds, bytes of memory and bytes of the answer of each, and how many go on
    at once."""

    seconds: float = 30.0
    memory: int = 4 << 30
    runs: int = 2
    output: int = 512 << 20


async def run(
    request: Requested, limits: Limits, confinement: Confinement = NOTHING
) -> bytes | Refusal:
    """Returns the bytes of a launch's trace, the JSON of the verdict on an assignment, the launch
    of an explorable, or why there is none of them; `confinement` is what sources may use. The child
    process and those that it started have ended then, and their temporary files are removed, also
    if this coroutine is cancelled."""
    job = Job.of(request, confinement)
    with temporary_folder() as folder:
        return await _run(msgspec.json.encode(job), limits, folder)


async def _run(request: bytes, limits: Limits, folder: Path) -> bytes | Refusal:
    """Returns what `run` does for an encoded job, whose temporary files are in a folder."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "warploom.ui.child"),
        *(str(limits.memory), str(limits.seconds), str(folder)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=child_environment(folder),
        start_new_session=True,  # Ctrl-C is the server's, and all that the child starts has an end
    )
    answering = asyncio.create_task(_answer(child, request, limits.output))
    watching = asyncio.create_task(too_large(child.pid, OWN_RESIDENT + limits.memory))
    try:
        await asyncio.wait(
            (answering, watching), timeout=limits.seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if not answering.done():
            return Refusal("memory", TOO_MUCH) if watching.done() else late_refusal(limits)
        answer, wrong = answering.result()
    finally:
        watching.cancel()
        answering.cancel()
        await end_child(child)
    return read_answer(answer, limits) if answer else failure(wrong, child.returncode)


def child_environment(folder: Path) -> dict[str, str]:
    """Returns the variables of a child process that has its temporary files in a folder, and its
    cache where this process has it (without a home folder, among temporary files)."""
    temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    return {**os.environ, **temporary, "WARPLOOM_CACHE_DIR": str(cache_directory())}


async def _answer(child: Process, request: bytes, most: int) -> tuple[bytes, bytes]:
    """Returns what a child process writes to stdout, `most` bytes and one more of it at most, and
    to stderr. The pipe to the child stays open."""
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdin.write(len(request).to_bytes(LENGTH_BYTES, "little") + request)
    errors = asyncio.create_task(read_tail(child.stderr))
    try:
        answer = bytearray()
        while len(answer) <= most and (part := await child.stdout.read(1 << 20)):
            answer += part
        if len(answer) <= most:
            await child.wait()
            return bytes(answer), await errors
        return bytes(answer), b""
    finally:
        errors.cancel()


async def read_tail(stream: asyncio.StreamReader) -> bytes:
    """Returns the last STDERR_BYTES of a stream."""
    tail = b""
    while part := await stream.read(STDERR_BYTES):
        tail = (tail + part)[-STDERR_BYTES:]
    return tail


async def end_child(child: Process) -> None:
    """Ends a child process, and those that it started, which may be there when it has ended."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        elif child.returncode is None:
            child.kill()
    await child.wait()


def read_answer(answer: bytes, limits: Limits) -> bytes | Refusal:
    """Returns the result in the answer of a child process, or why there is none."""
    if len(answer) > limits.output:
        return long_refusal(limits)
    if answer[:1] == REFUSAL:
        return msgspec.json.decode(answer[1:], type=Refusal)
    return answer[1:]


def failure(wrong: bytes, status: int | None) -> Refusal:
    """Returns why a child process, which wrote `wrong` to stderr and ended with a status, gave no
    answer."""
    if status == -9 or b"MemoryError" in wrong or b"bad_alloc" in wrong:
        return Refusal("memory", TOO_MUCH)
    last = wrong.decode(errors="replace").strip().rpartition("\n")[2]
    ended = f"The process that ran the kernel exited with status {status}. {last}"
    return Refusal("stopped", ended)


def long_refusal(limits: Limits) -> Refusal:
    """Returns why there is no trace where it has more bytes than it may."""
    return Refusal(
        "output",
        f"The run was stopped: its trace has more than {limits.output >> 20} MiB. Record fewer"
        f" warps or steps.",
    )


def late_refusal(limits: Limits) -> Refusal:
    """Returns why there is no trace of a run that took too long."""
    return Refusal(
        "time",
        f"The run was stopped after {limits.seconds:g} seconds (--seconds). If the kernel never "
        "ends, set 'Max. instructions' to find the endless loop.",
    )


async def too_large(pid: int, most: int) -> None:
    """Waits until a process and those that it started have more than so many bytes of physical
    memory.

    Device memory is reserved at once and filled as kernels use it, so that no limit on addresses
    bounds what is used. Without /proc (other systems than Linux) this waits for ever.
    """
    while _resident_bytes(pid) <= most:
        await asyncio.sleep(1 / LOOKS_PER_SECOND)


def _resident_bytes(pid: int) -> int:
    """Returns the physical memory of a process and of those that it started: 0 if it has ended."""
    folder = Path(f"/proc/{pid}")
    try:
        resident = int((folder / "statm").read_text("ascii").split()[1]) * PAGE
        started = [file.read_text("ascii") for file in folder.glob("task/*/children")]
    except (OSError, IndexError, ValueError):
        return 0
    return resident + sum(_resident_bytes(int(child)) for line in started for child in line.split())
