"""A launch with its arguments: what is done before it runs, and after it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from warploom.host.arguments import Arguments
from warploom.host.core_files.saving import CoreSaver
from warploom.host.engines import Execute, Progress
from warploom.host.loaded import LoadedKernel
from warploom.host.run import Done, Execution, Run
from warploom.machine.cancellation import Cancellation
from warploom.machine.compiled.compile_time import compile_seconds
from warploom.machine.launch import Launch
from warploom.program.program import PARAMETERS
from warploom.sanitize.findings import Finding

WORKSPACE_BYTES = 8

Result = TypeVar("Result")


@dataclass(frozen=True)
class LaunchHooks:
    """Holds what follows a launch: `on_run` is called with each that ended well, `core` saves those
    that go wrong."""

    on_run: Callable[[Run], object] | None = None
    core: CoreSaver | None = None


class LaunchableKernel(LoadedKernel):
    """A kernel with the hooks of its device."""

    hooks = LaunchHooks()


@dataclass(frozen=True)
class ReadyLaunch:
    """A launch of a kernel that has its arguments, and can run once."""

    kernel: LaunchableKernel
    launch: Launch
    arguments: Arguments
    cancellation: Cancellation

    @classmethod
    def of(cls, kernel: LaunchableKernel, launch: Launch, arguments: Arguments) -> ReadyLaunch:
        """Return a launch with its arguments; a cooperative one with the memory in which its blocks
        wait for each other: its size, and a count of theirs."""
        memory, globals, workspace = kernel.context.memory, launch.globals, 0
        if PARAMETERS in kernel.program.slots:
            globals = (*globals, arguments.show(memory).address)
        if launch.cooperative:
            counters = np.array([WORKSPACE_BYTES, 0], np.uint32)
            workspace = arguments.lend(counters, "the workspace of the grid", memory).address
        cancellation = Cancellation()
        filled = launch.filled(bytes(arguments.data), globals, workspace, cancellation)
        return cls(kernel, filled, arguments, cancellation)

    def begin(self, work: Callable[[], Result]) -> Callable[[], Result]:
        """Keep from now on what the launch can use; return its work, which at its end gives back
        the arguments, and what was freed while it could use it."""
        return partial(self._finish, self.kernel.context.memory.begin_launch(), work)

    def _finish(self, number: int, work: Callable[[], Result]) -> Result:
        """Do the work of a launch with that number, and end it."""
        try:
            self.cancellation.check()
            return work()
        finally:
            self.kernel.context.memory.end_launch(number)
            self.arguments.release()

    def execute(
        self,
        execute: Execute,
        progress: Progress | None = None,
        findings: Sequence[Finding] | None = None,
    ) -> Execution:
        """Run the launch; host arrays get their results back if it ended well. `findings` is what
        the execution fills, where it is sanitized."""
        kernel, context, hooks = self.kernel, self.kernel.context, self.kernel.hooks
        if hooks.core is not None:
            execute = hooks.core.wraps(kernel, execute, findings)
        context.turn.take(self.cancellation)
        try:
            program = kernel.program
            started, compiled = time.perf_counter(), compile_seconds()
            counted = execute(program, self.launch, context.memory, progress)
            compiled = compile_seconds() - compiled
            seconds = time.perf_counter() - started - compiled
        finally:
            context.turn.give_back()
        self.arguments.copy_back()
        if findings is None:
            context.memory.unwritten.clear()  # it may have written anything
        execution = Execution(counted, seconds, compiled, findings=tuple(findings or ()))
        if hooks.on_run is not None:
            hooks.on_run(Run(kernel, self.launch, Done(execution)))
        return execution
