"""Grades a learner's kernel: launches it as the task of a lesson specifies, and measures each
check.

Results are held against those of the task's reference solution under the same launch. Counters,
findings and occupancy are those of the launch itself; cycles are modelled, and compared with those
of the kernel that the task begins with.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as unguarded

import numpy as np
from msgspec.structs import replace

from warploom.core.errors import InstructionLimit, WarploomError
from warploom.core.lazy import cached_property
from warploom.host.buffer import Array
from warploom.host.run import Run
from warploom.ptx.printer import print_instruction
from warploom.ui.designs.ranking import grade_design
from warploom.ui.lessons import changed
from warploom.ui.record import engine_of, prepare_launch, refusal_of
from warploom.ui.schema import Check, Judged, LaunchRequest, Lesson, Task, Variant, Verdict

CLOSE = 1e-5
"""Relative difference up to which floating-point results are equal: additions may be in another
order."""

MEMORY = 512 << 20
"""Bytes of memory of the device of each launch."""

MOST_INSTRUCTIONS = 5_000_000
"""Warp instructions after which a kernel counts as one that does not end."""

MOST_INTERPRETED = 20_000
"""Warp instructions after which the reference machine, which begins at once but runs some 10,000
a second, leaves a launch to compiled code."""


ADVERSARIAL = Variant(schedule="adversarial")
"""The launch that results must hold under, too: lanes run apart wherever nothing synchronizes them,
so that kernels that rely on lanes in lockstep fail."""


def grade(lesson: Lesson, source: str, name: str | None = None) -> Verdict:
    """Returns how a kernel, which messages call `name`, did in the task of a lesson. Raises
    WarploomError where the lesson has no task, and where the lesson's own kernels do not run."""
    if lesson.task is None:
        raise WarploomError(f"the lesson {lesson.id} has no task")
    if lesson.task.design is not None:
        return grade_design(lesson.id, lesson.task.design, source)
    try:
        judged = tuple(_judged(lesson, lesson.task, task_request(lesson, source, name)))
    except LessonError:
        raise
    except WarploomError as error:
        refusal = refusal_of(error)
        return Verdict(lesson=lesson.id, passed=False, error=refusal.message, errors=refusal.errors)
    return Verdict(lesson=lesson.id, passed=all(one.passed for one in judged), checks=judged)


class LessonError(WarploomError):
    """An error of the lesson itself, not of the kernel that is graded."""


def task_request(lesson: Lesson, source: str, name: str | None = None) -> LaunchRequest:
    """Returns the launch of a lesson's task, with a learner's kernel."""
    assert lesson.task is not None
    request = changed(lesson.request, lesson.task.launch)
    most = request.max_instructions or MOST_INSTRUCTIONS
    return replace(request, name=name or request.name, source=source, max_instructions=most)


def starting_source(lesson: Lesson) -> str:
    """Returns the kernel that a lesson's task begins with."""
    return (lesson.task.source if lesson.task else "") or lesson.request.source


@dataclass
class Launched:
    """A kernel and its launch, with the memory after it; each is measured when it is asked for."""

    request: LaunchRequest
    part: str = ""
    """The part of the lesson that the kernel is; empty for the learner's."""
    buffers: dict[str, Array] = field(default_factory=dict[str, Array])
    engine: str = ""

    @cached_property
    def run(self) -> Run:
        """Returns the launch as it is, without sanitizers."""
        with self._blamed():
            return self._run(engine_of(self.request))

    @contextmanager
    def _blamed(self) -> Generator[None]:
        """Raises LessonError for what a kernel of the lesson itself does wrong."""
        try:
            yield
        except WarploomError as error:
            if self.part:
                raise LessonError(f"the lesson's {self.part} does not run: {error}") from None
            raise

    def _run(self, engine: str) -> Run:
        """Returns the launch on an engine; on compiled code if it is too long for the other one."""
        self.engine = engine
        ready = prepare_launch(self.request, MEMORY, engine=engine, caches=True)
        limit = self.request.max_instructions or MOST_INSTRUCTIONS
        most = min(limit, MOST_INTERPRETED) if engine == "reference" else limit
        try:
            run = ready.launcher(*ready.values, max_instructions=most)
        except InstructionLimit:
            if most == limit:
                raise
            return self._run("compiled")
        self.buffers = {name: one.copy_to_host() for name, one in ready.buffers.items()}
        return run

    def findings(self, tools: tuple[str, ...]) -> list[str]:
        """Returns what tools of the sanitizer find in the launch, which has run before."""
        ready = prepare_launch(self.request, MEMORY, engine=self.engine)
        limit = self.request.max_instructions
        run = ready.launcher(*ready.values, max_instructions=limit, sanitize=tools)
        return [str(one) for one in run.findings]

    @cached_property
    def cycles(self) -> int:
        """Returns the modelled cycles of the launch, by PTX: the same wherever it is graded."""
        with self._blamed():
            ready = prepare_launch(self.request, MEMORY, record=True)
            run = ready.launcher(*ready.values, max_instructions=self.request.max_instructions)
            return run.time(code="ptx").cycles

    def executions(self, instruction: str) -> int:
        """Returns how often warps executed PTX instructions whose text begins so."""
        program = self.run.kernel.program
        texts = [print_instruction(unguarded(one, guard=None)) for one in program.instructions]
        counts = self.run.counters.by_instruction()
        return sum(
            one.warp_instructions
            for text, one in zip(texts, counts, strict=True)
            if text.startswith(instruction)
        )


