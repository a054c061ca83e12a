"""Options of checks, and how findings are reported: in Python, on the command line, in pytest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.clients.environment import libraries_are_built
from warploom.core.errors import OptionValueError, WarploomError
from warploom.detector import layout as words
from warploom.sanitize.findings import TOOLS
from warploom.sanitize.report import KINDS
from warploom.sanitize.suppressions import read_suppressions

SUM = """__global__ void sum(const int *x, int *total) {
  int i = threadIdx.x;
  *total = *total + x[i];
}
"""
LAUNCH = ("--block", "64", "--arg", "i32[64]=ones", "--arg", "total:i32[1]=zeros")


@pytest.fixture(scope="module")
def gpu() -> wl.Device:
    return wl.Device(sanitize=("race",))


def test_a_launch_has_the_tools_of_its_device_unless_it_says_otherwise(gpu: wl.Device) -> None:
    kernel = gpu.compile(SUM)["sum"]
    x, total = np.ones(64, np.int32), np.zeros(1, np.int32)
    assert {one.kind for one in kernel[1, 64](x, total).findings} == {"race", "same-value"}
    assert kernel[1, 64](x, total, sanitize=()).findings == ()


def test_every_kind_that_the_detector_records_has_a_message() -> None:
    recorded = {value for name, value in vars(words).items() if name.startswith("K_")}
    assert set(KINDS) == recorded
    assert {kind.tool for kind in KINDS.values()} == set(TOOLS)


def test_a_finding_says_who_and_where(gpu: wl.Device) -> None:
    run = gpu.compile(SUM, name="sum.cu")["sum"][1, 64](
        np.ones(64, np.int32), gpu.zeros(1, np.int32, "total")
    )
    found = next(one for one in run.findings if one.kind == "race")
    assert (found.tool, found.severity, found.space) == ("race", "error", "global")
    assert found.line.endswith("sum.cu:3")
    assert found.other_line.endswith("sum.cu:3")
    assert found.buffer == "total"
    assert len(found.threads) == 2
    assert all(thread.block == (0, 0, 0) for thread in found.threads)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_an_unwritten_read_names_the_lane_that_reads_it(engine: str) -> None:
    kernel = wl.Device(engine=engine).compile(
        'extern "C" __global__ void k(int *out) { __shared__ int s[64]; int i = threadIdx.x;'
        "if (i < 63) s[i] = i; __syncthreads(); if (s[i] > 3) out[i] = 1; }"
    )["k"]
    (found,) = kernel[1, 64](np.zeros(64, np.int32), sanitize=("init",)).findings
    assert found.threads[0].thread == (63, 0, 0)
    assert "byte 252 of" in found.message


def test_an_unknown_tool_is_an_error(gpu: wl.Device) -> None:
    kernel = gpu.compile(SUM)["sum"]
    with pytest.raises(OptionValueError, match="race"):
        kernel[1, 1](np.ones(1, np.int32), np.zeros(1, np.int32), sanitize=("rase",))
    with pytest.raises(TypeError):
        wl.Device(sanitize="race")  # pyright: ignore[reportArgumentType]


def test_warps_of_64_lanes_are_not_checked() -> None:
    kernel = wl.Device(warp_size=64).compile(SUM)["sum"]
    with pytest.raises(WarploomError, match="32 lanes"):
        kernel[1, 64](np.ones(64, np.int32), np.zeros(1, np.int32), sanitize=("race",))


def test_what_a_launch_writes_is_written_for_the_next() -> None:
    gpu = wl.Device(sanitize=("init",))
    kernel = gpu.compile(
        "__global__ void put(int *x) { x[threadIdx.x] = 1; }"
        "__global__ void get(const int *x, int *y) { y[threadIdx.x] = x[threadIdx.x] + 1; }"
    )
    x, y = gpu.empty(64, np.int32), gpu.zeros(64, np.int32)
    kernel["put"][1, 32](x)
    assert kernel["get"][1, 32](x, y).findings == ()
    (found,) = kernel["get"][1, 64](x, y).findings
    assert found.kind == "uninitialized read"
    assert found.threads[0].thread == (32, 0, 0)


# ---- the command line ---------------------------------------------------------------------------


def check(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs `warploom check`."""
    command = [sys.executable, "-c", "from warploom.cli.main import main; main()", "check"]
    return subprocess.run([*command, *map(str, args)], capture_output=True, text=True, check=False)


