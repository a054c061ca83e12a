"""Provides assertions about the cost of kernels, for use in tests.

For example:

    run = kernel[grid, block](x, y)
    wl.testing.assert_coalesced(run)
    wl.testing.assert_no_bank_conflicts(run)

Each failure names the source lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from warploom.host.run import Run
from warploom.observe.counters import Counts
from warploom.report.source import source_line, split_line

__all__ = [
    "assert_coalesced",
    "assert_no_bank_conflicts",
    "assert_no_divergence",
    "assert_occupancy",
]


def assert_coalesced(run: Run, max_sectors_per_request: float = 4) -> None:
    """Raises AssertionError unless every line's global loads, and its global stores, take at most
    this number of 32-byte sectors per request, on average: 32 neighboring words of 4 bytes need
    4."""
    found: list[str] = []
    for line, counts in run.counters.by_line().items():
        for op in ("load", "store"):
            requests = counts[f"global_{op}_requests"]
            sectors = counts[f"global_{op}_sectors"]
            if sectors > max_sectors_per_request * requests:
                found.append(
                    _line_text(line, f"{sectors / requests:.2f} sectors per {op}{_why(run, line)}")
                )
    limit = f"{max_sectors_per_request:g} sectors per request"
    _fail_if(found, f"global memory accesses are not coalesced (more than {limit})")


def assert_no_bank_conflicts(run: Run) -> None:
    """Raises AssertionError where an access to shared memory took more wavefronts than it needs."""
    found = [
        _line_text(line, f"{conflicts:,} extra wavefronts{_colliding(run, line)}")
        for line, counts in run.counters.by_line().items()
        if (conflicts := _conflicts(counts))
    ]
    _fail_if(found, "shared memory has bank conflicts")


def assert_no_divergence(run: Run, lines: Iterable[int] | None = None) -> None:
    """Raises AssertionError where a warp diverged at a branch: on these source lines, or on any
    where none are given."""
    wanted = None if lines is None else set(lines)
    found = [
        _line_text(line, f"{counts.divergent_branches:,} of {counts.branches:,} branches diverged")
        for line, counts in run.counters.by_line().items()
        if counts.divergent_branches and (wanted is None or split_line(line)[1] in wanted)
    ]
    _fail_if(found, "warps diverge")


def assert_occupancy(run: Run, at_least: float) -> None:
    """Raises AssertionError unless such blocks can fill this share (0 to 1) of an SM's warps."""
    occupancy = run.occupancy
    if occupancy.fraction < at_least:
        raise AssertionError(
            f"occupancy is {occupancy.fraction:.3f}, but must be at least {at_least:g}: "
            f"{run.kernel.program.title} at {_place(run.kernel.line)} has "
            f"{occupancy.demand.registers} registers per thread ({run.kernel.resources.source}) "
            f"and {occupancy.demand.shared_bytes:,} bytes of shared memory per block of "
            f"{occupancy.demand.threads} threads; limited by {', '.join(occupancy.limiters)}"
        )


def _conflicts(counts: Counts) -> int:
    return sum(counts[f"shared_{op}_bank_conflicts"] for op in ("load", "store", "atomic"))


def _why(run: Run, line: str) -> str:
    strides = [e.stride for e in run.examples if e.line == line and e.space.value == "global"]
    if not strides:
        return ""
    return f" (stride {strides[0]} bytes)" if strides[0] else " (scattered)"


def _colliding(run: Run, line: str) -> str:
    for example in run.examples:
        if example.line == line and example.collisions:
            worst = max(example.collisions, key=len)
            return f" (lanes {', '.join(map(str, worst))} access the same bank)"
    return ""


def _line_text(line: str, what: str) -> str:
    source = source_line(*split_line(line))
    return f"  {_place(line)}: {what}" + (f"\n      {source}" if source else "")


def _place(line: str) -> str:
    file, number = split_line(line)
    return f"{Path(file).name}:{number}"


def _fail_if(found: Iterable[str], title: str) -> None:
    lines: Iterator[str] = iter(found)
    first = next(lines, None)
    if first is not None:
        raise AssertionError("\n".join([title, first, *lines]))
