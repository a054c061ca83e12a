"""A run of the fuzzer: gives seeds to workers, and collects what they find."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from fuzzing.cases import Case, Finding, Outcome, Target
from fuzzing.reduction import reduce_content
from fuzzing.regressions import FOLDER, write
from fuzzing.supervisor import Supervisor

SEEDS = 1_000_000
"""Seeds of a run: those of the run with seed n begin at n times this."""


@dataclass(frozen=True)
class Plan:
    """What to run: for so many seconds, so many examples of each target, or until so many errors
    are found, whichever is first.

    A finding is made smaller for `reduction_seconds`. `plant` is for tests of the fuzzer (see
    `worker.serve`); `scale` multiplies the time that cases may take; `folder` is where findings go.
    """

    targets: tuple[Target, ...]
    seed: int = 0
    seconds: float = float("inf")
    examples: int = SEEDS
    errors: int = SEEDS
    workers: int = 2
    reduction_seconds: float = 120.0
    plant: str = ""
    scale: float = 1.0
    folder: Path = FOLDER


@dataclass
class Tally:
    """What was run of a target."""

    begun: int = 0
    examples: int = 0
    processor_seconds: float = 0.0


class Campaign:
    """Runs a plan. `report` hears of each new finding. `sides`: those of conditions in the
    semantics of instructions that lanes took."""

    def __init__(self, plan: Plan, report: Callable[[Finding], object]) -> None:
        self.plan, self._report = plan, report
        self.tallies = {target.name: Tally() for target in plan.targets}
        self.findings: dict[tuple[str, str], Finding] = {}
        self.sides: set[str] = set()
        self._lock = threading.Lock()
        self._failures: list[BaseException] = []
        self._deadline = float("inf")

    def run(self) -> list[Finding]:
        """Runs everything that is planned; returns what was found. Raises what a supervisor
        raised."""
        self._deadline = time.monotonic() + self.plan.seconds
        threads = [threading.Thread(target=self._work) for _ in range(self.plan.workers)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            self._deadline = 0
            for thread in threads:
                thread.join()
        for failure in self._failures:
            raise failure
        return list(self.findings.values())

    def _work(self) -> None:
        """Runs examples in one worker until nothing is left."""
        supervisor = Supervisor(self.plan.plant, self.plan.scale)
        try:
            while (chosen := self._next()) is not None:
                target, seed = chosen
                outcome, case = supervisor.run((target.name, seed), target.seconds)
                if self._count(target, seed, outcome):
                    case = case or target.generate(seed)
                    self._settle(supervisor, self.findings[target.name, outcome.signature], case)
        except BaseException as failure:
            self._failures.append(failure)
        finally:
            supervisor.stop()

    def _next(self) -> tuple[Target, int] | None:
        """Returns the target that has had the least of its share of time, and its next seed."""
        with self._lock:
            if time.monotonic() >= self._deadline or self._failures:
                return None
            if len(self.findings) >= self.plan.errors:
                return None
            left = [t for t in self.plan.targets if self.tallies[t.name].begun < self.plan.examples]
            if not left:
                return None
            target = min(left, key=self._share)
            tally = self.tallies[target.name]
            tally.begun += 1
            return target, self.plan.seed * SEEDS + tally.begun - 1

    def _share(self, target: Target) -> tuple[float, int]:
        tally = self.tallies[target.name]
        return tally.processor_seconds / target.weight, tally.begun

    def _count(self, target: Target, seed: int, outcome: Outcome) -> bool:
        """Counts an example; returns whether it shows an error that is new."""
        with self._lock:
            tally = self.tallies[target.name]
            tally.examples += 1
            tally.processor_seconds += outcome.processor_seconds
            self.sides.update(outcome.sides)
            outcome = replace(outcome, sides=())
            if not outcome.kind:
                return False
            key = target.name, outcome.signature
            known = self.findings.get(key)
            if known is not None:
                known.seeds.append(seed)
                return False
            self.findings[key] = Finding(target.name, seed, outcome, [seed])
            return True

    def _settle(self, supervisor: Supervisor, finding: Finding, case: Case) -> None:
        """Makes the input of a finding smaller, and writes it to a file."""
        until = time.monotonic() + self.plan.reduction_seconds
        target = next(one for one in self.plan.targets if one.name == finding.target)

        def fails(content: str | bytes) -> bool:
            if time.monotonic() > until:
                return False
            trial, _ = supervisor.run(replace(case, content=content), target.seconds)
            return trial.signature == finding.outcome.signature

        if fails(case.content):  # else it depends on what ran before it
            case = replace(case, content=reduce_content(case.content, fails))
        finding.file = str(write(case, finding, self.plan.folder))
        self._report(finding)
