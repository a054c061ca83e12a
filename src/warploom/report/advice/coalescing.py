"""Advice about accesses to global memory that move more than their lanes use."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.isa.instruction import Space
from warploom.observe.examples import Example
from warploom.report.advice.case import Advice, Case
from warploom.report.advice.origins import array_of, enumerated
from warploom.report.advice.patterns import PATTERNS, Pattern, Wasteful

WELL_USED = 0.5
"""Misaligned accesses that use so much of what they move cost little: neighboring warps use the
rest of the sectors, which L1 keeps."""


def uncoalesced_access(case: Case) -> Iterator[Advice]:
    """Yields advice for global accesses that move more sectors than their bytes need: for all of a
    pattern at a line."""
    wasteful = tuple(e for e in case.examples_in(Space.GLOBAL) if _excess(case, e) > 0)
    found: dict[tuple[str, str], list[tuple[Example, Pattern]]] = {}
    for example in wasteful:
        access = Wasteful(case, example, case.strides.of(example), wasteful)
        pattern = next(made for find in PATTERNS if (made := find(access)) is not None)
        # The fields of a structure are read at many lines, and have one remedy.
        is_structure = pattern.rule == "array of structures"
        place = (array_of(case, example.instruction) if is_structure else "") or example.line
        found.setdefault((place, pattern.rule), []).append((example, pattern))
    for (_, rule), accesses_of_line in found.items():
        examples = [example for example, _ in accesses_of_line]
        example, pattern = max(accesses_of_line, key=lambda pair: _excess(case, pair[0]))
        asked, moved = (_sum(case, examples, f"bytes_{part}") for part in ("requested", "moved"))
        excess = sum(_excess(case, one) for one in examples)
        yield Advice(
            rule,
            example.line,
            f"{_named(case, examples)}{pattern.found}; {100 * asked / max(1, moved):.0f} % of the "
            f"bytes moved were requested; the worst request took {example.cost} transactions where "
            f"{example.best} would do",
            pattern.remedy,
            excess,
            saves=_savings(case, examples),
            is_minor=rule == "misaligned access" and asked >= WELL_USED * moved,
        )


def _named(case: Case, examples: list[Example]) -> str:
    """Returns the buffers that accesses are to, as the beginning of a finding."""
    names = {array_of(case, example.instruction) for example in examples} - {""}
    return f"{enumerated(sorted(names))}: " if names else ""


def _sum(case: Case, examples: list[Example], field: str) -> int:
    """Returns a counter of accesses to global memory, summed."""
    return sum(case.counts_of(one)[f"global_{one.op}_{field}"] for one in examples)


def _savings(case: Case, examples: list[Example]) -> dict[str, float]:
    """Returns the bytes that the accesses would not move if they were coalesced."""
    saved: dict[str, float] = {"loaded": 0.0, "stored": 0.0, "updated": 0.0}
    for one in examples:
        counts, kind = case.counts_of(one), f"global_{one.op}"
        share = _excess(case, one) / max(1, counts[f"{kind}_transactions"])
        field = {"load": "loaded", "store": "stored"}.get(one.op, "updated")
        saved[field] += share * counts[f"{kind}_bytes_moved"]
    return saved


def _excess(case: Case, example: Example) -> int:
    """Returns the transactions of an instruction beyond those that its bytes need, packed."""
    counts, kind = case.counts_of(example), f"global_{example.op}"
    packed = case.spec.warp_size * example.size // max(1, example.best)
    needed = max(counts[f"{kind}_requests"], counts[f"{kind}_bytes_requested"] // max(1, packed))
    return max(0, counts[f"{kind}_transactions"] - needed)
