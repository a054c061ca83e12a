"""Checks that the parts of a lesson fit together, so that a mistake in its file is an error when
the file is read, and not when a learner opens it."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.core.errors import WarploomError
from warploom.core.options import nearest
from warploom.devices.catalog import find_device
from warploom.host.requests import dims
from warploom.host.values import buffer_names
from warploom.machine.launch import POLICIES
from warploom.observe.counters import COUNTERS
from warploom.sanitize.findings import TOOLS
from warploom.ui.schema import Anchor, Check, Design, LaunchRequest, Lesson, Task, Variant

VIEWS = ("memory", "data", "machine", "numbers", "time", "warp", "code")
"""What a caption can look at."""

PARTS = ("layout", "occupancy", "memory")
"""What a caption can bring into sight in a view."""

EVENTS = ("divergence", "reconvergence", "barrier", "conflict", "uncoalesced", "fault")
"""Events of a step."""

DESIGNED = ("scheduler", "prefetcher", "coalescer")
"""The parts of a multiprocessor that a task can ask for (`ui.designs`)."""

MEASURES = ("results", "counter", "instruction", "findings", "occupancy", "cycles")
"""What a check of a task can measure, one of them."""


def check_lesson(lesson: Lesson, task_request: LaunchRequest | None) -> None:
    """Checks a lesson; `task_request` is the launch of its task. Raises WarploomError for the first
    part that does not fit."""
    for problem in _problems(lesson, task_request):
        raise WarploomError(problem)


def _problems(lesson: Lesson, task_request: LaunchRequest | None) -> Iterator[str]:
    question = lesson.question
    if not 0 <= question.answer < len(question.choices):
        most = len(question.choices) - 1
        yield f"question.answer is {question.answer}; the choices are numbered from 0 to {most}."
    for number, caption in enumerate(lesson.captions, 1):
        place = f"caption {number}: look"
        yield from _one_of(place, caption.look, ("", *VIEWS))
        yield from _one_of(f"caption {number}: part", caption.part, ("", *PARTS))
        yield from _anchor_problems(f"caption {number}: at", caption.at)
        if caption.beside is not None:
            yield from _anchor_problems(f"caption {number}: beside", caption.beside)
            if lesson.versus is None:
                yield f"caption {number} has `beside`, but the lesson has no [versus]."
    _check_launch("launch", lesson.request)
    if lesson.versus is not None:
        _check_variant("versus", lesson.versus)
    if lesson.task is not None and task_request is not None:
        yield from _task_problems(lesson.task, task_request)


def _anchor_problems(place: str, anchor: Anchor) -> Iterator[str]:
    yield from _one_of(f"{place}.event", anchor.event, ("", *EVENTS))
    if anchor.nth == 0:
        yield f"{place}.nth is 0; steps are counted from 1, or backward from -1."


def _design_problems(design: Design) -> Iterator[str]:
    yield from _one_of("task.design.part", design.part, DESIGNED)
    find_device(design.device)
    if not design.kernels:
        yield "the task's design has no [[task.design.kernels]] on which it can be measured."
    for kernel in design.kernels:
        dims("task.design.kernels.grid", kernel.grid)
        dims("task.design.kernels.block", kernel.block)
        buffer_names(kernel.args)


def _task_problems(task: Task, request: LaunchRequest) -> Iterator[str]:
    if task.design is not None:
        yield from _design_problems(task.design)
        if task.checks or task.also:
            yield (
                "a task with a design is measured on the design's kernels, so it must not contain "
                "checks or `also`."
            )
        return
    _check_launch("task.launch", request)
    for number, variant in enumerate(task.also, 1):
        _check_variant(f"task.also {number}", variant)
    if not task.checks:
        yield "the task has no [[task.checks]], so every kernel would pass."
    buffers = buffer_names(request.args)
    for number, check in enumerate(task.checks, 1):
        yield from _check_problems(f"check {number} of the task", check, buffers)


def _check_problems(place: str, check: Check, buffers: tuple[str, ...]) -> Iterator[str]:
    given = [name for name in MEASURES if getattr(check, name)]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        yield (
            f"{place} ({check.label}) must have exactly one of {', '.join(MEASURES)}, but has "
            f"{found}."
        )
    for name in check.results:
        yield from _one_of(f"{place}: results", name, buffers)
    for tool in check.findings:
        yield from _one_of(f"{place}: findings", tool, TOOLS)
    for name, value in (("counter", check.counter), ("per", check.per)):
        yield from _one_of(f"{place}: {name}", value, ("", *COUNTERS))
    bounded = check.most is not None or check.least is not None
    if not check.results and not check.findings and not bounded:
        yield f"{place} ({check.label}) has no bound: give `most` or `least`."


def _one_of(place: str, value: str, known: tuple[str, ...]) -> Iterator[str]:
    if value not in known:
        yield f"{place}: there is no {value!r}. {nearest(value, [one for one in known if one])}"


def _check_launch(place: str, request: LaunchRequest) -> None:
    """Raises WarploomError for a launch whose device, schedule or shape there is not."""
    _check_variant(
        place,
        Variant(
            device=request.device,
            schedule=request.schedule,
            grid=request.grid,
            block=request.block,
            args=request.args,
        ),
    )


def _check_variant(place: str, variant: Variant) -> None:
    """Raises WarploomError for a variant whose device, schedule or shape there is not."""
    if variant.device is not None:
        find_device(variant.device)
    for problem in _one_of(f"{place}.schedule", variant.schedule or "", ("", *POLICIES)):
        raise WarploomError(problem)
    for name, shape in (("grid", variant.grid), ("block", variant.block)):
        if shape is not None:
            dims(f"{place}.{name}", shape)
    buffer_names(variant.args or ())
