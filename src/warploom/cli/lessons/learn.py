"""`warploom learn`: the lessons, small kernels that show in a minute each what a warp does."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec import structs

from warploom.cli.lessons.class_grades import grades_json, grades_of_class, grades_table
from warploom.cli.options import grouped
from warploom.cli.pages import Export, Machine, PageOptions, write_page
from warploom.core.errors import WarploomError
from warploom.core.output_files import writing
from warploom.core.printable import printable
from warploom.core.source_files import printable_name
from warploom.host.programs.confinement import Confinement
from warploom.host.programs.sources import read_source
from warploom.ui.explorables import (
    EXPLORABLES,
    explorable_of,
    explorable_show,
    read_explorable,
)
from warploom.ui.explorables.recorded import recorded_explorable
from warploom.ui.grading import starting_source
from warploom.ui.lessons import (
    SYLLABUS,
    labels_of,
    lesson_heads,
    lesson_named,
    lessons,
    requests_of,
)
from warploom.ui.page_machine import kernels_of, with_machine
from warploom.ui.progress import DONE, READ, note_progress, read_progress
from warploom.ui.record import confined, record
from warploom.ui.runner import LIMITED, NOTHING, Limits, run
from warploom.ui.schema import Assignment, Judged, Lesson, Ranking, Show, Verdict
from warploom.ui.shows import exported_show, live_show

MARKS = {DONE: "✓", READ: "·"}
"""How the list shows what is kept of a lesson."""


@grouped
def learn(
    name: Annotated[
        str | None, typer.Argument(help="A lesson from the list, or a lesson file (.toml).")
    ] = None,
    *,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="KERNEL.cu",
            help="Grade a kernel, or each kernel in a folder, as a solution to the lesson's task.",
        ),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(metavar="KERNEL.cu", help="Write the task's starting kernel to a file."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the grades (or the lessons and your progress) as JSON."),
    ] = False,
    page: PageOptions,
    export: Export = None,
    machine: Machine = None,
) -> None:
    """List the lessons, open a lesson in the browser, or grade a solution to its task. NAME can
    also be the name of an interactive page with sliders; `warploom learn` lists these pages, too.

    With --start or --check, NAME defaults to the name of the file (banks for banks.cu). With
    --check, the exit status is 0 if the kernel passes, otherwise 1. If --check names a folder, the
    kernels of a class are graded: CLASS/STUDENT/banks.cu or, with NAME, CLASS/STUDENT.cu. A table
    shows which tasks each student has done.

    Examples: `warploom learn`, `warploom learn lock`, `warploom learn --start banks.cu`,
    `warploom learn --check banks.cu --json`, `warploom learn --check class`.
    """
    if machine is not None and export is None:
        raise WarploomError(
            "--machine requires --export: without --export, a server on this computer runs edited "
            "kernels"
        )
    if check is not None and check.is_dir():
        grades = grades_of_class(check, name, lambda one: _verdict(one, page.limits()))
        print(grades_json(grades) if as_json else printable(grades_table(grades)))
        return
    file = start or check
    if name is None and file is None:
        if export is not None:
            raise WarploomError("--export writes a lesson's page: add the lesson's name")
        _list(as_json=as_json)
        return
    if name in EXPLORABLES and file is None:
        _explore(name, page, export)
        return
    lesson = lesson_named(name or (file.name.partition(".")[0] if file else ""))
    if start is not None:
        _write_new(start, starting_source(lesson))
        print(
            f"Wrote the task's starting kernel to {start}. {lesson.task.ask if lesson.task else ''}"
        )
        return
    if check is not None:
        _grade(lesson, check, page.limits(), as_json=as_json)
        return
    traces = recorded_lesson(lesson)
    if export is not None and machine is not None:
        show = with_machine(_exported(lesson), machine)
        write_page(export, show, traces, kernels_of(lesson))
        return
    if export is not None:
        write_page(export, _exported(lesson), traces)
        return
    show = live_show(lesson.title, len(traces), request=lesson.request, lesson=lesson)
    page.serve(show, traces)


def _explore(name: str, page: PageOptions, export: Path | None) -> None:
    """Writes the page of an explorable, or serves it."""
    launches = recorded_explorable(name)
    show = explorable_show(explorable_of(name, launches, live=export is None))
    data = [launch.trace for launch in launches]
    if export is not None:
        write_page(export, show, data)
    else:
        page.serve(show, data)


def _write_new(file: Path, text: str) -> None:
    """Writes a file, which must not exist. Raises WarploomError where it does, or
    cannot be written."""
    with writing(file), file.open("x", encoding="utf-8") as stream:
        stream.write(text)


def _list(*, as_json: bool) -> None:
    kept = read_progress()
    if as_json:
        heads = [{**structs.asdict(one), "progress": kept.get(one.id)} for one in lesson_heads()]
        print(msgspec.json.format(msgspec.json.encode(heads)).decode())
        return
    width = max(len(one.id) for one in lessons())
    by_name = {one.id: one for one in lessons()}
    for part, names in SYLLABUS.items():
        print(part)
        for name in names:
            one = by_name[name]
            print(f"{MARKS.get(kept.get(name, ''), ' ')} {name:<{width}}  {one.title}")
        print()
    print("Interactive pages with sliders")
    for name in EXPLORABLES:
        print(f"  {name:<{width}}  {read_explorable(name).title}")
    print()
    print("Open one with `warploom learn NAME`. ✓ = task done, · = read.", file=sys.stderr)


def recorded_lesson(lesson: Lesson) -> list[bytes]:
    """Returns the traces of a lesson's launches."""
    with confined(NOTHING):  # the kernels are from whoever wrote the lesson
        return [record(request).to_bytes() for request in requests_of(lesson)]


