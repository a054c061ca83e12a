"""Kernels that are right have no findings: CUB's collectives, and cooperative groups."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.clients.nvcc import real_nvcc
from warploom.sanitize.findings import TOOLS
from warploom.ui.lessons import find_lesson, lessons, requests_of
from warploom.ui.record import prepare_launch

TESTS = Path(__file__).parent.parent
PROGRAMS, EXAMPLES = TESTS / "programs", TESTS.parent / "examples"
RNG = np.random.default_rng(5)


def integers(high: int, count: int, dtype: Any) -> np.ndarray[Any, Any]:
    return RNG.integers(0, high, count, dtype)


CUB: dict[str, tuple[int, tuple[Any, ...]]] = {
    "scan": (64, (integers(1000, 256, np.int32), np.zeros(256, np.int32))),
    "reduce": (96, (integers(1000, 96, np.int32), np.zeros(101, np.int32))),
    "sort": (64, (integers(50, 128, np.uint32), np.arange(128, dtype=np.int32))),
    "merge": (32, (integers(50, 96, np.int32),)),
    "count": (64, (integers(16, 256, np.uint8), np.zeros(16, np.uint32))),
}


@pytest.fixture(scope="module")
def cub() -> wl.Module:
    return wl.Device().load(PROGRAMS / "cub_blocks.cu", ["--std=c++17"])


@pytest.mark.parametrize("name", CUB)
@pytest.mark.parametrize("schedule", ["converge", "adversarial"])
def test_collectives_of_cub(cub: wl.Module, name: str, schedule: str) -> None:
    threads, args = CUB[name]
    # The merge loads one element behind its tile, compares it and ignores the answer.
    tools = [tool for tool in TOOLS if (name, tool) != ("merge", "init")]
    found = cub[name][1, threads](*args, schedule=schedule, sanitize=tools).findings
    assert found == (), "\n".join(map(str, found))


def checked(*args: str | Path) -> tuple[int, str]:
    """Returns the exit status of `warploom check`, and what it says."""
    command = [Path(sys.executable).with_name("warploom"), "check", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    status, output = checked(path)
    assert status == 0
    assert "ERROR SUMMARY: 0 errors, 0 warnings, 0 notes" in output


@pytest.mark.nightly
@pytest.mark.skipif(real_nvcc(os.environ["PATH"]) is None, reason="needs nvcc")
def test_device_wide_algorithms_of_cub_and_the_barrier_of_a_grid() -> None:
    """Look-back between blocks: flags, values and their order by scope."""
    status, output = checked(PROGRAMS / "cub_device.cu")
    assert status == 0
    assert "ERROR SUMMARY: 0 errors, 0 warnings, 0 notes" in output


WRONG = {
    "race": {"race"},
    "exchange": {"race"},
    "lock": {"deadlock", "unpromised"},
    "lock-warps": {"deadlock", "unpromised"},
    "barrier": {"skipped barrier"},
    "warp-synchronous": {"uninitialized read", "unpromised"},
}
"""Lessons about kernels that are wrong, and what is found there: lanes of one warp deadlock below
7.0, and `volatile` is all that both trust in; lanes that run ahead read what others will write."""


@pytest.mark.parametrize("lesson", [lesson.id for lesson in lessons()])
def test_lessons(lesson: str) -> None:
    known = find_lesson(lesson)
    assert known is not None
    kinds: set[str] = set()
    for asked in requests_of(known):
        ready = prepare_launch(asked)
        run = ready.launcher(*ready.values, max_instructions=asked.max_instructions, sanitize=TOOLS)
        kinds |= {one.kind for one in run.findings if one.severity != "note"}
    assert kinds == WRONG.get(lesson, set())
