"""`warploom learn --check FOLDER`: the kernels of a class in a table, and the syllabus as data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from warploom.cli.main import app
from warploom.ui.lessons import ORDER, find_lesson, read_lesson
from warploom.ui.progress import READ, note_progress


def invoke(*arguments: str) -> str:
    run = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert run.exit_code == 0, run.output
    return run.stdout


def solution(name: str) -> str:
    lesson = find_lesson(name)
    assert lesson is not None
    assert lesson.task is not None
    return lesson.task.solution


def beginning(name: str) -> str:
    lesson = find_lesson(name)
    assert lesson is not None
    return lesson.request.source


@pytest.fixture
def school(tmp_path: Path) -> Path:
    """A class of two: one has done both tasks, the other one has begun."""
    handed_in = {
        "ada/banks.cu": solution("banks"),
        "ada/branch.cu": solution("branch"),
        "bob/branch.cu": beginning("branch"),
        "bob/race.cu": "__global__ void broken( {",
        "bob/notes.cu": "",
    }
    for name, text in handed_in.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_designs_are_handed_in_as_python(tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "own-coalescer.py").write_text(solution("own-coalescer"), "utf-8")
    (tmp_path / "ada" / "notes.py").write_text("print(1)", "utf-8")
    grades = json.loads(invoke("learn", "--check", str(tmp_path), "--json"))
    assert [(one["verdict"]["lesson"], one["verdict"]["passed"]) for one in grades] == [
        ("own-coalescer", True)
    ]
    assert grades[0]["verdict"]["ranking"]["mine"] == 0
    (tmp_path / "bob.py").write_text("def coalesce(addresses, size):\n    return []\n", "utf-8")
    table = invoke("learn", "own-coalescer", "--check", str(tmp_path))
    assert "bob.py: line 1: byte 0 is in no transaction" in table


def test_a_class_is_a_table(school: Path) -> None:
    printed = invoke("learn", "--check", str(school)).splitlines()
    table, reasons = printed[:3], "\n".join(printed[4:])
    assert [line.split() for line in table] == [
        ["student", "branch", "banks", "race", "done"],
        ["ada", "✓", "✓", "2", "of", "3"],
        ["bob", "✕", "✕", "0", "of", "3"],
    ]
    assert "branch.cu: no divergent branch" in reasons
    assert "race.cu does not compile" in reasons
    assert "notes.cu: not graded" in reasons


def test_a_class_is_graded_in_one_lesson(tmp_path: Path) -> None:
    (tmp_path / "ada.cu").write_text(solution("branch"), "utf-8")
    (tmp_path / "bob.cu").write_text(beginning("branch"), "utf-8")
    grades = json.loads(invoke("learn", "branch", "--check", str(tmp_path), "--json"))
    assert [(one["student"], one["verdict"]["passed"]) for one in grades] == [
        ("ada", True),
        ("bob", False),
    ]


def test_a_folder_without_kernels_says_what_is_expected(tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["learn", "--check", str(tmp_path)])
    assert "STUDENT/LESSON.cu" in str(run.exception)


def test_grading_a_class_keeps_no_progress_of_the_teacher(
    school: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPLOOM_DATA_DIR", str(tmp_path / "data"))
    note_progress("saxpy", READ)
    invoke("learn", "--check", str(school))
    heads = {one["id"]: one["progress"] for one in json.loads(invoke("learn", "--json"))}
    assert heads["saxpy"] == READ
    assert {name for name, state in heads.items() if state} == {"saxpy"}


def test_every_lesson_has_an_aim_and_comes_after_what_it_needs() -> None:
    for number, name in enumerate(ORDER):
        lesson = find_lesson(name)
        assert lesson is not None
        assert lesson.aim.endswith("."), name
        assert set(lesson.needs) <= set(ORDER[:number]), name
        assert lesson.needs or number == 0, name


def test_a_lesson_of_ones_own_needs_no_aim(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'title = "T"\nsummary = "S"\nlabel = "L"\nrecap = "R"\ncaptions = []\n'
        'source = "__global__ void k() {}"\n'
        '[question]\nask = "?"\nchoices = ["a"]\nanswer = 0\nbecause = "."\n',
        "utf-8",
    )
    assert read_lesson(file).needs == ()


def test_the_table_of_the_syllabus_is_current() -> None:
    import syllabus_table

    assert syllabus_table.TARGET.read_text("utf-8") == syllabus_table.page()
