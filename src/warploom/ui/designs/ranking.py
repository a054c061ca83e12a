"""Grades a design: measures it and the known ones on each kernel of its task, and ranks them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from warploom.ui.designs.coalescers import (
    COALESCE,
    COALESCERS,
    accesses_of,
    costs_of_coalescers,
)
from warploom.ui.designs.launches import recorded_run, request_of, traced
from warploom.ui.designs.policy_source import Form, PolicyError, function_of
from warploom.ui.designs.timed import (
    PREFETCH,
    PREFETCHERS,
    RANK,
    SCHEDULERS,
    costs_of_prefetchers,
    costs_of_schedulers,
)
from warploom.ui.schema import (
    Design,
    Judged,
    LaunchRequest,
    Ranking,
    Score,
    SourceError,
    Verdict,
)

MINE = "yours"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a multiprocessor that can be designed: the form of its function, the names of the
    known designs, the unit of costs, and what measures them, then the function, for a launch."""

    form: Form
    known: tuple[str, ...]
    unit: str
    measure: Callable[[LaunchRequest, Callable[..., Any]], list[int]]


PARTS = {
    "scheduler": Part(
        RANK,
        tuple(name for name, _ in SCHEDULERS),
        "modelled cycles",
        lambda request, function: costs_of_schedulers(recorded_run(request), function),
    ),
    "prefetcher": Part(
        PREFETCH,
        tuple(name for name, _ in PREFETCHERS),
        "modelled cycles",
        lambda request, function: costs_of_prefetchers(recorded_run(request), function),
    ),
    "coalescer": Part(
        COALESCE,
        tuple(name for name, _ in COALESCERS),
        "packets of 32 bytes",
        lambda request, function: costs_of_coalescers(accesses_of(traced(request)), function),
    ),
}


def grade_design(lesson: str, design: Design, text: str) -> Verdict:
    """Returns how a design does: it passes if its score is better than that of each known one, and
    it costs no more than the first known one on any kernel. Raises WarploomError where a kernel
    does not run."""
    part = PARTS[design.part]
    try:
        function = function_of(text, part.form)
        ranking = _ranking(design, part, function)
    except PolicyError as error:
        where = SourceError(error.line, error.reason)
        return Verdict(lesson=lesson, passed=False, error=str(error), errors=(where,))
    checks = (*_judged(ranking), _nowhere_worse(ranking, part.known[0]))
    return Verdict(
        lesson=lesson,
        passed=all(one.passed for one in checks),
        checks=checks,
        ranking=ranking,
    )


def _ranking(design: Design, part: Part, function: Callable[..., Any]) -> Ranking:
    """Returns the scores of all designs, the best first."""
    columns = [part.measure(request_of(design, kernel), function) for kernel in design.kernels]
    rows = list(zip(*columns, strict=True))
    names = (*part.known, MINE)
    scores = [Score(name, row, _mean(row, rows[0])) for name, row in zip(names, rows, strict=True)]
    mine = scores[-1]
    ranked = sorted(scores, key=lambda one: one.score)
    kernels = tuple(kernel.kernel for kernel in design.kernels)
    return Ranking(kernels, part.unit, tuple(ranked), ranked.index(mine))


def _mean(costs: Sequence[int], others: Sequence[int]) -> float:
    """Returns the geometric mean of costs relative to others."""
    ratios = (math.log(cost / other) for cost, other in zip(costs, others, strict=True))
    return math.exp(sum(ratios) / len(costs))


def _judged(ranking: Ranking) -> Iterator[Judged]:
    """Yields whether the learner's design is better than each known one."""
    mine = ranking.scores[ranking.mine]
    for one in ranking.scores:
        if one is not mine:
            measured = f"{mine.score:.3f}; {one.name}: {one.score:.3f}"
            yield Judged(f"better than {one.name}", mine.score < one.score, measured)


def _nowhere_worse(ranking: Ranking, name: str) -> Judged:
    """Returns whether the learner's design costs no more than a known one on any kernel."""
    mine = ranking.scores[ranking.mine]
    known = next(one for one in ranking.scores if one.name == name)
    both = zip(mine.costs, known.costs, ranking.kernels, strict=True)
    worse = [f"{kernel}: {a:,}; {name}: {b:,}" for a, b, kernel in both if a > b]
    return Judged(f"no worse than {name} on any kernel", not worse, ", ".join(worse))
