"""`warploom view` and `warploom learn`, as far as they go without a browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from warploom.cli.main import app
from warploom.core.errors import WarploomError
from warploom.observe.trace import Trace
from warploom.ui.lessons import ORDER, find_lesson
from warploom.ui.page import BUNDLE
from warploom.ui.progress import read_progress

SOURCE = "__global__ void k(int *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1; }"


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    file = tmp_path / "k.cu"
    file.write_text(SOURCE, "utf-8")
    return file


def test_a_trace_is_saved_within_its_bounds(kernel: Path, tmp_path: Path) -> None:
    saved = tmp_path / "trace.wl"
    launch = ("--grid", "2", "--block", "96", "--arg", "i32[192]=zeros", "--device", "v100")
    bounds = ("--trace-warps", "2", "--trace-steps", "3", "--trace-block", "1")
    invoke("view", str(kernel), *launch, *bounds, "--save", str(saved))
    trace = Trace.from_bytes(saved.read_bytes())
    assert [(w.block, w.warp) for w in trace.warps] == [(1, 0), (1, 1)]
    assert trace.steps.count == 6
    assert trace.left_out.warps == 4
    assert trace.launch.engine == "reference"


def test_a_large_launch_is_recorded_by_compiled_code(kernel: Path, tmp_path: Path) -> None:
    saved = tmp_path / "trace.wl"
    launch = ("--grid", "65", "--block", "32", "--arg", "i32[2080]=zeros", "--device", "v100")
    invoke("view", str(kernel), *launch, "--save", str(saved))
    trace = Trace.from_bytes(saved.read_bytes())
    assert trace.launch.engine == "compiled"
    assert len(trace.warps) == 64
    assert trace.left_out.warps == 1


def test_a_timed_launch_becomes_a_trace_with_its_time(kernel: Path, tmp_path: Path) -> None:
    """Recorded are the blocks that ran where the time is shown: on SM 1 of 80, 1 and 81."""
    saved = tmp_path / "trace.wl"
    launch = ("--grid", "82", "--arg", "i32[2624]=zeros", "--device", "v100", "--scheduler", "gto")
    invoke("time", str(kernel), *launch, "--sm", "1", "--trace", str(saved))
    trace = Trace.from_bytes(saved.read_bytes())
    assert trace.modelled is not None
    assert (trace.modelled.sm, trace.modelled.scheduler) == (1, "gto")
    assert [w.block for w in trace.warps] == [1, 81]
    assert trace.launch.engine == "compiled"


def test_the_view_models_time_where_asked_to(kernel: Path, tmp_path: Path) -> None:
    saved = tmp_path / "trace.wl"
    launch = ("--arg", "i32[32]=zeros", "--device", "v100", "--save", str(saved))
    invoke("view", str(kernel), *launch)
    assert Trace.from_bytes(saved.read_bytes()).modelled is None
    invoke("view", str(kernel), *launch, "--time")
    trace = Trace.from_bytes(saved.read_bytes())
    assert trace.modelled is not None
    assert trace.modelled.cycles > 0
    assert trace.launch.engine == "reference"


def test_a_launch_that_ends_badly_has_no_time(kernel: Path, tmp_path: Path) -> None:
    saved = tmp_path / "trace.wl"
    invoke("view", str(kernel), "--arg", "i32[8]=zeros", "--time", "--save", str(saved))
    trace = Trace.from_bytes(saved.read_bytes())
    assert trace.modelled is None
    assert "Invalid __global__ write" in trace.error


@pytest.mark.skipif(not BUNDLE.exists(), reason="the page was not built")
def test_a_saved_trace_becomes_a_page(kernel: Path, tmp_path: Path) -> None:
    saved, page = tmp_path / "trace.wl", tmp_path / "page.html"
    invoke("view", str(kernel), "--arg", "i32[32]=zeros", "--save", str(saved))
    invoke("view", str(saved), "--export", str(page))
    text = page.read_text("utf-8")
    assert 'id="warploom-trace0"' in text
    assert "http://" not in text.partition("<script")[0]


def test_learn_lists_the_lessons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPLOOM_DATA_DIR", str(tmp_path))
    entries = [line.split() for line in invoke("learn").splitlines()]
    assert [words[0] for words in entries if words and words[0] in ORDER] == list(ORDER)


def test_a_kernel_to_begin_with_is_named_by_its_file_and_replaces_none(tmp_path: Path) -> None:
    kernel = tmp_path / "banks.cu"
    assert CliRunner().invoke(app, ["learn", "--start", str(kernel)]).exit_code == 0
    assert "__global__" in kernel.read_text("utf-8")
    again = CliRunner().invoke(app, ["learn", "--start", str(kernel)])
    assert isinstance(again.exception, WarploomError)
    unnamed = CliRunner().invoke(app, ["learn", "--export", str(tmp_path / "page.html")])
    assert isinstance(unnamed.exception, WarploomError)


def test_a_kernel_is_graded_from_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel that a task begins with does not pass, and its solution does, which is kept."""
    monkeypatch.setenv("WARPLOOM_DATA_DIR", str(tmp_path / "data"))
    kernel = tmp_path / "banks.cu"
    invoke("learn", "banks", "--start", str(kernel))
    result = CliRunner().invoke(app, ["learn", "--check", str(kernel), "--json"])
    assert result.exit_code == 1
    verdict = json.loads(result.output)
    assert (verdict["lesson"], verdict["passed"]) == ("banks", False)
    # 32 columns of 32 words in one bank each: 31 passes more than needed.
    measured = [one["measured"] for one in verdict["checks"]]
    assert "992 shared load bank conflicts; required: at most 0" in measured
    lesson = find_lesson("banks")
    assert lesson is not None
    assert lesson.task is not None
    kernel.write_text(lesson.task.solution, "utf-8")
    reported = invoke("learn", "--check", str(kernel))
    assert reported.splitlines()[-1] == "The task is done."
    assert read_progress() == {"banks": "done"}
    kernel.write_text("__global__ void k(int *out) { out[0] = nothing; }", "utf-8")
    result = CliRunner().invoke(app, ["learn", "--check", str(kernel)])
    assert result.exit_code == 1
    assert "did not run" in result.output
    assert "nothing" in result.output


def test_without_the_page_the_command_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from warploom.core.errors import WarploomError
    from warploom.ui import page

    monkeypatch.setattr(page, "BUNDLE", tmp_path / "index.html")
    page.bundle.cache_clear()
    with pytest.raises(WarploomError, match="build_web"):
        page.bundle()
    page.bundle.cache_clear()
