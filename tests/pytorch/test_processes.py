"""Programs of their own under `warploom run`: faults, reports, and what the software GPU costs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from conftest import HERE

OVERRUN = "programs/overrun.py"
KERNELS = (HERE / "triton_kernels.py").read_text("utf-8").splitlines()


def line_of(text: str) -> str:
    """Returns the file and number of the line of Triton's kernels that holds a text."""
    return f"triton_kernels.py:{next(n for n, line in enumerate(KERNELS, 1) if text in line)}"


def test_an_overrun_is_explained_and_ends_the_program(warploom_command):
    """Thread and block: element 1000 is the 232nd of block 3; a thread of Triton has several."""
    outcome = warploom_command("--report", "none", OVERRUN)
    assert outcome.returncode == 1
    assert outcome.stdout == ""
    assert "Invalid __global__ read" in outcome.stderr
    assert f"{line_of('tl.load(x + at) * 2')} in kernel double_unguarded" in outcome.stderr
    assert "block (3, 0, 0)" in outcome.stderr
    assert "0 bytes after the nearest allocation, device memory (4000 bytes" in outcome.stderr
    assert "an illegal memory access was encountered" in outcome.stderr
    assert "terminate called" not in outcome.stderr


def test_a_race_between_programs_of_triton_names_both_lines(checked):
    outcome = checked("--tool", "race", "programs/unordered.py")
    assert outcome.returncode == 1, outcome.stderr
    load, store = line_of("before = tl.load(total)"), line_of("tl.store(total")
    places = [Path(line.split(" by thread")[0]).name for line in outcome.stderr.splitlines()]
    assert {place for place in places if place.startswith("triton_kernels.py")} == {load, store}
    assert "between Write access" in outcome.stderr


def test_the_caching_allocator_hides_an_overrun(warploom_command):
    """Its allocations are multiples of 512 bytes in segments of 2 MiB."""
    outcome = warploom_command("--report", "none", "--caching-allocator", OVERRUN)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "sum 2000.0\n"


def test_the_report_distinguishes_simulated_kernels_from_work_of_the_host(
    warploom_command, tmp_path
):
    file = tmp_path / "report.json"
    options = ("--report", "short", "--json", str(file), "--caching-allocator")
    outcome = warploom_command(*options, OVERRUN)
    assert "double_unguarded, 1 launch of 4x1x1 blocks" in outcome.stderr
    assert "on the host, not simulated:" in outcome.stderr
    output = json.loads(file.read_text("utf-8"))
    assert len(output["kernels"]) == 1
    calls = {one["operator"]: one["calls"] for one in output["host_operators"]}
    assert calls["aten::sum.dim_IntList"] == 1


def test_two_processes_train_together(warploom_command):
    """1 + 2 make 3; gradients are 3 in one process and 6 in the other, on average 4.5."""
    command = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2")
    outcome = warploom_command("--report", "none", *command, "programs/two_processes.py")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "3.0 4.5\n" * 2


def test_an_extension_in_cuda_is_built_and_runs(warploom_command, monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")  # ninja
    outcome = warploom_command("--report", "short", "programs/extension.py")
    assert outcome.stdout.endswith("scaled\n"), outcome.stderr
    # 1,000 elements: 125 sectors of 32 bytes read, and as many written.
    assert "250 global sectors" in outcome.stderr


def test_operators_of_pytorchs_own_database_agree_with_the_cpu(warploom_command):
    outcome = warploom_command("--report", "none", "operators.py", "--samples", "4")
    assert outcome.returncode == 0, outcome.stdout
