"""Programs under other orders of the work of their streams (CUDA Programming Guide, "Streams": what
no event, wait or default stream orders may run in any order)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.conftest import Build, RunProgram

NOT_COPIED = -1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("order", ["issued", "late", "random"])
def test_ordered_streams_have_one_result(
    build: Build, run_program: RunProgram, order: str, seed: int
) -> None:
    program = [*build("streams_that_race.cu"), "ordered"]
    outcome = run_program(program, stream_order=order, seed=seed)
    assert outcome.stdout.split() == ["10", "10"], outcome.stderr


def test_what_the_host_does_not_wait_for_has_not_happened(
    build: Build, run_program: RunProgram
) -> None:
    outcome = run_program(build("streams_that_race.cu"), stream_order="late")
    assert outcome.stdout.split()[0] == f"{NOT_COPIED}"


def test_unordered_streams_run_in_either_order(build: Build, run_program: RunProgram) -> None:
    """Zeros are doubled before the fill, or fives after it; the copy follows the doubling in its
    stream, and may come before or after the fill."""
    program = build("streams_that_race.cu")
    results = {
        run_program(program, stream_order="random", seed=seed).stdout.split()[1]
        for seed in range(1, 9)
    }
    assert results <= {"0", "5", "10"}
    assert "10" in results
    assert results & {"0", "5"}


@pytest.mark.parametrize("order", ["late", "random"])
def test_kernels_that_wait_for_each_other_or_the_host_end(
    build: Build, run_program: RunProgram, order: str
) -> None:
    outcome = run_program(build("streams_that_wait.cu"), stream_order=order, seed=3)
    assert outcome.stdout.splitlines()[1:] == ["0", "1 1; 0 0"], outcome.stderr
    outcome = run_program(build("kernel_that_serves.cu"), stream_order=order, seed=3)
    assert outcome.stdout == "2 4 6 0\n", outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 1, "In 2 of these runs, the output differs"),
        (["ordered"], 0, "All runs had the same output (exit status 0)"),
    ],
)
def test_explore_compares_what_a_program_prints(
    build: Build, arguments: list[str], status: int, words: str
) -> None:
    [program] = build("streams_that_race.cu")
    command = [sys.executable, "-m", "warploom.cli", "explore", "--streams", "--runs", "3"]
    done = subprocess.run(
        [*command, program, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    assert words in done.stdout
    if status:
        assert f"warploom run --stream-order late {Path(program)}" in done.stdout