def _grade(lesson: Lesson, file: Path, limits: Limits, *, as_json: bool) -> None:
    """Prints how a kernel does in a task; exits with 1 where it does not pass."""
    verdict = _verdict(Assignment(lesson, read_source(file), printable_name(file)), limits)
    if verdict.passed:
        note_progress(lesson.id, DONE)
    print(
        msgspec.json.format(msgspec.json.encode(verdict)).decode()
        if as_json
        else printable(_verdict_text(verdict))
    )
    if not verdict.passed:
        sys.exit(1)


def _verdict(assignment: Assignment, limits: Limits) -> Verdict:
    """Returns how a kernel did in a task, graded in a process with limits. Raises WarploomError
    where the lesson's own kernels do not run."""
    confinement = Confinement((str(Path(assignment.name).parent),))
    answer = asyncio.run(run(assignment, limits, confinement))
    if isinstance(answer, bytes):
        return msgspec.json.decode(answer, type=Verdict)
    if answer.kind in LIMITED:
        return Verdict(lesson=assignment.lesson.id, passed=False, error=answer.message)
    raise WarploomError(answer.message)


def _verdict_text(verdict: Verdict) -> str:
    """Returns a verdict as text."""
    if verdict.error:
        return f"✕ {verdict.lesson}: the submission did not run.\n{verdict.error}"
    lines = [*(_ranking_lines(verdict.ranking) if verdict.ranking else ())]
    lines += [_line(one) for one in verdict.checks]
    lines.append("The task is done." if verdict.passed else "The task is not done yet.")
    return "\n".join(lines)


def _ranking_lines(ranking: Ranking) -> Iterator[str]:
    """Yields a table of designs and kernels, the best design first."""
    width = max(len(one.name) for one in ranking.scores)
    widths = [max(12, len(name)) for name in ranking.kernels]
    names = "  ".join(f"{n:>{w}}" for n, w in zip(ranking.kernels, widths, strict=True))
    yield f"   {ranking.unit:<{width}}  score  {names}"
    for place, one in enumerate(ranking.scores, 1):
        costs = "  ".join(f"{n:>{w},}" for n, w in zip(one.costs, widths, strict=True))
        yield f"{place}. {one.name:<{width}}  {one.score:5.3f}  {costs}"


def _line(judged: Judged) -> str:
    measured = f": {judged.measured}" if judged.measured else ""
    return f"{'✓' if judged.passed else '✕'} {judged.label}{measured}"


def _exported(lesson: Lesson) -> Show:
    return exported_show(lesson.title, labels_of(lesson), lesson=lesson)
