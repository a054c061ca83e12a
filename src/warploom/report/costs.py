"""The costliest source lines: what each cost, in which unit of the SM, and why.

The cost of a line is in slots of the units that serve a warp: one for each warp instruction, one
more for each transaction, wavefront or pass beyond the first of a request. It orders lines, and is
no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.observe.counters import Counters, Counts
from warploom.observe.examples import Example


@dataclass(frozen=True, slots=True)
class LineCost:
    """A source line ("file:line"), its counters, its cost in slots, and what made most of it."""

    line: str
    counts: Counts
    cost: int
    why: str


def line_costs(
    counters: Counters, examples: tuple[Example, ...], warp_size: int
) -> tuple[LineCost, ...]:
    """Returns all source lines, the costliest first."""
    strides = {e.line: e for e in examples}
    made = [
        _line(line, counts, strides.get(line), warp_size)
        for line, counts in counters.by_line().items()
    ]
    return tuple(sorted(made, key=lambda line: -line.cost))


def _line(line: str, counts: Counts, example: Example | None, warp_size: int) -> LineCost:
    parts = dict(_parts(counts, example, warp_size))
    cost = sum(parts.values())
    why = max(parts, key=lambda part: parts[part])
    return LineCost(line, counts, cost, why if cost else "")


def _parts(counts: Counts, example: Example | None, warp_size: int) -> Iterator[tuple[str, int]]:
    """Yields the cost by what makes it."""
    lanes = counts.average_active_lanes
    executed = "executed often"
    if counts.divergent_branches:
        executed = "executed often, warps diverge"
    elif 0 < lanes < warp_size / 2:
        executed = f"executed often, {lanes:.1f} lanes on"
    yield executed, counts.warp_instructions
    for space in ("global", "local"):
        more = _sum(counts, space, "transactions") - _sum(counts, space, "requests")
        yield f"{space}: {_pattern(counts, space, example)}", max(0, more)
    conflicts = _sum(counts, "shared", "bank_conflicts")
    yield "shared: bank conflicts", conflicts
    yield (
        "shared: wide accesses",
        max(
            0, _sum(counts, "shared", "wavefronts") - conflicts - _sum(counts, "shared", "requests")
        ),
    )
    passes = counts.constant_load_transactions - counts.constant_load_requests
    yield "constant: lanes name different words", max(0, passes)
    yield (
        "atomics: lanes name one address",
        max(0, counts.atomic_passes - counts.atomic_requests),
    )


def _pattern(counts: Counts, space: str, example: Example | None) -> str:
    requests = _sum(counts, space, "requests")
    each = _sum(counts, space, "transactions") / requests if requests else 0
    text = f"{each:.1f} transactions a request"
    if example is not None and example.space.value == space:
        stride = example.stride
        text += f", stride {stride} bytes" if stride else ", scattered"
    return text


def _sum(counts: Counts, space: str, field: str) -> int:
    return sum(counts.get(f"{space}_{op}_{field}", 0) for op in ("load", "store", "atomic"))
