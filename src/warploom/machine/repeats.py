"""Makes costs of what access caches counted (`codegen.cache_layout`): of each kind of access the
rules say what one costs, and the cache how often it came again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.analysis.strides import LANES
from warploom.codegen.cache_layout import (
    AHEAD,
    FIRST,
    HEADER,
    KEY,
    LAPS,
    LEADER,
    MOST_STRIDES,
    PITCHES,
    RUNS,
    STEP,
    STRIDES,
    WITHIN,
    entries_of,
)
from warploom.codegen.environment import CountLayout
from warploom.machine.common import access_cost
from warploom.machine.tally import Counts, Tally
from warploom.ptx.ir import Space
from warploom.rules.distinct import ALL_LANES
from warploom.rules.fields import (
    EXAMPLE_ADDRESSES,
    EXAMPLE_COST,
    EXAMPLE_MASK,
    TRANSACTIONS,
)

Words = npt.NDArray[np.int64]

_BEGIN = 1 << 44
"""A multiple of every unit, from which addresses are counted, so that none is below 0."""


@dataclass(frozen=True)
class Repeated:
    """Accesses that came again: how often, by which lanes, and the addresses of one like them."""

    times: int
    mask: int
    addresses: tuple[int, ...]
    moved: int
    """How far these lie behind the addresses of an access that there was, or may have been."""


def add_repeats(tally: Tally, layout: CountLayout, words: Words) -> None:
    """Adds to a tally what repeated accesses cost; `words` are a worker's keys and caches."""
    for row in layout.caches.places:
        for again in _repeated(layout, row, words):
            cost = access_cost(
                layout.program, layout.rows[row], layout.rules, again.mask, again.addresses
            )
            tally.accesses[row] += again.times * cost
            _keep_example(tally.records[row], int(cost[TRANSACTIONS]), again)


def _keep_example(record: Counts, cost: int, again: Repeated) -> None:
    """Keeps an access as its row's example if it took more transactions than any."""
    if cost > record[EXAMPLE_COST]:
        record[EXAMPLE_COST], record[EXAMPLE_MASK] = cost, again.mask
        reached = record[EXAMPLE_ADDRESSES : EXAMPLE_ADDRESSES + LANES]
        reached[:] = [
            address - again.moved if again.mask >> lane & 1 else 0
            for lane, address in enumerate(again.addresses)
        ]


def _repeated(layout: CountLayout, row: int, words: Words) -> Iterator[Repeated]:
    place, size = layout.caches.places[row], layout.caches.sizes[row]
    leader, length, unit = int(words[place + LEADER]), layout.caches.entry(row), layout.caches.unit
    if leader == 0:
        return
    local = layout.rows[row].space is Space.LOCAL
    counts = layout.caches.counts
    for number in range(entries_of(layout.caches.sets)):
        begin = HEADER + number * length
        entry = words[leader + begin : leader + begin + length]
        times = entry[counts:]
        if leader != place:
            times = times + words[place + begin + counts : place + begin + length]
        for at in np.flatnonzero(times).tolist():
            steps = _steps(words[place : place + HEADER], entry)
            first = _BEGIN + (at * size + steps[0]) % unit
            addresses = tuple(first + step - steps[0] for step in steps)
            if local:
                addresses = tuple(_BEGIN + 4 * lane for lane in range(LANES))
            moved = first - steps[0] - int(entry[FIRST])
            if entry[WITHIN] >= size:  # places in the unit matter
                moved = unit * round(moved / unit)
            yield Repeated(int(times[at]), int(entry[KEY]) & ALL_LANES, addresses, moved)


def _steps(header: Words, entry: Words) -> list[int]:
    """Returns how far each lane reaches behind where the first run of its group begins."""
    laps = header[LAPS : LAPS + MOST_STRIDES] * entry[STRIDES : STRIDES + MOST_STRIDES]
    ahead, stride = int(header[AHEAD] + laps.sum()), int(entry[STEP])
    length = LANES // int(header[RUNS])
    return [
        ahead + int(entry[PITCHES + lane // length]) + lane % length * stride
        for lane in range(LANES)
    ]
