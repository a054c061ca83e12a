"""Runs kernels for the server: each in a child process, which ends when its time is up."""

from __future__ import annotations

import asyncio
import mmap
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from warploom.ui.child import GRADE, LAUNCH, REFUSAL, TOO_MUCH, TRACE, VERDICT, Requested
from warploom.ui.schema import LaunchRequest, Refusal

OWN_RESIDENT = 512 << 20
"""Memory of a run for the interpreter, the compilers and their libraries, which use some 300 MiB;
`Limits.memory` comes on top."""

LOOKS_PER_SECOND = 50

PAGE = mmap.PAGESIZE


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of runs: seconds and bytes of memory each, and how many go on at once."""

    seconds: float = 30.0
    memory: int = 4 << 30
    runs: int = 2


async def run(request: Requested, limits: Limits) -> bytes | Refusal:
    """Returns the bytes of a launch's trace, the JSON of the verdict on an assignment, or why
    there is neither."""
    kind = LAUNCH if isinstance(request, LaunchRequest) else GRADE
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "warploom.ui.child", kind, str(limits.memory)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    asked = msgspec.json.encode(request)
    answering = asyncio.create_task(child.communicate(asked))
    watching = asyncio.create_task(too_large(child.pid, OWN_RESIDENT + limits.memory))
    try:
        await asyncio.wait(
            (answering, watching), timeout=limits.seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if not answering.done():
            return Refusal("memory", TOO_MUCH) if watching.done() else _late(limits)
        answer, wrong = answering.result()
    finally:
        watching.cancel()
        if child.returncode is None:
            child.kill()
            await child.wait()
        await asyncio.wait((answering,))
    if answer[:1] in (TRACE, VERDICT):
        return answer[1:]
    if answer[:1] == REFUSAL:
        return msgspec.json.decode(answer[1:], type=Refusal)
    if child.returncode == -9 or b"MemoryError" in wrong or b"bad_alloc" in wrong:
        return Refusal("memory", TOO_MUCH)
    last = wrong.decode(errors="replace").strip().rpartition("\n")[2]
    return Refusal("stopped", f"The process of the run ended with {child.returncode}. {last}")


def _late(limits: Limits) -> Refusal:
    return Refusal(
        "time",
        f"The run was stopped after {limits.seconds:g} seconds (--seconds). If the kernel never"
        f" ends, look for the loop; bound it with max. instructions to see where it is.",
    )


async def too_large(pid: int, most: int) -> None:
    """Wait until a process has more than so many bytes of physical memory.

    Device memory is reserved at once and filled as kernels use it, so that no limit on addresses
    bounds what is used. Without /proc (other systems than Linux) this waits for ever.
    """
    status = Path(f"/proc/{pid}/statm")
    while True:
        try:
            resident = int(status.read_text().split()[1]) * PAGE
        except (OSError, IndexError, ValueError):
            resident = 0
        if resident > most:
            return
        await asyncio.sleep(1 / LOOKS_PER_SECOND)
