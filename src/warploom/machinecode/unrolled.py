"""Estimates how often the copies of a loop that ptxas unrolled are executed.

ptxas makes a loop of, as an example, four turns, and behind it code for two turns and for one, each
used where as many are left. Of the counted loop the sums are known: how often it was entered, the
turns, and how often lanes left it while others went on. They tell the turns of each entry where all
have as many. Else the turns are taken to be as equal as the sums permit, and lanes of one warp that
leave at different turns to leave at successive ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

Edge = tuple[int, int]
"""Two nodes."""


@dataclass(frozen=True)
class Uses:
    """Holds the executions of the copies of an unrolled loop: of each size (the turns that a copy
    does) how often warps execute it, how often they come to it from elsewhere, and how often lanes
    part at the branches of them all."""

    executed: dict[int, float]
    entered: dict[int, float]
    partings: float

    @property
    def turns(self) -> float:
        """Returns the turns that warps execute. Lanes that leave an unrolled loop early do their
        last turns behind it, when those that stayed have done them: there are more than counted."""
        return sum(size * count for size, count in self.executed.items())


def uses_of(sizes: Sequence[int], entered: float, turns: float, partings: float) -> Uses:
    """Return the executions of copies of these sizes, 1 among them, of a loop that warps entered so
    often for so many turns in all, and from which lanes parted so often."""
    order = sorted(sizes, reverse=True)
    executed, came = dict.fromkeys(order, 0.0), dict.fromkeys(order, 0.0)
    parted = 0.0
    for weight, most, ways in _entries(turns / entered, partings / entered):
        left = [most - way for way in range(ways + 1)]
        for size in order:
            done = [turns // size for turns in left]
            executed[size] += entered * weight * max(done)
            came[size] += entered * weight * min(max(done), 1)
            parted += entered * weight * (len(set(done)) - 1)
            left = [turns % size for turns in left]
    return Uses(executed, came, parted)


def bypasses(successors: Sequence[Sequence[int]], unrolled: Mapping[int, int]) -> Iterator[Edge]:
    """Yield the edges of a graph by which the copy of size 1 is reached past the test for the next
    larger one: the test whether a loop has any turns. One that is entered has some.

    `unrolled` are the nodes of the copies, by size."""
    single, larger = unrolled[1], unrolled[min(size for size in unrolled if size > 1)]
    before: dict[int, list[int]] = defaultdict(list)
    for node, onward in enumerate(successors):
        for to in onward:
            before[to].append(node)
    toward_larger = _leading_to(before, larger, without=single)
    toward_single = _leading_to(before, single, without=larger)
    test = larger
    while len(before[test]) == 1 and (test == larger or len(successors[test]) == 1):
        [test] = before[test]
    for node in toward_larger - {test, larger}:
        for to in successors[node]:
            if to == single or (to in toward_single and to not in toward_larger):
                yield node, to


def _leading_to(before: Mapping[int, Sequence[int]], end: int, *, without: int) -> set[int]:
    """Return the nodes from which paths lead to another one, but not through `without`."""
    found = {end}
    waiting = [end]
    while waiting:
        for node in before.get(waiting.pop(), ()):
            if node != without and node not in found:
                found.add(node)
                waiting.append(node)
    return found


def _entries(turns: float, partings: float) -> Iterator[tuple[float, int, int]]:
    """Yield the parts of all entries of a loop, each with the turns of the lanes that stay longest
    and how often others part from them, for these means."""
    longer = turns % 1
    few = int(turns)
    # From lanes that do one turn nobody parts: those that do more have the others' share.
    short = min(partings, float(few - 1)) if few else 0.0
    long = min((partings - (1 - longer) * short) / longer, float(few)) if longer else 0.0
    for part, most, parted in ((1 - longer, few, short), (longer, few + 1, long)):
        more = parted % 1
        yield part * (1 - more), most, int(parted)
        yield part * more, most, ceil(parted)
