"""Why each lane of a warp is where it is: running, or off and for which reason.

A lane that does not run has exited, is on another path, waits, or never existed (CUDA C++
Programming Guide, "SIMT Architecture"). The warp's table (`rules.convergence`) tells which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.rules.convergence import (
    ARRIVED,
    AT_BARRIER,
    AT_SYNC,
    EXPECTED,
    FREE,
    LANES,
    LIVE,
    MASK,
    NONE,
    OTHER_BLOCK,
    OTHER_MASK,
    PARENT,
    PARKED,
    POINT,
    S_BLOCK,
    S_MASK,
    S_STATUS,
    TOP,
    Table,
    node_at,
    node_count,
    split_at,
)


@dataclass(frozen=True, slots=True)
class LanesOff:
    """The lanes of a warp that do not run, as a mask for each reason; no lane is in two.

    `absent` never existed: the block has fewer threads than its warps have lanes. `gathering` wait
    where lanes that parted meet again, `syncing` for the lanes that a member mask names, and
    `at_barrier` at a barrier of the block. `other_path` can run, but another path has its turn.
    """

    absent: int = 0
    exited: int = 0
    other_path: int = 0
    gathering: int = 0
    syncing: int = 0
    at_barrier: int = 0


@dataclass(frozen=True, slots=True)
class Meeting:
    """A place where lanes that parted will meet: an entry of the reconvergence stack.

    `block` is the basic block before which they meet, `other_block` where `other_side`, the lanes
    of the side that has not begun, will start (-1 without any).
    """

    block: int
    expected: int
    arrived: int
    other_block: int
    other_side: int


def lanes_off(table: Table, existing: int) -> LanesOff:
    """The reasons of a warp's lanes, of which `existing` have a thread."""
    live = int(table[LIVE])
    parked = {AT_SYNC: 0, AT_BARRIER: 0}
    for at in _parked(table):
        if int(table[at + S_STATUS]) in parked:
            parked[int(table[at + S_STATUS])] |= int(table[at + S_MASK])
    gathering = live & _arrived(table)
    waiting = gathering | parked[AT_SYNC] | parked[AT_BARRIER]
    return LanesOff(
        (1 << int(table[LANES])) - 1 & ~existing,
        existing & ~live,
        live & ~int(table[MASK]) & ~waiting,
        gathering,
        parked[AT_SYNC],
        parked[AT_BARRIER],
    )


def _arrived(table: Table) -> int:
    lanes = 0
    for node in range(node_count(int(table[LANES]))):
        if not int(table[FREE]) >> node & 1:
            lanes |= int(table[node_at(node) + ARRIVED])
    return lanes


def meetings(table: Table) -> tuple[Meeting, ...]:
    """Where the running lanes will meet others, the innermost place last."""
    found: list[Meeting] = []
    node = int(table[TOP])
    while node != NONE:
        words = table[node_at(node) :]
        point, expected, arrived, side = (
            int(words[w]) for w in (POINT, EXPECTED, ARRIVED, OTHER_MASK)
        )
        start = int(words[OTHER_BLOCK]) if side else NONE
        found.append(Meeting(point, expected, arrived, start, side))
        node = int(words[PARENT])
    return tuple(reversed(found))


def parked_splits(table: Table) -> tuple[tuple[int, int], ...]:
    """(mask, basic block) of each split that is put aside, whatever it waits for."""
    return tuple((int(table[at + S_MASK]), int(table[at + S_BLOCK])) for at in _parked(table))


def _parked(table: Table) -> Iterator[int]:
    """Where the splits that are put aside stand in the table."""
    for split in range(int(table[LANES])):
        if int(table[PARKED]) >> split & 1:
            yield split_at(table, split)
