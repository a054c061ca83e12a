"""Why each lane of a warp is where it is: running, or off and for which reason.

A lane that does not run has exited, is on another path, waits, or never existed (CUDA C++
Programming Guide, "SIMT Architecture"). The warp's table (`rules.convergence`) tells which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.rules import convergence
from warploom.rules.convergence import Table


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
    live = int(table[convergence.LIVE])
    parked = {convergence.AT_SYNC: 0, convergence.AT_BARRIER: 0}
    for at in _parked(table):
        if int(table[at + convergence.S_STATUS]) in parked:
            parked[int(table[at + convergence.S_STATUS])] |= int(table[at + convergence.S_MASK])
    gathering = live & _arrived(table)
    waiting = gathering | parked[convergence.AT_SYNC] | parked[convergence.AT_BARRIER]
    return LanesOff(
        (1 << int(table[convergence.LANES])) - 1 & ~existing,
        existing & ~live,
        live & ~int(table[convergence.MASK]) & ~waiting,
        gathering,
        parked[convergence.AT_SYNC],
        parked[convergence.AT_BARRIER],
    )


def _arrived(table: Table) -> int:
    lanes = 0
    for node in range(convergence.node_count(int(table[convergence.LANES]))):
        if not int(table[convergence.FREE]) >> node & 1:
            lanes |= int(table[convergence.node_at(node) + convergence.ARRIVED])
    return lanes


MEETING = (
    convergence.POINT,
    convergence.EXPECTED,
    convergence.ARRIVED,
    convergence.OTHER_MASK,
)
"""Where a node of the table says what a meeting is."""


def meetings(table: Table) -> tuple[Meeting, ...]:
    """Where the running lanes will meet others, the innermost place last."""
    found: list[Meeting] = []
    node = int(table[convergence.TOP])
    while node != convergence.NONE:
        words = table[convergence.node_at(node) :]
        point, expected, arrived, side = (int(words[place]) for place in MEETING)
        start = int(words[convergence.OTHER_BLOCK]) if side else convergence.NONE
        found.append(Meeting(point, expected, arrived, start, side))
        node = int(words[convergence.PARENT])
    return tuple(reversed(found))


def parked_splits(table: Table) -> tuple[tuple[int, int], ...]:
    """(mask, basic block) of each split that is put aside, whatever it waits for."""
    return tuple(
        (int(table[at + convergence.S_MASK]), int(table[at + convergence.S_BLOCK]))
        for at in _parked(table)
    )


def _parked(table: Table) -> Iterator[int]:
    """Where the splits that are put aside stand in the table."""
    for split in range(int(table[convergence.LANES])):
        if int(table[convergence.PARKED]) >> split & 1:
            yield convergence.split_at(table, split)
