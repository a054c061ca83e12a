"""Runs jobs of the server one after the other in a process that stays between them
(`ui.worker`): for sliders, whose runs take less time than a process needs to begin.

A job that waits, and whose client leaves, is never begun. A job that runs longer than it may, needs
too much memory, or whose client leaves, ends with its process; the next job has another one.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import Process
from contextlib import ExitStack
from dataclasses import dataclass, field

import msgspec

from warploom.core.host_cores import usable_cores
from warploom.core.temporary import temporary_folder
from warploom.ui.child import LENGTH_BYTES, TOO_MUCH, Job, Requested
from warploom.ui.runner import (
    NOTHING,
    OWN_RESIDENT,
    Limits,
    child_environment,
    end_child,
    failure,
    late_refusal,
    long_refusal,
    read_answer,
    read_tail,
    too_large,
)
from warploom.ui.schema import Refusal


@dataclass
class Worker:
    """A process for jobs, which begins with the first one."""

    limits: Limits
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _child: Process | None = None
    _folder: ExitStack = field(default_factory=ExitStack)

    @property
    def is_busy(self) -> bool:
        """Returns whether a job is in progress."""
        return self._turn.locked()

    async def run(self, request: Requested) -> bytes | Refusal:
        """Returns what a request asks for, or why there is none."""
        job = msgspec.json.encode(Job.of(request, NOTHING))
        async with self._turn:
            complete = False
            try:
                answer = await self._answer(self._child or await self._begin(), job)
                complete = isinstance(answer, bytes)
            finally:
                if not complete:
                    await self.end()
            return answer if isinstance(answer, Refusal) else read_answer(answer, self.limits)

    async def end(self) -> None:
        """Ends the process, if it has begun, and removes its temporary files."""
        child, self._child = self._child, None
        if child is not None:
            await end_child(child)
        self._folder.close()

    async def _begin(self) -> Process:
        """Returns the process, which begins."""
        folder = self._folder.enter_context(temporary_folder())
        self._child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "warploom.ui.worker"),
            *(str(self.limits.memory), str(folder)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=child_environment(folder),
            start_new_session=True,
        )
        return self._child

    async def _answer(self, child: Process, job: bytes) -> bytes | Refusal:
        """Returns the answer of a process to a job, or why there is none."""
        answering = asyncio.create_task(_exchange(child, job, self.limits))
        watching = asyncio.create_task(too_large(child.pid, OWN_RESIDENT + self.limits.memory))
        try:
            await asyncio.wait(
                (answering, watching),
                timeout=self.limits.seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if answering.done():
                return answering.result()
            return Refusal("memory", TOO_MUCH) if watching.done() else late_refusal(self.limits)
        finally:
            watching.cancel()
            answering.cancel()


@dataclass
class WorkerPair:
    """Two processes for jobs, so that a job does not wait for one that is in progress. The second
    process repeats the first job, to load the compilers; from then on it gets jobs while the first
    one is busy."""

    limits: Limits
    warmup: asyncio.Task[bytes | Refusal] | None = None
    """The second process's first job, once it has begun."""

    def __post_init__(self) -> None:
        self._first, self._second = Worker(self.limits), Worker(self.limits)

    async def run(self, request: Requested) -> bytes | Refusal:
        """Returns what a request asks for, or why there is none."""
        warm = self.warmup is not None and self.warmup.done()
        if warm and self._first.is_busy and not self._second.is_busy:
            return await self._second.run(request)
        answer = await self._first.run(request)
        if self.warmup is None and usable_cores() > 1:
            self.warmup = asyncio.create_task(self._second.run(request))
        return answer

    async def end(self) -> None:
        """Ends the processes, if they have begun, and removes their temporary files."""
        if self.warmup is not None:
            self.warmup.cancel()
        await self._first.end()
        await self._second.end()


async def _exchange(child: Process, job: bytes, limits: Limits) -> bytes | Refusal:
    """Returns the answer of a process to a job, or why there is none: the process has ended, or the
    answer is too long."""
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdin.write(len(job).to_bytes(LENGTH_BYTES, "little") + job)
    errors = asyncio.create_task(read_tail(child.stderr))
    try:
        length = int.from_bytes(await child.stdout.readexactly(LENGTH_BYTES), "little")
        if length > limits.output:
            return long_refusal(limits)
        return await child.stdout.readexactly(length)
    except asyncio.IncompleteReadError:
        await child.wait()
        return failure(await errors, child.returncode)
    finally:
        errors.cancel()