def _judged(lesson: Lesson, task: Task, request: LaunchRequest) -> list[Judged]:
    """Returns how a kernel, with its launch, did in each check, in their order."""
    mine = Launched(request)
    mine.run  # noqa: B018  # an error that ends it is the whole verdict
    right = Launched(task_request(lesson, task.solution), "solution")
    begun = Launched(task_request(lesson, starting_source(lesson)), "first kernel")
    found = [_measure(check, mine, right, begun) for check in task.checks]
    names = tuple(name for check in task.checks for name in check.results)
    for variant in task.also:
        again = [Launched(changed(one.request, variant), one.part) for one in (mine, right)]
        label = f"the same results with {variant.label or variant.device or variant.schedule}"
        found.append(_results(label, names, *again))
    return found


def _measure(check: Check, mine: Launched, right: Launched, begun: Launched) -> Judged:
    if check.results:
        found = _results(check.label, check.results, mine, right)
        if not found.passed:
            return found
        again = (Launched(changed(one.request, ADVERSARIAL), one.part) for one in (mine, right))
        found = _results(check.label, check.results, *again)
        detail = found.measured and f"under the adversarial schedule, {found.measured}"
        return Judged(found.label, found.passed, detail)
    if check.findings:
        found = mine.findings(check.findings)
        return Judged(check.label, not found, found[0] if found else "")
    if check.occupancy:
        share = mine.run.occupancy.fraction
        return _bounded(check, share, f"{100 * share:.0f} % occupancy", 100, " %")
    if check.cycles:
        share = mine.cycles / begun.cycles
        both = f"{mine.cycles:,} cycles, initially {begun.cycles:,}"
        return _bounded(check, share, both, begun.cycles, " cycles")
    if check.instruction:
        count = mine.executions(check.instruction)
        return _bounded(check, count, f"{count:,} executions of {check.instruction}")
    counters = mine.run.counters
    value = counters[check.counter]
    name = check.counter.replace("_", " ")
    if not check.per:
        return _bounded(check, value, f"{value:,} {name}")
    value /= max(1, counters[check.per])
    per = check.per.replace("_", " ").removesuffix("s")
    return _bounded(check, value, f"{value:,.4g} {name} per {per}")


def _bounded(
    check: Check, value: float, measured: str, factor: float = 1, unit: str = ""
) -> Judged:
    """Returns how a value does between the bounds of its check, which are shown times `factor`
    where it fails them."""
    bounds = (("at most", check.most), ("at least", check.least))
    passed = (check.most is None or value <= check.most) and (
        check.least is None or value >= check.least
    )
    asked = " and ".join(
        f"{words} {factor * bound:,.10g}{unit}" for words, bound in bounds if bound is not None
    )
    return Judged(check.label, passed, measured if passed else f"{measured}; required: {asked}")


def _results(label: str, names: tuple[str, ...], mine: Launched, right: Launched) -> Judged:
    """Returns whether the buffers hold what the reference solution leaves in them."""
    for one in (right, mine):
        one.run  # noqa: B018
    for name in names:
        got, wanted = mine.buffers[name].reshape(-1), right.buffers[name].reshape(-1)
        differs = np.flatnonzero(~np.isclose(got, wanted, rtol=CLOSE, atol=0, equal_nan=True))
        if len(differs):
            first = int(differs[0])
            more = f"; {len(differs)} of {len(got)} differ" if len(differs) > 1 else ""
            return Judged(
                label, False, f"{name}[{first}] is {got[first]}, not {wanted[first]}{more}"
            )
    return Judged(label, True, "")
