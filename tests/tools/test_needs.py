"""Tests that fail because NVRTC is missing are skipped, unless it is required; others fail."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = "pytester"

CONFTEST = """
from warploom.frontends import cuda_cpp
cuda_cpp._nvrtc = lambda: None
from needs import skip_without_nvrtc as pytest_configure
"""

TESTS = """
import subprocess, sys
import pytest
from warploom.frontends.cuda_cpp import compile_cuda, without_nvrtc

MESSAGE = without_nvrtc()

@pytest.fixture(scope="module")
def ptx():
    return compile_cuda("__global__ void k() {}", "k.cu", (9, 0))

@pytest.mark.parametrize("n", [1, 2])
def test_the_fixture_of_a_module(ptx, n): pass

def test_a_process_of_its_own():
    command = [sys.executable, "-c", f"raise SystemExit({MESSAGE!r})"]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""

def test_what_fails_for_another_reason(): assert 1 + 1 == 3

def test_what_needs_none(): pass
"""


@pytest.mark.parametrize(
    ("required", "expected"),
    [
        ("", {"passed": 1, "failed": 1, "skipped": 3}),
        ("required", {"passed": 1, "failed": 2, "errors": 2}),
    ],
)
def test_what_fails_without_nvrtc_is_skipped_unless_it_is_required(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    required: str,
    expected: dict[str, int],
) -> None:
    monkeypatch.setenv("WARPLOOM_NVRTC", required)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    outcome = pytester.runpytest_subprocess("-rs", "-p", "no:cacheprovider", "-W", "ignore")
    outcome.assert_outcomes(**expected)
    if not required:
        outcome.stdout.fnmatch_lines(["SKIPPED*NVRTC, which is not installed: pip install*"])
