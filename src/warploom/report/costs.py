"""The costliest source lines: what each cost, in which unit of the SM, and why.

The cost of a line is in slots of the units that serve a warp: one for each warp instruction, one
more for each transaction, wavefront or pass beyond the first of a request. It orders lines, and is
no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warploom.observe.counters import Counters, Counts
from warploom.observe.examples import Example

SHOWN_PART = 0.1
"""A part of a line's cost that is smaller is not named, if it is not the largest."""


@dataclass(frozen=True, slots=True)
class LineCost:
    """A source line ("file:line"), its counters, its cost in slots, what made most of it, and its
    share of the launch's cost."""

    line: str
    counts: Counts
    cost: int
    why: str
    share: float = 0.0


def line_costs(
    counters: Counters, examples: tuple[Example, ...], warp_size: int
) -> tuple[LineCost, ...]:
    """Returns all source lines, the costliest first."""
    costliest: dict[tuple[str, str], Example] = {}
    for example in sorted(examples, key=lambda one: one.cost):
        costliest[example.line, example.space.value] = example
    by_line = counters.by_line()
    lines = {
        line: tuple(_parts(line, counts, counters, costliest, warp_size))
        for line, counts in by_line.items()
    }
    total = max(1, sum(part.slots for parts in lines.values() for part in parts))
    made = [
        LineCost(line, by_line[line], cost, _reason(parts, cost), cost / total)
        for line, parts in lines.items()
        for cost in (sum(part.slots for part in parts),)
    ]
    return tuple(sorted(made, key=lambda line: -line.cost))


@dataclass(frozen=True, slots=True)
class Part:
    """Slots of a unit that a line took, the unit, and a text that says why."""

    unit: str
    slots: int
    why: str


def unit_costs(counters: Counters, examples: tuple[Example, ...], warp_size: int) -> dict[str, int]:
    """Returns the slots that a launch took of each unit, the most first."""
    units: dict[str, int] = {}
    for line, counts in counters.by_line().items():
        for part in _parts(line, counts, counters, {}, warp_size):
            units[part.unit] = units.get(part.unit, 0) + part.slots
    return dict(sorted(units.items(), key=lambda item: -item[1]))


def _reason(parts: tuple[Part, ...], cost: int) -> str:
    """Returns what made a line's cost: its largest part, and the next if it counts."""
    ordered = sorted(parts, key=lambda part: -part.slots)
    named = [part.why for part in ordered[:2] if part.slots >= max(1, SHOWN_PART * cost)]
    return "; ".join(named)


def _parts(
    line: str,
    counts: Counts,
    counters: Counters,
    examples: Mapping[tuple[str, str], Example],
    warp_size: int,
) -> Iterator[Part]:
    """Yields the parts of a line's cost, some of them empty."""
    lanes = counts.average_active_lanes
    share = 100 * counts.warp_instructions / max(1, counters.warp_instructions)
    executed = f"{share:.0f} % of all instructions"
    if 0 < lanes < warp_size / 2:
        executed += f", {lanes:.1f} lanes active"
    if counts.selects:
        executed += ", with both sides of a conditional computed and one selected"
    yield Part("instructions", counts.warp_instructions, executed)
    for space in ("global", "local"):
        more = _sum(counts, space, "transactions") - _sum(counts, space, "requests")
        text = f"{space}: {_pattern(counts, space, examples.get((line, space)))}"
        yield Part(f"{space} memory", max(0, more), text)
    conflicts = _sum(counts, "shared", "bank_conflicts")
    yield Part("shared memory", conflicts, f"shared: {conflicts:,} bank conflicts")
    wide = _sum(counts, "shared", "wavefronts") - conflicts - _sum(counts, "shared", "requests")
    yield Part("shared memory", max(0, wide), "shared: accesses wider than a word")
    passes = counts.constant_load_transactions - counts.constant_load_requests
    yield Part("constant memory", max(0, passes), "constant: lanes access different words")
    passes = counts.atomic_passes - counts.atomic_requests
    yield Part("atomics", max(0, passes), "atomics: lanes access the same address")


def _pattern(counts: Counts, space: str, example: Example | None) -> str:
    """Returns the transactions per request, with the fewest that are possible and the stride of
    lanes where a request took more."""
    requests = _sum(counts, space, "requests")
    each = _sum(counts, space, "transactions") / requests if requests else 0
    text = f"{each:.1f} transactions per request"
    if example is None:
        return f"{text} (optimal)"
    stride = example.stride
    where = f"stride {stride} bytes" if stride else "scattered"
    return f"{text} (optimal: {example.best}), {where}"


def _sum(counts: Counts, space: str, field: str) -> int:
    return sum(counts.get(f"{space}_{op}_{field}", 0) for op in ("load", "store", "atomic"))
