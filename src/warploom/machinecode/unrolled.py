"""Estimates how often the copies of a loop that ptxas unrolled are executed.

ptxas makes a loop of, as an example, four turns, and after it code for two turns and for one, each
used where as many are left. Of the counted loop the sums are known: how often it was entered, the
turns, and how often lanes left it while others went on. They determine the turns of each entry
where all have as many. Else the turns are taken to be as equal as the sums permit, and lanes of one
warp that leave at different turns to leave at successive ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from math import ceil

from warploom.machinecode.loops import loops_of

Edge = tuple[int, int]
"""Two nodes."""


@dataclass(frozen=True)
class Uses:
    """Holds the executions of the copies of an unrolled loop: of each size (the turns that a copy
    does) how often warps execute it, how often they come to it from elsewhere, and how often warps
    diverge at the branches of them all."""

    executed: dict[int, float]
    entered: dict[int, float]
    divergences: float

    @property
    def turns(self) -> float:
        """Returns the turns that warps execute. Lanes that leave an unrolled loop early do their
        last turns after it, when those that stayed have done them: there are more than counted."""
        return sum(size * count for size, count in self.executed.items())


def uses_of(sizes: Sequence[int], entered: float, turns: float, divergences: float) -> Uses:
    """Returns the executions of the copies of an unrolled loop, whose `sizes` include 1. Warps
    entered the loop `entered` times, for `turns` turns in all, and diverged `divergences` times at
    its exit."""
    order = sorted(sizes, reverse=True)
    executed, came = dict.fromkeys(order, 0.0), dict.fromkeys(order, 0.0)
    diverged = 0.0
    for weight, most, ways in _entries(turns / entered, divergences / entered):
        left = [most - way for way in range(ways + 1)]
        for size in order:
            done = [turns // size for turns in left]
            executed[size] += entered * weight * max(done)
            came[size] += entered * weight * min(max(done), 1)
            diverged += entered * weight * (len(set(done)) - 1)
            left = [turns % size for turns in left]
    return Uses(executed, came, diverged)


def bypasses(successors: Sequence[Sequence[int]], unrolled: Mapping[int, int]) -> Iterator[Edge]:
    """Yields the edges of a graph that lead to the copy of size 1 past the test for the next larger
    one: the test whether a loop has any turns. One that is entered has some.

    `unrolled` are the nodes of the copies, by size."""
    single, larger = unrolled[1], unrolled[min(size for size in unrolled if size > 1)]
    before: dict[int, list[int]] = defaultdict(list)
    for node, onward in enumerate(successors):
        for to in onward:
            before[to].append(node)
    heads = _heads_around(successors, unrolled)
    toward_larger = _leading_to(before, larger, without=single, heads=heads)
    toward_single = _leading_to(before, single, without=larger, heads=heads)
    test = larger
    while len(before[test]) == 1 and (test == larger or len(successors[test]) == 1):
        [test] = before[test]
    for node in toward_larger - {test, larger}:
        for to in successors[node]:
            if to == single or (to in toward_single and to not in toward_larger):
                yield node, to


def _heads_around(
    successors: Sequence[Sequence[int]], unrolled: Mapping[int, int]
) -> frozenset[int]:
    """Returns where the innermost loop around the copies of an unrolled loop is entered; nothing if
    there is none."""
    around = [loop for loop in loops_of(successors) if loop.nodes.issuperset(unrolled.values())]
    return around[-1].heads if around else frozenset()


def _leading_to(
    before: Mapping[int, Sequence[int]], end: int, *, without: int, heads: Set[int]
) -> set[int]:
    """Returns the nodes from which paths lead to another one, but not through `without`, nor
    through another iteration of the loop that is entered at `heads`."""
    found = {end}
    waiting = [end]
    while waiting:
        at = waiting.pop()
        for node in before.get(at, ()) if at not in heads else ():
            if node != without and node not in found:
                found.add(node)
                waiting.append(node)
    return found


def _entries(turns: float, divergences: float) -> Iterator[tuple[float, int, int]]:
    """Yields the parts of all entries of a loop, each with the turns of the lanes that stay longest
    and how often other lanes leave before them, for these means."""
    longer = turns % 1
    few = int(turns)
    # No lane leaves before lanes that do one turn: those that do more have the others' share.
    short = min(divergences, float(few - 1)) if few else 0.0
    long = min((divergences - (1 - longer) * short) / longer, float(few)) if longer else 0.0
    for part, most, leaving in ((1 - longer, few, short), (longer, few + 1, long)):
        more = leaving % 1
        yield part * (1 - more), most, int(leaving)
        yield part * more, most, ceil(leaving)
