"""Reports why each inactive lane of a warp is inactive, and the warp's SIMT stack, from its state
table (`simt.warp_table`); traces and the debugger show them.

A lane is inactive because it has exited, is on the other path of a divergent branch, waits, or has
no thread (CUDA C++ Programming Guide, "SIMT Architecture"). Example: a block of 40 threads has two
warps; in the second, lanes 8 to 31 are `absent`. After `if (lane < 4)`, while the taken side runs,
lanes 4 to 7 are on `other_path`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.simt import warp_table
from warploom.simt.warp_table import Split, StackNode, WarpTable


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


def lanes_off(table: WarpTable, existing: int) -> LanesOff:
    """Returns, by reason, the masks of a warp's inactive lanes, from its state table. The reasons
    are: no thread; exited; on another path of a branch (live, neither active nor waiting); waiting
    at a reconvergence point, at a warp barrier, or at a block barrier. `existing` is the mask of
    lanes that have a thread."""
    live = table.live
    parked = {warp_table.AT_SYNC: 0, warp_table.AT_BARRIER: 0}
    for record in parked_records(table):
        if record.status in parked:
            parked[record.status] |= record.mask
    gathering = live & _arrived_lanes(table)
    # `mask` holds the active lanes; whatever is live, inactive and not waiting is on another path.
    waiting = gathering | parked[warp_table.AT_SYNC] | parked[warp_table.AT_BARRIER]
    return LanesOff(
        (1 << table.lanes) - 1 & ~existing,
        existing & ~live,
        live & ~table.mask & ~waiting,
        gathering,
        parked[warp_table.AT_SYNC],
        parked[warp_table.AT_BARRIER],
    )


def _arrived_lanes(table: WarpTable) -> int:
    """Returns the mask of lanes that wait at any reconvergence point, exited ones included: the
    union of `arrived` over the SIMT-stack nodes in use."""
    lanes = 0
    for node in nodes_in_use(table):
        lanes |= node.arrived
    return lanes


def nodes_in_use(table: WarpTable) -> Iterator[StackNode]:
    """Yields the nodes of a table's SIMT stack that are not free; free ones retain the words of
    their last use."""
    for node in range(warp_table.node_count(table.lanes)):
        if not table.free >> node & 1:
            yield warp_table.node_of(table, node)


def reconvergence_points(table: WarpTable) -> tuple[ReconvergencePoint, ...]:
    """Returns the SIMT stack of the active lanes, the innermost reconvergence point last, each with
    the masks of lanes expected and arrived, and the branch's other side if that has not run (else
    mask 0, block -1); empty if the lanes are not diverged."""
    points: list[ReconvergencePoint] = []
    node = table.top
    while node != warp_table.NONE:
        entry = warp_table.node_of(table, node)
        # Words of the other side are stale once it has run, and `other_mask` is 0.
        start = entry.other_block if entry.other_mask else warp_table.NONE
        points.append(
            ReconvergencePoint(entry.point, entry.expected, entry.arrived, start, entry.other_mask)
        )
        node = entry.parent
    return tuple(reversed(points))


def parked_splits(table: WarpTable) -> tuple[tuple[int, int], ...]:
    """Returns the (lane mask, basic block where it resumes) of each split, a set of diverged lanes
    with one program counter, that is not running, whatever it waits for."""
    return tuple((record.mask, record.block) for record in parked_records(table))


def parked_records(table: WarpTable) -> Iterator[Split]:
    """Yields the record of each split that is not running."""
    for split in range(table.lanes):
        if table.parked >> split & 1:
            yield warp_table.split_of(table, split)
