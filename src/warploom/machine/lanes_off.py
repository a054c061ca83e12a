"""Tells of each lane of a warp whether it runs, or for which reason it is off.

A lane that does not run has exited, is on another path, waits, or never existed (CUDA C++
Programming Guide, "SIMT Architecture"). The warp's table (`simt.warp_table`) tells which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.simt import warp_table
from warploom.simt.warp_table import Table


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
class ReconvergencePoint:
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
    """Return the reasons of a warp's lanes, of which `existing` have a thread."""
    live = int(table[warp_table.LIVE])
    parked = {warp_table.AT_SYNC: 0, warp_table.AT_BARRIER: 0}
    for at in _parked_offsets(table):
        if int(table[at + warp_table.S_STATUS]) in parked:
            parked[int(table[at + warp_table.S_STATUS])] |= int(table[at + warp_table.S_MASK])
    gathering = live & _arrived_lanes(table)
    waiting = gathering | parked[warp_table.AT_SYNC] | parked[warp_table.AT_BARRIER]
    return LanesOff(
        (1 << int(table[warp_table.LANES])) - 1 & ~existing,
        existing & ~live,
        live & ~int(table[warp_table.MASK]) & ~waiting,
        gathering,
        parked[warp_table.AT_SYNC],
        parked[warp_table.AT_BARRIER],
    )


def _arrived_lanes(table: Table) -> int:
    lanes = 0
    for node in range(warp_table.node_count(int(table[warp_table.LANES]))):
        if not int(table[warp_table.FREE]) >> node & 1:
            lanes |= int(table[warp_table.node_at(node) + warp_table.ARRIVED])
    return lanes


NODE_FIELDS = (
    warp_table.POINT,
    warp_table.EXPECTED,
    warp_table.ARRIVED,
    warp_table.OTHER_MASK,
)
"""Where a node of the table says what a meeting is."""


def reconvergence_points(table: Table) -> tuple[ReconvergencePoint, ...]:
    """Returns where the running lanes will meet others, the innermost place last."""
    found: list[ReconvergencePoint] = []
    node = int(table[warp_table.TOP])
    while node != warp_table.NONE:
        words = table[warp_table.node_at(node) :]
        point, expected, arrived, side = (int(words[place]) for place in NODE_FIELDS)
        start = int(words[warp_table.OTHER_BLOCK]) if side else warp_table.NONE
        found.append(ReconvergencePoint(point, expected, arrived, start, side))
        node = int(words[warp_table.PARENT])
    return tuple(reversed(found))


def parked_splits(table: Table) -> tuple[tuple[int, int], ...]:
    """(mask, basic block) of each split that is put aside, whatever it waits for."""
    return tuple(
        (int(table[at + warp_table.S_MASK]), int(table[at + warp_table.S_BLOCK]))
        for at in _parked_offsets(table)
    )


def _parked_offsets(table: Table) -> Iterator[int]:
    """Yield where the splits that are put aside stand in the table."""
    for split in range(int(table[warp_table.LANES])):
        if int(table[warp_table.PARKED]) >> split & 1:
            yield warp_table.split_at(table, split)
