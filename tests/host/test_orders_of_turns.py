"""The search for all orders in which warps take turns, against all orders of what they do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
import pytest

import warploom as wl
from warploom.host.exploration.explore import interruption_points
from warploom.host.exploration.interleavings import search_orders
from warploom.host.exploration.orders import Ready, job_of

Step = tuple[str, str, int]
"""What a thread does: "load" or "store", where, and the result's number or the value; or a
"barrier"."""

PLACES = {"x": 0, "y": 32}


def parsed(text: str) -> list[list[Step]]:
    """Returns the steps of threads: `x=1` stores, `0=x` loads result 0, `|` is a barrier."""
    threads: list[list[Step]] = []
    for line in text.split("/"):
        threads.append([])
        for word in line.split():
            to, _, source = word.partition("=")
            if word == "|":
                threads[-1].append(("barrier", "", 0))
            elif to in PLACES:
                threads[-1].append(("store", to, int(source)))
            else:
                threads[-1].append(("load", source, int(to)))
    return threads


def kernel_of(name: str, threads: Sequence[Sequence[Step]], who: str) -> str:
    """Returns a kernel in which each of `who` (blocks or warps) does the steps of one thread."""
    parts: list[str] = []
    for number, steps in enumerate(threads):
        parts.append(f"if ({who} == {number}) {{")
        for what, place, value in steps:
            if what == "barrier":
                parts.append('asm volatile("bar.sync 0;" ::: "memory");')
            else:
                at = f"x[{PLACES[place]}]"
                parts.append(f"r[{value}] = {at};" if what == "load" else f"{at} = {value};")
        parts.append("}")
    return f"__global__ void {name}(int *r, volatile int *x) {{ {' '.join(parts)} }}"


def all_outcomes(threads: Sequence[Sequence[Step]]) -> set[tuple[int, ...]]:
    """Returns the results of all orders of the steps."""
    results = sum(step[0] == "load" for steps in threads for step in steps)
    found = set[tuple[int, ...]]()
    for order in orders_of(threads):
        memory, loaded = dict.fromkeys(PLACES, 0), [0] * results
        for what, place, value in order:
            if what == "load":
                loaded[value] = memory[place]
            else:
                memory[place] = value
        found.add((*loaded, *memory.values()))
    return found


def orders_of(threads: Sequence[Sequence[Step]]) -> Iterator[tuple[Step, ...]]:
    """Yields every order of the steps of some threads, each in its own order, with all of them
    behind a barrier once all have come to it."""
    if all(steps and steps[0][0] == "barrier" for steps in threads):
        yield from orders_of([steps[1:] for steps in threads])
        return
    if not any(threads):
        yield ()
    for number, steps in enumerate(threads):
        if steps and steps[0][0] != "barrier":
            left = [*threads[:number], steps[1:], *threads[number + 1 :]]
            yield from ((steps[0], *rest) for rest in orders_of(left))


def searched(
    kernel: wl.Kernel, threads: Sequence[Sequence[Step]], who: str
) -> list[tuple[int, ...]]:
    """Returns the results of all orders that a search runs, each of which comes again."""
    shape = (len(threads), 1) if who == "blockIdx.x" else (1, 32 * len(threads))
    results = sum(step[0] == "load" for steps in threads for step in steps)
    job = job_of(kernel[shape], (np.zeros(max(results, 1), np.int32), np.zeros(64, np.int32)), {})
    ready, seen = Ready(job), list[tuple[int, ...]]()
    found, complete = search_orders(ready, interruption_points(job)[0], 500)
    assert complete
    for outcome in found:
        assert ready.run(outcome.order) == outcome.error == ""
        assert ready.digest() == outcome.digest
        r, x = (result.data for result in ready.results())
        seen.append((*r.tolist()[:results], *(int(x[at]) for at in PLACES.values())))
    return seen


LITMUS = {
    "buffering": ("x=1 0=y / y=1 1=x", 3),
    "message": ("x=1 y=1 / 0=y 1=x", 3),
    "independent_reads": ("x=1 / y=1 / 0=x 1=y / 2=y 3=x", 15),
    "stores": ("x=1 / x=2 / x=3", 6),
    "alone": ("x=1 0=x / y=1 1=y", 1),
    "phases": ("x=1 | y=1 / x=2 | y=2", 4),
    "ordered": ("x=1 | / | x=2", 1),
}
"""Programs and the number of their orders, up to swaps of what does not meet: each of the first
three has one for each outcome, and n stores to one place have n!."""


@pytest.mark.parametrize("name", LITMUS)
def test_a_search_runs_each_order_of_accesses_that_meet_once(name: str) -> None:
    text, orders = LITMUS[name]
    threads, who = parsed(text), "threadIdx.x / 32" if "|" in text else "blockIdx.x"
    kernel = wl.Device().compile(kernel_of(name, threads, who))[name]
    found = searched(kernel, threads, who)
    assert set(found) == all_outcomes(threads)
    assert len(found) == orders


CONDITION = """
__global__ void condition(int *r, volatile int *flag, int *x) {
  if (blockIdx.x == 0 && flag[0]) x[0] = 5;
  if (blockIdx.x == 1) flag[0] = 1;
  if (blockIdx.x == 2) r[0] = x[0];
}
"""


def test_accesses_that_conflict_in_some_orders_only_are_searched_too() -> None:
    """In the order of the blocks, nobody stores to x: 5 is read where block 1 goes first."""
    kernel = wl.Device().compile(CONDITION)["condition"]
    job = job_of(kernel[3, 1], tuple(np.zeros(1, np.int32) for _ in range(3)), {})
    ready, seen = Ready(job), set[tuple[int, int]]()
    found, complete = search_orders(ready, interruption_points(job)[0], 100)
    assert complete
    for outcome in found:
        ready.run(outcome.order)
        r, _, x = (int(result.data[0]) for result in ready.results())
        seen.add((r, x))
    assert seen == {(0, 0), (0, 5), (5, 5)}


def random_threads(draw: Random) -> list[list[Step]]:
    """Returns two or three threads with up to three steps each, of which some meet at a barrier."""
    threads: list[list[Step]] = []
    loads, barriers = 0, draw.random() < 0.4
    for _ in range(draw.randint(2, 3)):
        steps: list[Step] = []
        for _ in range(draw.randint(1, 3)):
            if draw.random() < 0.5:
                steps.append(("load", draw.choice("xy"), loads))
                loads += 1
            else:
                steps.append(("store", draw.choice("xy"), draw.randint(1, 9)))
        if barriers:
            steps.insert(draw.randint(0, len(steps)), ("barrier", "", 0))
        threads.append(steps)
    return threads


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(8, 200, 8))]
)
def test_a_search_finds_all_outcomes_of_random_programs(first: int) -> None:
    programs = {f"k{seed}": random_threads(Random(seed)) for seed in range(first, first + 8)}
    ways = {
        name: "threadIdx.x / 32"
        if any(step[0] == "barrier" for step in threads[0]) or int(name[1:]) % 2
        else "blockIdx.x"
        for name, threads in programs.items()
    }
    source = "\n".join(kernel_of(name, programs[name], ways[name]) for name in programs)
    module = wl.Device().compile(source)
    for name, threads in programs.items():
        found = set(searched(module[name], threads, ways[name]))
        assert found == all_outcomes(threads), f"{name}: {threads}"


def test_a_launch_whose_conflicts_are_all_ordered_is_reported_complete() -> None:
    source = "__global__ void sum(int *x) { if (threadIdx.x == 0) x[0] += 1; }"
    kernel = wl.Device().compile(source)["sum"]
    found = wl.explore(kernel[2, 32], np.zeros(1, np.int32), runs=20)
    assert found.differs
    assert found.complete
