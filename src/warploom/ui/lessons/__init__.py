"""The lessons: small kernels with captions that lead through what they do.

Each is a file of CUDA C++ beside one of TOML with the same name: the launch, the captions and where
they stand, a question (`ui.schema.Lesson`). The order is that of ORDER.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from warploom.ui.schema import LaunchRequest, Lesson, LessonHead, Variant

FOLDER = Path(__file__).parent

ORDER = (
    *("saxpy", "lockstep", "branch", "switch", "between-warps"),
    *("coalescing", "structures", "reduction", "banks"),
    *("barrier", "lock", "warp-synchronous", "race", "shuffle"),
    *("occupancy", "simd"),
)
"""The names of all lessons, from the first to the last."""


@lru_cache
def lessons() -> tuple[Lesson, ...]:
    """All lessons, in order."""
    return tuple(_read(name) for name in ORDER)


def lesson_heads() -> tuple[LessonHead, ...]:
    """All lessons, as a list shows them."""
    return tuple(LessonHead(one.id, one.title, one.summary) for one in lessons())


def find_lesson(name: str) -> Lesson | None:
    """The lesson of that name, None where there is none."""
    return next((one for one in lessons() if one.id == name), None)


def requests_of(lesson: Lesson) -> tuple[LaunchRequest, ...]:
    """The launches of a lesson: its own, and the one that it compares with."""
    if lesson.versus is None:
        return (lesson.request,)
    return lesson.request, _changed(lesson.request, lesson.versus)


def labels_of(lesson: Lesson) -> tuple[str, ...]:
    """Returns what the launches of a lesson are called."""
    return (lesson.label, *((lesson.versus.label,) if lesson.versus else ()))


def _changed(request: LaunchRequest, variant: Variant) -> LaunchRequest:
    given = msgspec.structs.asdict(variant)
    changes = {
        name: value for name, value in given.items() if name != "label" and value is not None
    }
    return msgspec.structs.replace(request, **changes)


def _read(name: str) -> Lesson:
    given: dict[str, Any] = tomllib.loads((FOLDER / f"{name}.toml").read_text())
    source = (FOLDER / f"{name}.cu").read_text()
    request = {**given.pop("launch"), "name": f"{name}.cu", "source": source}
    return msgspec.convert({"id": name, "request": request, **given}, Lesson)
