"""Runs tests of other projects, a seeded sample of them, on the software GPU, and counts by cause
what fails: the tables of docs/drop-in.md and docs/pytorch.md.

    python tools/sampled_tests.py --sample 300 [--seed 1] [--results FILE] [--seconds 60]
        [--device h100] [--caching-allocator] [--only REGEX] [--again REGEX]
        -- ARGUMENT OF PYTEST ...

Tests run one after another in one process, each within a limit of processor time. After an error
that CUDA calls sticky, and where a test takes the process with it or is out of time, the rest go on
in a new one. Results are
kept, so that the next run goes on where one ended; `--again` repeats failures whose causes fit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

STICKY = re.compile(
    r"illegal (memory )?address|unspecified launch failure|misaligned address|launch timed out"
    r"|device-side assert|IllegalAddress|LaunchFailure|MisalignedAddress|LaunchTimeout"
)
"""Errors after which CUDA leaves a process unable to go on."""

PLAN = "WARPLOOM_SAMPLED_TESTS"
"""The variable with what the process of the tests has to know."""

IDLE, BEGINNING = 5, 120
"""The process is ended after so many limits of a test without a result, and what it may take to
begin: machine code is not interrupted by the signal, and a test that waits uses no time."""


# ---- in the process of the tests ----------------------------------------------------------------


class TooLate(BaseException):
    """A test has used up its time."""


class Sampling:
    """Chooses the tests, limits each, and writes a line for each that ended."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan, self.results = plan, Path(plan["results"])
        self.done = {row["test"] for row in rows(self.results)}
        self.late = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if re.search(self.plan["only"], item.nodeid)]
        if self.plan["sample"] and len(items) > self.plan["sample"]:
            items.sort(key=lambda item: item.nodeid)
            items[:] = random.Random(self.plan["seed"]).sample(items, self.plan["sample"])
        items.sort(key=lambda item: item.nodeid)
        items[:] = [item for item in items if item.nodeid not in self.done]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None]:
        self.write({"begun": item.nodeid})
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self) -> Generator[None]:
        def late(_signal: int, _frame: FrameType | None) -> None:
            self.late = True
            raise TooLate("out of time")

        self.late = False
        signal.signal(signal.SIGPROF, late)
        signal.setitimer(signal.ITIMER_PROF, self.plan["seconds"])
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, None]:
        report = (yield).get_result()
        if report.when != "call" and report.passed:
            return
        why = ""
        if report.failed and call.excinfo is not None:
            why = f"{call.excinfo.typename}: {call.excinfo.value}"
            why = "out of time" if self.late else why
        elif report.skipped:
            why = str(report.longrepr)
        outcome = report.outcome if report.when == "call" or report.skipped else "failed"
        row = {"test": item.nodeid, "outcome": outcome, "seconds": round(call.duration, 2)}
        self.write({**row, "why": why[:2000]})
        if STICKY.search(why) or self.late:  # a call that was interrupted may leave an error, too
            item.session.shouldstop = "an error that stays"

    def write(self, row: dict[str, Any]) -> None:
        with self.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Called by pytest where this file is a plugin."""
    if PLAN in os.environ:
        config.pluginmanager.register(Sampling(json.loads(os.environ[PLAN])), "sampling")


# ---- around it ----------------------------------------------------------------------------------


def rows(results: Path) -> list[dict[str, Any]]:
    """Returns the results of tests: the last of each, in order."""
    text = results.read_text("utf-8") if results.exists() else ""
    found = [json.loads(line) for line in text.splitlines()]
    return [*{row["test"]: row for row in found if "test" in row}.values()]


def unfinished(results: Path) -> str:
    """Returns the test that took the process with it, if one did."""
    text = results.read_text("utf-8") if results.exists() else ""
    last = json.loads(text.splitlines()[-1]) if text else {}
    return last.get("begun", "")


def run(command: list[str], environment: dict[str, str], results: Path, seconds: float) -> int:
    """Runs a process of tests; returns its exit status, -9 where it had no result for too long."""
    process = subprocess.Popen(command, env=environment)
    size, changed = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(1)
        now = results.stat().st_size if results.exists() else 0
        if now != size:
            size, changed = now, time.monotonic()
        if time.monotonic() - changed > IDLE * seconds + BEGINNING:
            process.kill()
            process.wait()
            return -signal.SIGKILL
    return process.returncode


def cause(why: str) -> str:
    """Returns what failures of one kind have in common: no numbers, no names of the text's own."""
    first = next((line for line in why.splitlines() if line.strip()), "")
    first = re.sub(r"0x[0-9a-f]+|\d+", "N", first)
    return re.sub(r"\s+", " ", re.sub(r"/\S+", "...", first))[:110].strip()


def table(found: list[dict[str, Any]], key: Callable[[dict[str, Any]], str]) -> str:
    """Returns counts of the outcomes, by file, and the causes of what failed."""
    lines = ["| tests | run | passed | skipped | failed |", "| --- | --- | --- | --- | --- |"]
    for name in sorted({key(row) for row in found}):
        counts = Counter(row["outcome"] for row in found if key(row) == name)
        run = sum(counts.values())
        lines.append(
            f"| {name} | {run} | {counts['passed']} | {counts['skipped']} | {counts['failed']} |"
        )
    lines += ["", "| count | cause |", "| --- | --- |"]
    causes = Counter(cause(row["why"]) for row in found if row["outcome"] == "failed")
    lines += [f"| {count} | {why.replace('|', '/')} |" for why, count in causes.most_common()]
    return "\n".join(lines)


def main() -> None:
    """Runs what the command line asks for, and prints the table."""
    from warploom.clients.environment import environment_for
    from warploom.clients.settings import Settings

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--sample", type=int, default=0, help="so many tests, drawn; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="what a test may take")
    parser.add_argument("--device", default="h100")
    parser.add_argument("--caching-allocator", action="store_true", help="use PyTorch's own")
    parser.add_argument("--only", default="", help="tests whose names fit this expression")
    parser.add_argument("--again", help="repeat failures whose causes fit this expression")
    parser.add_argument("--results", type=Path, default=Path("sampled_tests.jsonl"))
    parser.add_argument("pytest", nargs="+", help="arguments of pytest")
    given = parser.parse_args()
    results: Path = given.results.resolve()
    if given.again is not None:
        kept = [
            r
            for r in rows(results)
            if r["outcome"] != "failed" or not re.search(given.again, r["why"])
        ]
        results.write_text("".join(json.dumps(row) + "\n" for row in kept), "utf-8")
    plan = {name: getattr(given, name) for name in ("sample", "seed", "seconds", "only")}
    environment = environment_for(
        Settings(given.device, report="none", caching_allocator=given.caching_allocator)
    )
    environment[PLAN] = json.dumps({**plan, "results": str(results)})
    environment["PYTHONPATH"] += f":{Path(__file__).parent}"
    options = ["-p", Path(__file__).stem, "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
    while True:
        before = len(rows(results))
        command = [sys.executable, "-m", "pytest", *options, *given.pytest]
        status = run(command, environment, results, given.seconds)
        if test := unfinished(results):
            why = "out of time" if status == -signal.SIGKILL else f"the process ended: {status}"
            row = {"test": test, "outcome": "failed", "seconds": 0, "why": why}
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        elif status != pytest.ExitCode.INTERRUPTED or len(rows(results)) == before:
            break
    print(table(rows(results), lambda row: row["test"].partition("::")[0]))


if __name__ == "__main__":
    main()
