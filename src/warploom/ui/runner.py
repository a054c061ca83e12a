"""Runs kernels for the server: each in a child process, which ends when its time is up."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass

import msgspec

from warploom.ui.child import REFUSAL, TRACE
from warploom.ui.schema import LaunchRequest, Refusal


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may take: seconds, and bytes of memory."""

    seconds: float = 30.0
    memory: int = 4 << 30


async def run(request: LaunchRequest, limits: Limits) -> bytes | Refusal:
    """The bytes of a launch's trace, or why there is none."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "warploom.ui.child", str(limits.memory)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    asked = msgspec.json.encode(request)
    try:
        answer, wrong = await asyncio.wait_for(child.communicate(asked), limits.seconds)
    except TimeoutError:
        return Refusal(
            "time",
            f"The run was stopped after {limits.seconds:g} seconds (--seconds). If the kernel never"
            f" ends, look for the loop; bound it with max. instructions to see where it is.",
        )
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if answer[:1] == TRACE:
        return answer[1:]
    if answer[:1] == REFUSAL:
        return msgspec.json.decode(answer[1:], type=Refusal)
    if child.returncode == -9 or b"MemoryError" in wrong or b"bad_alloc" in wrong:
        return Refusal("memory", "The run wanted more memory than it may have (--memory).")
    last = wrong.decode(errors="replace").strip().rpartition("\n")[2]
    return Refusal("stopped", f"The process of the run ended with {child.returncode}. {last}")
