"""Samples of other projects' tests, and the programs of HeCBench: what the tools make of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import hecbench
import pytest
import sampled_tests

TOOLS = Path(sampled_tests.__file__).parent

TESTS = """
import os
import time

def test_passes(): pass
def test_fails(): assert 1 == 2
def test_is_late():
    while True: time.process_time()
def test_ends(): os._exit(3)
def test_comes_last(): pass
"""


def test_each_test_has_one_result(tmp_path: Path) -> None:
    """One that runs for ever, and one that takes the process with it, do not keep others from
    theirs; the next run has nothing left to do."""
    file, results = tmp_path / "test_other.py", tmp_path / "results.jsonl"
    file.write_text(TESTS, "utf-8")
    command = [sys.executable, str(TOOLS / "sampled_tests.py"), "--seconds", "0.5"]
    command += ["--results", str(results), "--", "-c", os.devnull, "--rootdir", str(tmp_path)]
    for _ in range(2):
        done = subprocess.run([*command, str(file)], capture_output=True, text=True, check=True)
        found = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
        outcomes = {row["test"].partition("::")[2]: row for row in found if "test" in row}
        assert {name: row["outcome"] for name, row in outcomes.items()} == {
            "test_passes": "passed",
            "test_fails": "failed",
            "test_is_late": "failed",
            "test_ends": "failed",
            "test_comes_last": "passed",
        }
        assert outcomes["test_is_late"]["why"] == "out of time"
        assert outcomes["test_ends"]["why"] == "the process ended: 3"
        assert "| test_other.py | 5 | 2 | 0 | 3 |" in done.stdout
        assert "| 1 | AssertionError: assert N == N |" in done.stdout


def test_programs_of_hecbench_are_repeated_once(tmp_path: Path) -> None:
    rule = "run: $(program)\n\t$(LAUNCHER) ./$(program) ../data/a 64 100\n"
    (tmp_path / "Makefile").write_text(f"ARCH = sm_60\nprogram = nw\n{rule}", "utf-8")
    assert hecbench.arguments(tmp_path) == ["../data/a", "64", "1"]
    command, program = hecbench.command(tmp_path)
    assert "ARCH=compute_80" in command
    assert program == tmp_path / "nw"


@pytest.mark.parametrize(
    ("output", "verdict"),
    [
        ("PASS\n", "passed"),
        ("Verification: FAIL", "says that its result is wrong"),
        ("mismatches: 0\nSUCCESS", "passed"),
        ("12 mismatches", "says that its result is wrong"),
        ("Average time 3 us", "ran, and does not judge its result"),
    ],
)
def test_words_of_programs_of_hecbench(output: str, verdict: str) -> None:
    assert hecbench.verdict(output) == verdict
