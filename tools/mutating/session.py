"""Runs tests on mutants: a plugin of pytest that runs the tests once, records what each uses, and
then runs those that use a mutant's subject in a process in which the error is planted."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from mutating import rules, terms
from mutating.mutant import Mutant, Subject
from warploom.isa.spec import Operation
from warploom.isa.terms import Term

KILLED, SURVIVED, FAILED = 1, 0, 2
"""Exit statuses of the process of a mutant; FAILED: the error could not be planted."""


@dataclass(frozen=True)
class Run:
    """A process that runs the tests of a mutant: how many, since when, and the folder of what it
    compiles, which has the error and is not for others."""

    mutant: Mutant
    tests: int
    begin: float
    folder: Path


@dataclass(frozen=True)
class Verdict:
    """What tests did with a mutant: whether one failed (or did not end), and how many use it."""

    mutant: Mutant
    killed: bool
    tests: int


class Campaign:
    """Runs the collected tests once, and then those that concern each of `mutants`."""

    def __init__(self, mutants: Sequence[Mutant], workers: int, seconds: float) -> None:
        self.mutants, self.workers, self.seconds = mutants, workers, seconds
        self.verdicts: list[Verdict] = []
        self._users: dict[Subject, dict[pytest.Item, float]] = defaultdict(dict)
        self._used: set[Subject] = set()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Runs the campaign in place of the tests."""
        begin = time.monotonic()
        self._record(session)
        print(
            f"{len(session.items)} tests recorded in {time.monotonic() - begin:.0f} s", flush=True
        )
        self._run()
        return True

    def _record(self, session: pytest.Session) -> None:
        """Runs every test once without an error, and records its subjects and its seconds."""
        self._watch_terms()
        rules.watch(lambda name: self._used.add(("rule", name)))
        for item, following in _in_order(session.items):
            self._used.clear()
            begin = time.perf_counter()
            reports = runtestprotocol(item, log=False, nextitem=following)
            if any(report.failed for report in reports):
                raise pytest.UsageError(f"{item.nodeid} fails without an error")
            for subject in self._used:
                self._users[subject][item] = time.perf_counter() - begin

    def _watch_terms(self) -> None:
        """Records the operations whose terms are asked for from here on."""
        for name in ("terms_for", "combine", "answer"):
            original = getattr(Operation, name)

            def asked(operation: Operation, *args: Any, original: Any = original) -> Term:
                """Records the operation, and returns its terms."""
                self._used.add(terms.subject(operation))
                return original(operation, *args)

            setattr(Operation, name, asked)

    def _run(self) -> None:
        """Runs each mutant in a process of its own, `workers` at once."""
        running: dict[int, Run] = {}
        waiting = list(self.mutants)
        while waiting or running:
            while waiting and len(running) < self.workers:
                mutant = waiting.pop(0)
                users = self._users.get(mutant.subject, {})
                tests = sorted(users, key=users.__getitem__)
                folder = Path(tempfile.mkdtemp(prefix="mutant-"))
                run = Run(mutant, len(tests), time.monotonic(), folder)
                running[self._start(run, tests)] = run
            for process, run in list(running.items()):
                done, status = os.waitpid(process, os.WNOHANG)
                late = time.monotonic() - run.begin > self.seconds
                if not done and late:
                    os.kill(process, 9)
                    os.waitpid(process, 0)
                if done and os.waitstatus_to_exitcode(status) == FAILED:
                    raise AssertionError(
                        f"{run.mutant.subject}: {run.mutant.change} was not planted"
                    )
                if done or late:
                    del running[process]
                    shutil.rmtree(run.folder, ignore_errors=True)
                    self._note(Verdict(run.mutant, late or status != SURVIVED, run.tests))
            time.sleep(0.01)

    def _note(self, verdict: Verdict) -> None:
        """Adds a verdict, and prints it if the mutant survived."""
        self.verdicts.append(verdict)
        if not verdict.killed:
            kind, name = verdict.mutant.subject
            print(
                f"survived {verdict.tests:4} tests: {kind} {name}: {verdict.mutant.change}",
                flush=True,
            )

    def _start(self, run: Run, tests: Sequence[pytest.Item]) -> int:
        """Returns the process that plants an error and runs tests until one fails."""
        process = os.fork()
        if process:
            return process
        status = FAILED
        try:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), 1)
                os.dup2(nowhere.fileno(), 2)
            os.environ["WARPLOOM_CACHE_DIR"] = str(run.folder)
            run.mutant.plant()
            status = KILLED if _fails(tests) else SURVIVED
        finally:
            os._exit(status)


def _fails(tests: Sequence[pytest.Item]) -> bool:
    """Returns whether any of the tests fails."""
    return any(
        report.failed
        for item, following in _in_order(tests)
        for report in runtestprotocol(item, log=False, nextitem=following)
    )


def _in_order(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Yields the items, each with the one after it."""
    yield from zip(items, (*items[1:], None), strict=False)
