"""Runs cases in a worker: kills it when a case takes too long, and starts another when it dies."""

from __future__ import annotations

import multiprocessing
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from fuzzing.cases import DEATH, HANG, Case, Outcome
from fuzzing.worker import serve

START_SECONDS = 600
"""How long a worker may take to load both machines, which an empty cache has to be filled for."""

SPAWN = multiprocessing.get_context("spawn")


class WorkerFailure(Exception):
    """A worker does not start: that is an error of the fuzzer's, or of the machine."""


class Supervisor:
    """One worker at a time. `scale` multiplies the time that cases may take."""

    def __init__(self, plant: str = "", scale: float = 1.0) -> None:
        self.plant, self.scale = plant, scale
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def start(self) -> None:
        """Starts a worker if there is none; it is ready when its connection has something."""
        if self._process is None:
            self._connection, other = SPAWN.Pipe()
            self._process = SPAWN.Process(target=serve, args=(other, self.plant), daemon=True)
            self._process.start()
            other.close()
            if not self._connection.poll(START_SECONDS):
                raise WorkerFailure(f"a worker does not start within {START_SECONDS} s")
            try:
                self._connection.recv()
            except EOFError:
                raise WorkerFailure("a worker ends before it has begun") from None

    def run(self, asked: Case | tuple[str, int], seconds: float) -> tuple[Outcome, Case | None]:
        """Returns the outcome of a case, or of the case of a target and a seed; with the case,
        where something is wrong and the worker survives it."""
        self.start()
        assert self._connection is not None
        began = time.monotonic()
        try:
            self._connection.send(asked)
            if not self._connection.poll(seconds * self.scale):
                self.stop()
                message = f"it does not end within {seconds * self.scale:g} s"
                return Outcome(HANG, HANG, message, time.monotonic() - began), None
            outcome, case, retires = self._connection.recv()
        except (EOFError, ConnectionError):
            return self._dead(time.monotonic() - began), None
        if retires:
            self.stop()
        return outcome, case

    def _dead(self, seconds: float) -> Outcome:
        """Returns the outcome of a case that ended the worker."""
        assert self._process is not None
        self._process.join(10)
        code = self._process.exitcode or 0
        cause = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        self.stop()
        return Outcome(DEATH, f"{DEATH} {cause}", f"the process ends with {cause}", seconds)

    def stop(self) -> None:
        """Ends the worker."""
        if self._process is not None and self._connection is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
        self._process = self._connection = None
