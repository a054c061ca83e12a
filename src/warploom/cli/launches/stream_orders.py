"""Runs a program under legal orders of the work of its streams, and compares what it prints."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from warploom.cli.programs import program_command
from warploom.clients.environment import environment_for
from warploom.clients.settings import ISSUED, LATE, RANDOM, Settings

ORDERS = 10
"""How many orders are run where the user does not say."""


@dataclass(frozen=True)
class ProgramOutcome:
    """Holds the standard output and the exit status of a program under an order."""

    settings: Settings
    output: str
    status: int

    @property
    def order(self) -> str:
        """Returns the options of `warploom run` for this order."""
        seed = f" --seed {self.settings.seed}" if self.settings.stream_order == RANDOM else ""
        return f"--stream-order {self.settings.stream_order}{seed}"

    def is_like(self, other: ProgramOutcome) -> bool:
        """Returns whether a user saw the same."""
        return (self.output, self.status) == (other.output, other.status)


def run_under_orders(
    file: str, arguments: Sequence[str], options: Sequence[str], settings: Settings, runs: int
) -> list[ProgramOutcome]:
    """Returns the outcomes of a program under `runs` orders: that of its calls, the latest of each
    stream, then random ones; `options` are nvcc's. Standard error is the program's own."""
    command = [*program_command(file, options), *arguments]
    orders = [(ISSUED, 0), (LATE, 0), *((RANDOM, seed) for seed in range(1, runs - 1))]
    outcomes: list[ProgramOutcome] = []
    for order, seed in orders[:runs]:
        chosen = replace(settings, stream_order=order, seed=seed)
        done = subprocess.run(
            command, env=environment_for(chosen), stdout=subprocess.PIPE, check=False
        )
        outcomes.append(
            ProgramOutcome(chosen, done.stdout.decode(errors="backslashreplace"), done.returncode)
        )
    return outcomes


def described(file: str, outcomes: Sequence[ProgramOutcome]) -> tuple[str, bool]:
    """Returns in words whether outcomes differ, and how to have the other one again; and whether
    they do."""
    usual = outcomes[0]
    other = next((one for one in outcomes if not one.is_like(usual)), None)
    if other is None:
        return (
            f"The program ran {len(outcomes)} times, each time with a different order of the work "
            f"in its streams. All runs had the same output (exit status {usual.status}).",
            False,
        )
    number = sum(not one.is_like(usual) for one in outcomes)
    lines = [
        f"The program ran {len(outcomes)} times, each time with a different order of the work in "
        "its streams.",
        f"In {number} of these runs, the output differs from the output of the run in call order.",
    ]
    if usual.output != other.output:
        pairs = zip_longest(usual.output.splitlines(), other.output.splitlines(), fillvalue="")
        at, (first, second) = next((n, p) for n, p in enumerate(pairs, 1) if p[0] != p[1])
        lines += [
            f"  Line {at} of the output is",
            f"    {first!r} under {usual.order},",
            f"    {second!r} under {other.order}.",
        ]
    else:
        lines.append(
            f"  The exit status is {usual.status} under {usual.order}, but {other.status} under "
            f"{other.order}."
        )
    lines += [
        "  Work in one stream depends on work in another stream but does not wait for it, or the "
        "host reads a result before the work that writes it has finished.",
        f"  To find the cause: warploom check {file}. To reproduce: warploom run {other.order} "
        f"{file}",
    ]
    return "\n".join(lines), True
