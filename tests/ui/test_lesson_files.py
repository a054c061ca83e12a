"""A teacher's own lesson, in one file: it is graded, and each mistake in it is an error that names
its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from warploom.core.errors import WarploomError
from warploom.observe.counters import COUNTERS
from warploom.ui import grading
from warploom.ui.grading import LessonError, grade
from warploom.ui.lesson_rules import EVENTS, VIEWS
from warploom.ui.lessons import read_lesson

SCAN = """
__global__ void scan(const int *in, int *out)
{
    __shared__ int part[64];
    int i = threadIdx.x;
    part[i] = in[i];
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) {
        int v = i >= d ? part[i - d] : 0;
        __syncthreads();
        part[i] += v;
        __syncthreads();
    }
    out[i] = RESULT;
}
"""
INCLUSIVE = SCAN.replace("RESULT", "part[i]")
EXCLUSIVE = SCAN.replace("RESULT", "part[i] - in[i]")

LESSON = f"""
title = "Prefix sums"
summary = "An inclusive scan over a block."
label = "Hillis and Steele"
recap = "Two barriers a round keep reads and writes apart."
source = '''{INCLUSIVE}'''
[launch]
block = "64"
args = ["in:i32[64]=ones", "out:i32[64]=zeros"]
device = "v100"
[question]
ask = "How many rounds?"
choices = ["6", "63"]
answer = 0
because = "The distance doubles."
[[captions]]
at = {{ ptx = "ld.shared", event = "barrier" }}
look = "data"
text = "A round."
[task]
ask = "Make it exclusive."
hints = ["Subtract."]
solution = '''{SCAN.replace("RESULT", "i ? part[i - 1] : 0")}'''
[[task.checks]]
label = "out"
results = ["out"]
[[task.checks]]
label = "no race"
findings = ["race"]
[[task.checks]]
label = "few barriers"
counter = "barriers"
most = 30
"""


def lesson_with(tmp_path: Path, old: str = "", new: str = "") -> Path:
    """Returns the file of the lesson, with one text in place of another."""
    assert old in LESSON
    file = tmp_path / "scan.toml"
    file.write_text(LESSON.replace(old, new, 1) if old else LESSON, "utf-8")
    return file


def test_wrong_and_right_kernels_are_distinguished(tmp_path: Path) -> None:
    """Two warps meet 1 + 2 * 6 barriers each: 26."""
    lesson = read_lesson(lesson_with(tmp_path))
    wrong = grade(lesson, INCLUSIVE)
    assert [one.passed for one in wrong.checks] == [False, True, True]
    assert wrong.checks[0].measured == "out[0] is 1, not 0; 64 of 64 differ"
    assert wrong.checks[2].measured == "26 barriers"
    racing = grade(lesson, EXCLUSIVE.replace("__syncthreads();", "", 1))
    assert not racing.checks[1].passed
    assert grade(lesson, EXCLUSIVE).passed


@pytest.mark.parametrize(
    ("old", "new", "output"),
    [
        ('results = ["out"]', 'results = ["outt"]', "check 1 of the task: results: there is no"),
        ('findings = ["race"]', 'findings = ["races"]', "Did you mean 'race'?"),
        ('counter = "barriers"', 'counter = "barrier"', "Did you mean 'barriers'?"),
        ('counter = "barriers"', "", "must have exactly one of"),
        ('counter = "barriers"', 'counter = "barriers"\noccupancy = true', "counter and occupancy"),
        ("most = 30", "", "has no bound"),
        ("hints =", "hint =", "unknown field `hint` - at `task`"),
        ("block =", "blok =", "unknown field `blok` - at `launch`"),
        ("answer = 0", "answer = 2", "numbered from 0 to 1"),
        ('look = "data"', 'look = "dada"', "caption 1: look: there is no 'dada'"),
        ('event = "barrier"', 'event = "barier"', "caption 1: at.event"),
        ('event = "barrier"', "nth = 0", "counted from 1"),
        ('device = "v100"', 'device = "v101"', "Did you mean v100"),
        ('device = "v100"', 'schedule = "fare"', "launch.schedule: there is no 'fare'"),
        ('block = "64"', 'block = "sixty"', "launch.block 'sixty' is not valid"),
        ('"out:i32[64]=zeros"', '"in:i32[64]=zeros"', "another buffer already has the name in"),
        ("title =", "titel =", "unknown field `titel`"),
        ('text = "A round."', 'text = "A round."\nbeside = { nth = 1 }', "no [versus]"),
    ],
)
def test_a_mistake_is_found_when_the_file_is_read(
    old: str, new: str, output: str, tmp_path: Path
) -> None:
    with pytest.raises(WarploomError, match=r"scan\.toml is not a lesson: ") as raised:
        read_lesson(lesson_with(tmp_path, old, new))
    assert output in str(raised.value)


def test_a_solution_that_does_not_run_is_not_the_learners_fault(tmp_path: Path) -> None:
    lesson = read_lesson(lesson_with(tmp_path, "i ? part[i - 1] : 0", "in[i + 999]"))
    with pytest.raises(LessonError, match="the lesson's solution does not run: Invalid __global__"):
        grade(lesson, EXCLUSIVE)


def test_a_kernel_that_never_ends_is_graded_by_compiled_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference machine would take minutes for the instructions that a kernel may execute."""
    monkeypatch.setattr(grading, "MOST_INTERPRETED", 100)
    monkeypatch.setattr(grading, "MOST_INSTRUCTIONS", 1_000_000)
    lesson = read_lesson(lesson_with(tmp_path))
    endless = "__global__ void scan(const int *i, int *o) { while (1) *(volatile int *)o = 1; }"
    verdict = grade(lesson, endless, "mine.cu")
    assert not verdict.passed
    assert "did not end within its limit of 1,000,000 warp instructions" in verdict.error
    assert "mine.cu:1" in verdict.error


def test_what_a_lesson_may_name_is_what_there_is() -> None:
    page = (Path(__file__).parents[2] / "web" / "src" / "model.ts").read_text("utf-8")
    entries = page.partition("export const EVENTS = [")[2].partition("]")[0]
    assert [one.strip(' "\n') for one in entries.split(",") if one.strip()] == list(EVENTS)
    state = (Path(__file__).parents[2] / "web" / "src" / "state.ts").read_text("utf-8")
    panes = state.partition("export type Pane = ")[2].partition(";")[0]
    assert {one.strip(' "') for one in panes.split("|")} == set(VIEWS)
    assert {"global_load_sectors", "shared_load_bank_conflicts", "barriers"} < set(COUNTERS)
