"""Reports why each inactive lane of a warp is inactive, and the warp's SIMT stack, from its state
table (`simt.warp_table`); traces and the debugger show them.

A lane is inactive because it has exited, is on the other path of a divergent branch, waits, or has
no thread (CUDA C++ Programming Guide, "SIMT Architecture"). Example: a block of 40 threads has two
warps; in the second, lanes 8 to 31 are `absent`. Behind `if (lane < 4)`, while the taken side runs,
lanes 4 to 7 are on `other_path`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.simt import warp_table
from warploom.simt.warp_table import Table


@dataclass(frozen=True, slots=True)
class LanesOff:
    """The inactive lanes of a warp, as one mask for each reason; the masks are disjoint.

    `absent` lanes have no thread: the block has fewer threads than its warps have lanes.
    `gathering` lanes wait at a reconvergence point, `syncing` lanes for the other lanes of a member
    mask (`__syncwarp`), and `at_barrier` lanes at a barrier of the thread block. `other_path` lanes
    are runnable, but another path of the warp is active.
    """

    absent: int = 0
    exited: int = 0
    other_path: int = 0
    gathering: int = 0
    syncing: int = 0
    at_barrier: int = 0


@dataclass(frozen=True, slots=True)
class ReconvergencePoint:
    """An entry of the SIMT stack: a point where diverged lanes reconverge.

    `block` is the basic block before which the lanes reconverge. `expected` and `arrived` are lane
    masks. `other_side` is the mask of the lanes whose side of the branch has not started,
    `other_block` the basic block where that side starts (-1 if there is none).
    """

    block: int
    expected: int
    arrived: int
    other_block: int
    other_side: int


def lanes_off(table: Table, existing: int) -> LanesOff:
    """Returns, by reason, the masks of a warp's inactive lanes, from its state table: lanes without
    a thread, exited ones, those on another path of a branch (live, neither active nor waiting), and
    those that wait at a reconvergence point, at a warp barrier and at a block barrier. `existing`
    is the mask of lanes that have a thread."""
    live = int(table[warp_table.LIVE])
    parked = {warp_table.AT_SYNC: 0, warp_table.AT_BARRIER: 0}
    for offset in _parked_offsets(table):
        if int(table[offset + warp_table.S_STATUS]) in parked:
            parked[int(table[offset + warp_table.S_STATUS])] |= int(
                table[offset + warp_table.S_MASK]
            )
    gathering = live & _arrived_lanes(table)
    # `MASK` holds the active lanes; whatever is live, inactive and not waiting is on another path.
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
    """Returns the mask of lanes that wait at any reconvergence point, exited ones included: the
    union of ARRIVED over the SIMT-stack nodes in use."""
    lanes = 0
    for node in range(warp_table.node_count(int(table[warp_table.LANES]))):
        # Nodes in the free list keep the words of their last use, so their `ARRIVED` masks are
        # stale.
        if not int(table[warp_table.FREE]) >> node & 1:
            lanes |= int(table[warp_table.node_at(node) + warp_table.ARRIVED])
    return lanes


NODE_FIELDS = (
    warp_table.POINT,
    warp_table.EXPECTED,
    warp_table.ARRIVED,
    warp_table.OTHER_MASK,
)
"""The words of a SIMT-stack node that `reconvergence_points` reads, in its order of unpacking."""


def reconvergence_points(table: Table) -> tuple[ReconvergencePoint, ...]:
    """Returns the SIMT stack of the active lanes, the innermost reconvergence point last, each with
    the masks of lanes expected and arrived, and the branch's other side if that has not run (else
    mask 0, block -1); empty if the lanes are not diverged."""
    points: list[ReconvergencePoint] = []
    node = int(table[warp_table.TOP])
    while node != warp_table.NONE:
        fields = table[warp_table.node_at(node) :]
        point, expected, arrived, side = (int(fields[offset]) for offset in NODE_FIELDS)
        # Words of the other side are stale once it has run, and `OTHER_MASK` is 0.
        start = int(fields[warp_table.OTHER_BLOCK]) if side else warp_table.NONE
        points.append(ReconvergencePoint(point, expected, arrived, start, side))
        node = int(fields[warp_table.PARENT])
    return tuple(reversed(points))


def parked_splits(table: Table) -> tuple[tuple[int, int], ...]:
    """Returns the (lane mask, basic block where it resumes) of each split, a set of diverged lanes
    with one program counter, that is not running, whatever it waits for."""
    return tuple(
        (int(table[offset + warp_table.S_MASK]), int(table[offset + warp_table.S_BLOCK]))
        for offset in _parked_offsets(table)
    )


def _parked_offsets(table: Table) -> Iterator[int]:
    """Yields the word offset in the table of the record of each split that is not running."""
    for split in range(int(table[warp_table.LANES])):
        if int(table[warp_table.PARKED]) >> split & 1:
            yield warp_table.split_at(table, split)
