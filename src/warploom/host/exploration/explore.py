"""Exploring the undefined: one launch under many legal orders, and whether its results differ.

What the architecture leaves open is chosen by a policy and a seed: which lane's store lasts, the
order of atomics, of warps, of blocks, of the sides of a branch. Runs are spread over processes, or
over a Dask cluster; where two of them end differently, both are run again on the reference machine
to find the lines whose order made the difference.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Unpack

import numpy as np

from warploom.core.errors import WarploomError
from warploom.core.host_cores import usable_cores
from warploom.core.options import checked
from warploom.detector import layout as words
from warploom.host.buffer import Array
from warploom.host.clusters import as_dims, cluster_of
from warploom.host.exploration.interleavings import search_orders
from warploom.host.exploration.orders import Job, Order, Outcome, Ready, job_of, run_orders
from warploom.host.exploration.spread import spread
from warploom.host.launch_options import LaunchOptions
from warploom.host.launcher import Launcher
from warploom.host.option_types import Positive, Workers
from warploom.isa.kinds import OpKind
from warploom.machine.launch import POLICIES, WARP_SIZE
from warploom.observe.origins import Cause, Origins, cause_at, causes
from warploom.program.program import Program
from warploom.sanitize.sites import sites_of

FEW = 16
"""So many orders at most are run before it is decided whether other processes run the others."""

START_SECONDS = 1.0
"""The seconds that a process takes to start and to load the program."""

NAMED = len(POLICIES) - 1
"""The policies that need no seed, each of which is an order."""

MOST_POINTS = 64
"""Up to so many instructions, warps are interrupted before them."""

CHOSEN = 0.7
"""How likely an instruction is to be interrupted at, where the seed chooses."""

WATCHED = 100_000
"""So many warp instructions of a run are watched, to find the lines that matter."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first location at which two orders leave different values: a buffer or a variable of the
    module, the index of its element, the values. All empty where one of them failed."""

    buffer: str = ""
    index: tuple[int, ...] = ()
    values: tuple[Any, Any] = ("", "")


@dataclass(frozen=True, slots=True)
class Exploration:
    """The results of all orders.

    `first` and `second` are two that end differently, or None; `difference` says where and
    `causes` the lines whose order made it so, as far as they were found. `note` says why not.
    `uninterrupted` says why no warp was interrupted before conflicting accesses; empty where warps
    were, or nothing conflicts. `complete`: among the orders are all in which the turns of warps
    between such accesses can differ.
    """

    outcomes: tuple[Outcome, ...]
    first: Outcome | None = None
    second: Outcome | None = None
    difference: Difference | None = None
    causes: tuple[Cause, ...] = ()
    note: str = ""
    uninterrupted: str = ""
    complete: bool = False

    @property
    def differs(self) -> bool:
        """Returns whether the result depends on the order."""
        return self.second is not None

    @property
    def results(self) -> int:
        """Returns how many different results there were."""
        return len({outcome.result for outcome in self.outcomes})


@checked("explore(...)")
def explore(
    launcher: Launcher,
    *args: Any,
    runs: Positive = 100,
    workers: Workers | None = None,
    cluster: str | None = None,
    **options: Unpack[LaunchOptions],
) -> Exploration:
    """Launches under `runs` legal orders, and returns whether the results differ.

    The arguments are those of a launch; their buffers stay as they are. `workers` is how many
    processes share the runs (by default one for each processor if that takes less time);
    `cluster` the address of a Dask scheduler whose workers do instead. Raises LaunchError for what
    does not fit, WarploomError where there is no Dask.
    """
    job = job_of(launcher, args, options)
    points, reason = interruption_points(job)
    named = min(runs, NAMED + 1)
    found, complete = _searched(job, points, runs - named)
    orders = plan_orders(points, runs)[: runs - len(found)]
    outcomes: list[Outcome] = []
    if cluster is None and workers is None:
        outcomes, workers = _first_outcomes(job, orders)
    outcomes += _outcomes(job, orders[len(outcomes) :], workers, cluster)
    outcomes[named:named] = found
    return replace(_compared(job, outcomes), uninterrupted=reason, complete=complete)


def _searched(job: Job, points: Sequence[int], left: int) -> tuple[list[Outcome], bool]:
    """Returns what came of a search for all orders of turns between `points`, within half of the
    runs that are left, or a few; and whether it found all."""
    ready = Ready(job)
    cluster, _ = cluster_of(ready.launcher.kernel.function, as_dims(job.cluster_dims))
    if not points or math.prod(cluster) > 1:
        return [], False
    return search_orders(ready, points, max(min(left, FEW), left // 2))


def plan_orders(points: Sequence[int], runs: int) -> list[Order]:
    """Returns the default order, one of each other policy, then orders in which warps are
    interrupted before `points`, by the numbers of their instructions: before all of them, before
    each alone, before some. Without such instructions, random ones."""
    named = [Order(policy, 0) for policy in POLICIES if policy != "random"]
    forced = [Order("fair", 0, tuple(points)), *(Order("fair", 0, (point,)) for point in points)]
    some = (_some(points, seed) for seed in range(1, runs))
    chosen = forced if points else []
    return [*named, *chosen, *(Order("random", *one) for one in some)][: max(runs, 1)]


def _some(points: Sequence[int], seed: int) -> tuple[int, tuple[int, ...]]:
    """Returns a seed and the points that it chooses: none for every other, then each or not."""
    choice = Random(seed)
    return seed, tuple(point for point in points if seed % 2 and choice.random() < CHOSEN)


def interruption_points(job: Job) -> tuple[tuple[int, ...], str]:
    """Returns the instructions before which it matters who goes first: those that conflict in one
    run, and strong accesses, which conflict by design; and why there are none, where some may
    conflict: there are too many for so many orders, or the detector cannot find them."""
    if job.spec.warp_size != WARP_SIZE:
        return (), f"the race detector supports only warps of {WARP_SIZE} lanes"
    ready = Ready(job)
    program = ready.launcher.kernel.program
    strong = (
        index
        for index, flags in enumerate(sites_of(program).flags)
        if flags & words.STRONG and not flags & words.MBARRIER
    )
    reason, conflicting = "", set[int]()
    try:
        conflicting = {index for pair in ready.conflicts() for index in pair}
    except WarploomError as error:  # the launch is too large for the detector
        reason = str(error)
    points = tuple(sorted(conflicting.union(strong)))
    if len(points) > MOST_POINTS:
        return (), (
            f"{len(points)} instructions make conflicting memory accesses, but the search supports "
            f"at most {MOST_POINTS}"
        )
    return points, reason


# ---- spreading ----------------------------------------------------------------------------------


def _first_outcomes(job: Job, orders: Sequence[Order]) -> tuple[list[Outcome], int]:
    """Runs the first FEW orders in this process; returns their outcomes, and the number of
    processes for the others: one for each core if that saves more time than they take to start, by
    the time of the second half of the first orders (the first half compiles), else 1."""
    outcomes = run_orders(job, orders[: FEW // 2])
    began = time.perf_counter()
    outcomes += run_orders(job, orders[FEW // 2 : FEW])
    each = (time.perf_counter() - began) / max(1, len(outcomes) - FEW // 2)
    cores, left = usable_cores(), len(orders) - len(outcomes)
    saved = each * left * (1 - 1 / cores)
    return outcomes, cores if saved > START_SECONDS else 1


def _outcomes(
    job: Job, orders: Sequence[Order], workers: int | None, cluster: str | None
) -> list[Outcome]:
    """Runs orders in this process if one worker is to run them, else in `workers` processes, or on
    the workers of a cluster."""
    if not orders or (cluster is None and workers == 1):
        return run_orders(job, orders)
    with spread(workers or 1, cluster) as (executor, count):
        return _on(executor, count, job, orders)


def _on(executor: Executor, workers: int, job: Job, orders: Sequence[Order]) -> list[Outcome]:
    """Runs the orders in consecutive parts, one for each worker that gets some."""
    size = -(-len(orders) // max(workers, 1))
    shares = [orders[start : start + size] for start in range(0, len(orders), size)]
    done = executor.map(run_orders, [job] * len(shares), shares)
    return [outcome for share in done for outcome in share]


# ---- comparing ----------------------------------------------------------------------------------


def _compared(job: Job, outcomes: Sequence[Outcome]) -> Exploration:
    """Looks for two orders that end differently, the first of all among them, and for the cause."""
    first, kept = outcomes[0], tuple(outcomes)
    second = next((o for o in outcomes if o.result != first.result), None)
    if second is None:
        return Exploration(kept)
    ready = Ready(job)
    found = _difference(ready, first, second)
    lines, note = _causes(ready, first, second, found)
    return Exploration(kept, first, second, found[0], lines, note)


def _difference(ready: Ready, first: Outcome, second: Outcome) -> tuple[Difference, int]:
    """Returns the first element that two orders leave different, and its address."""
    if first.error or second.error:
        return Difference(), 0
    ready.run(first.order)
    before = [result.data.copy() for result in ready.results()]
    ready.run(second.order)
    for old, result in zip(before, ready.results(), strict=True):
        place = _first_unequal(old, result.data)
        if place is not None:
            index = tuple(int(i) for i in np.unravel_index(place, old.shape))
            values = old[index].item(), result.data[index].item()
            address = result.address + place * old.itemsize
            return Difference(result.name, index, values), address
    return Difference(), 0


def _first_unequal(a: Array, b: Array) -> int | None:
    """Returns the number of the first element whose bytes differ; NaN equals itself."""
    size = a.itemsize
    rows = (np.ascontiguousarray(x).view(np.uint8).reshape(-1, size) for x in (a, b))
    unequal = np.flatnonzero(np.any(np.not_equal(*rows), axis=1))
    return int(unequal[0]) if len(unequal) else None


def _causes(
    ready: Ready, first: Outcome, second: Outcome, found: tuple[Difference, int]
) -> tuple[tuple[Cause, ...], str]:
    """Returns the lines whose order made the difference; else why they were not found."""
    one, other = Origins(WATCHED), Origins(WATCHED)
    program = ready.launcher.kernel.program
    ready.watch(one, first.order)
    ready.watch(other, second.order)
    lines = causes(program, one, other) or cause_at(program, one, other, found[1])
    if lines:
        return lines, ""
    if one.full or other.full:
        return (), (
            f"The lines that cause the difference were not found in the first {WATCHED:,} warp "
            "instructions; try a smaller launch that still shows the difference."
        )
    if line := _mask_of_active_lanes(program):
        return (), (
            f"{line} reads the mask of active lanes (__activemask), which depends on the "
            "schedule. Specify the lanes instead, for example with __ballot_sync(mask, 1)."
        )
    return (), (
        "The order of memory accesses does not explain the difference; the kernel may read the "
        "clock."
    )


def _mask_of_active_lanes(program: Program) -> str:
    """Returns the source line of the first `activemask`, whose value is that of the lanes that
    happen to run together (PTX ISA, "activemask"); empty if there is none."""
    at = (
        number
        for number, instruction in enumerate(program.instructions)
        if instruction.operation.spec.kind is OpKind.ACTIVE_MASK
    )
    number = next(at, None)
    return "" if number is None else program.line(number)
