"""Grades the kernels of a class: a folder with a folder for each student, or a file for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from warploom.core.errors import WarploomError
from warploom.core.source_files import printable_name
from warploom.host.programs.sources import read_source
from warploom.ui.lessons import ORDER, find_lesson, lesson_named
from warploom.ui.schema import Assignment, Lesson, Verdict

KERNEL, DESIGN = ".cu", ".py"
"""The suffixes of kernels and of designs."""


@dataclass(frozen=True)
class HandedIn:
    """A kernel that a student handed in for the task of a lesson, None if there is none of its
    name."""

    student: str
    lesson: Lesson | None
    file: Path


class Grade(msgspec.Struct, frozen=True):
    """The result of a student's kernel."""

    student: str
    file: str
    verdict: Verdict


def grades_of_class(
    folder: Path, lesson: str | None, grade: Callable[[Assignment], Verdict]
) -> list[Grade]:
    """Returns the grades of all kernels of a class, for one lesson or for those that the files are
    named after. Raises WarploomError for a folder that has none, and where `lesson` is none."""
    found = list(_one_lesson(folder, lesson) if lesson is not None else _all_lessons(folder))
    if not found:
        expected = f"STUDENT{KERNEL}" if lesson is not None else f"STUDENT/LESSON{KERNEL}"
        raise WarploomError(f"{folder} has no kernels to grade: name each kernel file {expected}")
    return [Grade(one.student, str(one.file), _graded(one, grade)) for one in found]


def _graded(one: HandedIn, grade: Callable[[Assignment], Verdict]) -> Verdict:
    """Returns how a kernel did; a file that cannot be read has not passed."""
    if one.lesson is None:
        known = "name the file after its lesson (`warploom learn` lists the lessons)"
        return Verdict(lesson="", passed=False, error=f"not graded: {known}")
    try:
        source = read_source(one.file)
    except WarploomError as error:
        return Verdict(lesson=one.lesson.id, passed=False, error=str(error))
    return grade(Assignment(one.lesson, source, printable_name(one.file)))


def _suffix_of(lesson: Lesson | None) -> str:
    """Returns the suffix of what is handed in for a lesson's task."""
    return DESIGN if lesson and lesson.task and lesson.task.design else KERNEL


def _one_lesson(folder: Path, name: str) -> Iterator[HandedIn]:
    lesson = lesson_named(name)
    suffix = _suffix_of(lesson)
    for file in sorted(folder.glob(f"*{suffix}")):
        yield HandedIn(file.stem, lesson, file)
    for file in sorted(folder.glob(f"*/{lesson.id}{suffix}")):
        yield HandedIn(file.parent.name, lesson, file)


def _all_lessons(folder: Path) -> Iterator[HandedIn]:
    for file in sorted(folder.glob("*/*")):
        lesson = find_lesson(file.stem)
        if file.suffix != KERNEL and file.suffix != _suffix_of(lesson):
            continue
        yield HandedIn(file.parent.name, lesson, file)


def grades_table(grades: list[Grade]) -> str:
    """Returns a table of students and lessons: ✓ for a task that is done, ✕ for one that is not,
    and below it what is missing."""
    students = sorted({one.student for one in grades})
    order = {name: number for number, name in enumerate(ORDER)}
    named = {one.verdict.lesson for one in grades} - {""}
    lessons = sorted(named, key=lambda name: order.get(name, len(ORDER)))
    marks = {(g.student, g.verdict.lesson): "✓" if g.verdict.passed else "✕" for g in grades}
    width = max(len("student"), *map(len, students))
    lines = [f"{'student':<{width}}  {'  '.join(lessons)}  done"]
    for student in students:
        row = [marks.get((student, name), " ") for name in lessons]
        cells = "  ".join(f"{m:<{len(n)}}" for m, n in zip(row, lessons, strict=True))
        lines.append(f"{student:<{width}}  {cells}  {row.count('✓')} of {len(lessons)}")
    missing = [f"{one.file}: {_reason(one.verdict)}" for one in grades if not one.verdict.passed]
    return "\n".join([*lines, *([""] if missing else []), *missing])


def _reason(verdict: Verdict) -> str:
    """Returns why a kernel has not passed, in a line."""
    if verdict.error:
        return verdict.error.strip().partition("\n")[0]
    failed = (one for one in verdict.checks if not one.passed)
    return "; ".join(
        f"{one.label}: {one.measured}" if one.measured else one.label for one in failed
    )


def grades_json(grades: list[Grade]) -> str:
    """Returns the grades as JSON."""
    return msgspec.json.format(msgspec.json.encode(grades)).decode()
