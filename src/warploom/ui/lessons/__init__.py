"""Contains the lessons. A lesson consists of a small kernel, captions that explain the kernel, and
a task.

A lesson is one TOML file: the kernel's source, the launch, the captions and the steps that they are
about, a question, a recap, a task (`ui.schema.Lesson`). Those of Warploom are in this folder, in
the order of SYLLABUS; any other file of that form is a lesson, too.

In: the files. Out: lessons, checked. Running and grading a task is left to `ui.grading`, drawing to
the page.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from warploom.core.errors import WarploomError
from warploom.core.input_files import InputFileError, read_text, reason_of
from warploom.core.options import nearest
from warploom.ui.lesson_rules import check_lesson
from warploom.ui.schema import LaunchRequest, Lesson, LessonHead, Variant

FOLDER = Path(__file__).parent

SYLLABUS: dict[str, tuple[str, ...]] = {
    "Warps": ("saxpy", "layout", "lockstep", "branch", "switch", "between-warps", "simd"),
    "Global memory": ("coalescing", "structures", "caches", "constants"),
    "Shared memory": ("banks", "reduction", "tiling", "histogram"),
    "Threads that work together": (
        *("barrier", "race", "exchange", "lock", "lock-warps", "warp-synchronous"),
        *("shuffle", "compaction"),
    ),
    "Time": (
        *("occupancy", "latency", "switching", "smt", "poor-fit", "async-copy", "tensor-cores"),
    ),
    "Programs": ("streams", "torch-compile", "opencl"),
    "Build your own multiprocessor": ("own-coalescer", "own-scheduler", "own-prefetcher"),
}
"""The parts of the syllabus, and the names of their lessons."""

ORDER = tuple(name for names in SYLLABUS.values() for name in names)
"""The names of all lessons, from the first to the last."""

SUFFIX = ".toml"

SUFFIXES = {"cuda": ".cu", "opencl": ".cl"}
"""The suffixes of sources by their languages, as `launch.language` has them."""


@lru_cache
def lessons() -> tuple[Lesson, ...]:
    """Returns all lessons, in order."""
    following = (*ORDER[1:], "")
    return tuple(
        msgspec.structs.replace(read_lesson(FOLDER / f"{name}{SUFFIX}"), next=after)
        for name, after in zip(ORDER, following, strict=True)
    )


def lesson_heads() -> tuple[LessonHead, ...]:
    """Returns all lessons, as a list shows them."""
    parts = {name: part for part, names in SYLLABUS.items() for name in names}
    return tuple(
        LessonHead(
            id=one.id,
            title=one.title,
            summary=one.summary,
            part=parts[one.id],
            has_task=one.task is not None,
            aim=one.aim,
            needs=one.needs,
        )
        for one in lessons()
    )


def find_lesson(name: str) -> Lesson | None:
    """Returns the lesson of that name, None where there is none."""
    return next((one for one in lessons() if one.id == name), None)


def lesson_named(name: str) -> Lesson:
    """Returns the lesson of that name, or in that file. Raises WarploomError where there is
    none."""
    if name.endswith(SUFFIX):
        return read_lesson(Path(name))
    lesson = find_lesson(name)
    if lesson is None:
        hint = nearest(name, ORDER)
        raise WarploomError(
            f"there is no lesson {name!r}. {hint} `warploom learn` lists the lessons; the name of "
            f"a lesson file ends in {SUFFIX}."
        )
    return lesson


def requests_of(lesson: Lesson) -> tuple[LaunchRequest, ...]:
    """Returns the launches of a lesson: its own, and the one that it compares with."""
    if lesson.versus is None:
        return (lesson.request,)
    return lesson.request, changed(lesson.request, lesson.versus)


def labels_of(lesson: Lesson) -> tuple[str, ...]:
    """Returns what the launches of a lesson are called."""
    return (lesson.label, *((lesson.versus.label,) if lesson.versus else ()))


def changed(request: LaunchRequest, variant: Variant) -> LaunchRequest:
    """Returns a launch with the changes of a variant."""
    given = msgspec.structs.asdict(variant)
    changes = {
        name: value for name, value in given.items() if name != "label" and value is not None
    }
    return msgspec.structs.replace(request, **changes)


def read_lesson(file: Path) -> Lesson:
    """Returns the lesson of a file. Raises WarploomError for a file that has none."""
    try:
        given: dict[str, Any] = tomllib.loads(read_text(file))
        launch = given.pop("launch", {})
        suffix = SUFFIXES[launch.pop("language", "cuda")]
        name = f"{file.stem}{'.py' if launch.get('ptx') else suffix}"
        request = {**launch, "name": name, "source": given.pop("source")}
        lesson = msgspec.convert({"id": file.stem, "request": request, **given}, Lesson)
        check_lesson(lesson, lesson.task and changed(lesson.request, lesson.task.launch))
    except InputFileError:
        raise
    except KeyError as error:
        known = f"`launch.language` must be one of {', '.join(SUFFIXES)}"
        reason = "it has no `source`" if error.args == ("source",) else known
        raise WarploomError(f"{file} is not a lesson: {reason}") from None
    except msgspec.ValidationError as error:
        raise WarploomError(f"{file} is not a lesson: {_in_the_file(error)}") from None
    except (tomllib.TOMLDecodeError, RecursionError, AttributeError, WarploomError) as error:
        raise WarploomError(f"{file} is not a lesson: {reason_of(error)}") from None
    return lesson


def _in_the_file(error: msgspec.ValidationError) -> str:
    """Returns the message of an error, with a place in the file's own terms: `$.task.hints` is
    `task.hints` there."""
    text = str(error).replace("Object contains", "it has an")
    return text.replace("`$.request", "`launch").replace("`$.", "`")