def test_check_prints_findings_and_exits_with_the_status_for_errors(tmp_path: Path) -> None:
    file, sarif = tmp_path / "sum.cu", tmp_path / "found.sarif"
    file.write_text(SUM, "utf-8")
    done = check(file, *LAUNCH, "--tool", "race", "--error-exitcode", "9", "--sarif", sarif)
    assert done.returncode == 9
    assert "========= Error: Race reported between" in done.stdout
    assert f"at {file}:3 by thread" in done.stdout
    assert "ERROR SUMMARY: 1 error, 0 warnings, 1 note" in done.stdout
    results = json.loads(sarif.read_text("utf-8"))["runs"][0]["results"]
    assert results[0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}


def test_no_more_findings_are_shown_than_the_limit_and_all_are_counted(tmp_path: Path) -> None:
    """The launch has an error and a note."""
    file = tmp_path / "sum.cu"
    file.write_text(SUM, "utf-8")
    done = check(file, *LAUNCH, "--tool", "race", "--limit", "1")
    assert done.stdout.count("Race reported between") == 1
    assert "Findings not shown: 1 (--limit)" in done.stdout
    assert "ERROR SUMMARY: 1 error, 0 warnings, 1 note" in done.stdout


def test_check_leaves_out_what_is_suppressed(tmp_path: Path) -> None:
    file, known = tmp_path / "sum.cu", tmp_path / "known.txt"
    file.write_text(SUM, "utf-8")
    known.write_text("# accepted\nrace sum.cu:3 it is a demonstration\n", "utf-8")
    done = check(file, *LAUNCH, "--tool", "race", "--suppress", known, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {
        "findings": [],
        "suppressed": 2,
        "errors": 0,
        "warnings": 0,
        "notes": 0,
    }


def test_a_suppression_needs_a_reason(tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("race sum.cu:3\n", "utf-8")
    with pytest.raises(WarploomError, match="needs a reason"):
        read_suppressions(known)


def test_check_refuses_an_unknown_tool(tmp_path: Path) -> None:
    file = tmp_path / "sum.cu"
    file.write_text(SUM, "utf-8")
    done = check(file, *LAUNCH, "--tool", "rase")
    assert done.returncode == 2
    assert "there is no tool 'rase'" in done.stderr


# ---- pytest -------------------------------------------------------------------------------------

TESTS = """
import numpy as np

def test_sum(gpu):
    kernel = gpu.compile('''__global__ void sum(int *total) { *total = *total + threadIdx.x; }''')
    kernel["sum"][1, 64](np.zeros(1, np.int32))

def test_nothing(gpu):
    pass
"""


def test_pytest_fails_tests_with_findings(tmp_path: Path) -> None:
    (tmp_path / "test_sum.py").write_text(TESTS, "utf-8")
    plain, checked = (
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, tmp_path],
            capture_output=True,
            text=True,
            check=False,
        )
        for options in ((), ("--warploom-check=race",))
    )
    assert "2 passed" in plain.stdout, plain.stdout
    assert "1 failed, 1 passed" in checked.stdout, checked.stdout
    assert "Race reported between" in checked.stdout


NUMBA = """import numpy as np
from numba import cuda

@cuda.jit
def count(total):
    total[0] = total[0] + 1

count[1, 64](cuda.to_device(np.zeros(1, np.int32)))
"""


def test_check_names_lines_of_python_for_a_program_of_numba(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Numba warns of one block, which ends the program where warnings are errors.
    monkeypatch.setenv("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")
    pytest.importorskip("numba_cuda")
    if not libraries_are_built():
        pytest.skip("the stand-in libraries are not built (no C compiler?)")
    program = tmp_path / "count.py"
    program.write_text(NUMBA, "utf-8")
    done = check("--tool", "race", program)
    assert done.returncode == 1, done.stderr
    assert f"at {program}:6 by thread" in done.stdout + done.stderr
