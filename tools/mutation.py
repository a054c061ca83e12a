"""Plants errors in the terms of instructions and in the rules of costs, and counts how many of them
the tests detect.

    python tools/mutation.py --count 500 --seed 7      exit status 1 if fewer than 95 % are detected
    python tools/mutation.py --count 500 --only 12     one of them again

Half of the errors are in terms, half in rules. Each is planted in a process of its own, which runs
the tests of tests/isa and tests/cost that use what it is in, until one fails.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("tools", "tests/machine")]

import pytest  # noqa: E402
from mutating.mutant import Mutant  # noqa: E402
from mutating.rules import draw_rule  # noqa: E402
from mutating.session import Campaign  # noqa: E402
from mutating.terms import draw_term  # noqa: E402

Draw = Callable[[random.Random], Mutant | None]

TESTS = ("tests/isa", "tests/cost")
KINDS: dict[str, Draw] = {"term": draw_term, "rule": draw_rule}
AGREEMENTS = (
    "tests/cost/test_costs.py::test_compiled_rules_count_as_python_does",
    "tests/cost/test_costs.py::test_the_costs_of_accesses_add_up",
    "tests/cost/test_costs.py::test_deferred_accesses_cost_what_each_does",
    "tests/cost/test_caches.py::test_compiled_caches_count_as_python_does",
)
"""Tests that compare rules with their compiled code: without the error that is planted, here."""

ENOUGH = 0.95
"""The share of errors that tests have to detect."""


def draw(seed: int, count: int, kinds: Sequence[Draw]) -> list[Mutant]:
    """Returns errors of the kinds by turns."""
    mutants: list[Mutant] = []
    rng = random.Random(seed)
    while len(mutants) < count:
        mutant = kinds[len(mutants) % len(kinds)](rng)
        if mutant is not None:
            mutants.append(mutant)
    return mutants


def main(words: list[str]) -> int:
    """Runs the tests on the errors of a seed."""
    parser = argparse.ArgumentParser(
        description="Plants errors, and counts those that tests detect."
    )
    parser.add_argument("--count", type=int, default=500, help="how many errors (default: 500)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (default: 0)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--only", type=int, metavar="N", help="the N-th error alone")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--seconds", type=float, default=120, help="of an error's tests, at most")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="files or folders of tests")
    given = parser.parse_args(words)
    mutants = draw(given.seed, given.count, [KINDS[kind] for kind in given.kinds])
    if given.only is not None:
        mutants = [mutants[given.only]]
    campaign = Campaign(mutants, given.workers, given.seconds)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
    options += [f"--deselect={ROOT / test}" for test in AGREEMENTS]
    status = pytest.main([*options, *(str(ROOT / path) for path in given.tests)], [campaign])
    if status != pytest.ExitCode.OK:
        return int(status)
    for kind in given.kinds:
        verdicts = [each for each in campaign.verdicts if each.mutant.subject[0] == kind]
        killed = sum(each.killed for each in verdicts)
        unused = sum(not each.tests for each in verdicts)
        print(f"{kind}s: {killed} of {len(verdicts)} errors detected; {unused} that no test uses")
    killed = sum(each.killed for each in campaign.verdicts)
    return 0 if killed >= ENOUGH * len(campaign.verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
