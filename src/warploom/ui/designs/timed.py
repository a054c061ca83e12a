"""Measures warp schedulers and prefetchers in the engine of modelled time, in its cycles."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from warploom.core.errors import WarploomError
from warploom.host.run import Run
from warploom.timing.policies import Prefetcher, WarpScheduler
from warploom.ui.designs.policy_source import Form, PolicyError

RANK = Form("rank", ("slot", "age", "last", "instruction", "now", "words"))
PREFETCH = Form("prefetch", ("line", "missed", "instruction", "slot", "nth", "words"))


def next_line(line: Any, missed: Any, instruction: Any, slot: Any, nth: Any, words: Any) -> Any:
    """Returns the line after one that L1 lacked."""
    return line + 1 if missed and nth == 0 else -1


def stride(line: Any, missed: Any, instruction: Any, slot: Any, nth: Any, words: Any) -> Any:
    """Returns the lines at once and twice the distance of the last two lines of an instruction and
    warp slot, whose table is `words`."""
    at = 2 * ((31 * instruction + slot) % 128)
    if nth == 0:
        words[at], words[at + 1] = line, line - words[at]
    return line + (nth + 1) * words[at + 1] if nth < 2 else -1


SCHEDULERS = (
    ("loose round robin", "lrr"),
    ("greedy, then oldest", "gto"),
    ("two levels", "two-level"),
    ("oldest first", "oldest"),
)
PREFETCHERS = (
    ("no prefetch", None),
    ("next line", Prefetcher(next_line)),
    ("stride", Prefetcher(stride)),
)


def cycles(run: Run, scheduler: str | WarpScheduler, prefetcher: Prefetcher | None = None) -> int:
    """Returns the modelled cycles of a run, by PTX: the same wherever a design is measured."""
    return run.time(scheduler=scheduler, prefetcher=prefetcher, code="ptx").cycles


def costs_of_schedulers(run: Run, rank: Callable[..., Any]) -> list[int]:
    """Returns the cycles of the known schedulers, then of one that ranks warps by a function.
    Raises PolicyError where that fails."""
    known = [cycles(run, name) for _, name in SCHEDULERS]
    with _blamed():
        return [*known, cycles(run, WarpScheduler(rank))]


def costs_of_prefetchers(run: Run, prefetch: Callable[..., Any]) -> list[int]:
    """Returns the cycles of the known prefetchers, then of a function. Raises PolicyError where
    that fails."""
    scheduler = SCHEDULERS[0][1]
    known = [cycles(run, scheduler, one) for _, one in PREFETCHERS]
    with _blamed():
        return [*known, cycles(run, scheduler, Prefetcher(prefetch))]


@contextmanager
def _blamed() -> Generator[None]:
    """Raises PolicyError for what is wrong with a learner's function: what Numba says of it without
    the places of its own, or an exception in a replay."""
    try:
        yield
    except WarploomError as error:
        reason, *_ = str(error).split("\n\n")
        raise PolicyError(" ".join(reason.split()), 1) from None
