"""Provides the reference machine with a view of a warp's state table: active lanes, divergence and
reconvergence.

A divergent branch pushes a node on the SIMT stack. Its lanes reconverge at the immediate
post-dominator of the branch's basic block (CUDA C++ Programming Guide, "SIMT Architecture"); one
side runs to that point before the other starts. Other states of waiting lanes are left to
`simt.convergence`, which defines the table. Example: at `@%p bra L` with `%p` true in lanes 0-3 of
8, the fall-through side 0xF0 may become active while the node has `expected` 0xFF, `other_side`
0x0F and `arrived` 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from warploom.simt.convergence import pop, push
from warploom.simt.indexed_branch import Words, diverge_by_index
from warploom.simt.schedule_layout import ENDED, RECONVERGING, RUNNABLE
from warploom.simt.warp_table import NONE, WarpTable, node_of


@dataclass(frozen=True, slots=True)
class BranchSide:
    """The lanes (`mask`) that continue at a basic block after a branch."""

    block: int
    mask: int


@dataclass(slots=True)
class Splits:
    """A view of a warp's state table, whose active lanes it splits at branches and merges at
    reconvergence points; `exit` is the number of the virtual exit block. `reconverged` collects the
    branch instructions whose lanes have reconverged, until `control` counts and clears them."""

    table: WarpTable
    exit: int
    reconverged: list[int] = field(default_factory=list[int])

    @property
    def active(self) -> int:
        """Returns the mask of active lanes."""
        return self.table.mask

    @property
    def live(self) -> int:
        """Returns the mask of lanes that have not exited."""
        return self.table.live

    @property
    def block(self) -> int:
        """Returns the basic block of the active lanes."""
        return self.table.block

    def diverge(
        self, branch: int, point: int, active_side: BranchSide, waiting_side: BranchSide, level: int
    ) -> None:
        """Splits the active lanes at branch instruction `branch`, which reconverge at basic block
        `point`: those of `active_side` stay active, those of `waiting_side` stand in a new node of
        the SIMT stack until `arrive` makes them active. The caller enters the block of
        `active_side`.

        If the other side is at the reconvergence point already, it has nothing to run and counts as
        arrived, in an outer node if that has the same point and level (so that loops do not grow
        the stack). `level` is the call depth of the lanes.
        """
        if waiting_side.block != point:
            push(
                self.table, point, self.active, waiting_side.block, waiting_side.mask, branch, level
            )
        else:
            if not self._gathers_at(point, level):
                # The other side has nothing to run: its block and mask are 0.
                push(self.table, point, self.active, 0, 0, branch, level)
            node_of(self.table, self.table.top).arrived |= waiting_side.mask
        self.table.mask = active_side.mask

    def split_targets(
        self,
        branch: int,
        point: int,
        lane_targets: Words,
        targets: Words,
        on: int,
        fall_through: int,
        level: int,
    ) -> int:
        """Splits the active lanes at indexed branch `branch` (`simt.indexed_branch`):
        `lane_targets` has each lane's index, and is overwritten with its block, `targets` the
        blocks, `on` the mask of lanes that jump; the others go to block `fall_through`. Lanes
        reconverge at block `point`; `level` is their call depth. Returns the basic block of the
        lanes that run first; NONE, with the lane in `argument`, if an index selects no target."""
        return diverge_by_index(
            self.table, lane_targets, on, targets, len(targets), fall_through, point, branch, level
        )

    def _gathers_at(self, block: int, level: int) -> bool:
        """Returns true if the active lanes' innermost SIMT-stack node reconverges at that block,
        and, except at the exit, at that call depth."""
        table, top = self.table, self.table.top
        if top == NONE or node_of(table, top).point != block:
            return False
        # Lanes in a recursive call may pass the same block deeper in the stack; they do not
        # reconverge there.
        return block == self.exit or node_of(table, top).level == level

    def arrive(self, block: int, level: int) -> int:
        """Enters `block` with the active lanes, at call depth `level`, and reconverges as far as
        possible, at the exit block after they have left the live lanes; branches whose lanes have
        all come, but not at the exit, are added to `reconverged`. Returns RUNNABLE if lanes
        continue, which are then the active ones (of the branch's other side, if that has not run);
        RECONVERGING if the active ones wait for others; ENDED if no live lane is left."""
        table = self.table
        if block == self.exit:
            table.live &= ~table.mask
        # A block may end several nested branches.
        while self._gathers_at(block, level):
            top = table.top
            node = node_of(table, top)
            node.arrived |= table.mask
            # The other side of the branch has not run: it becomes active.
            if node.other_mask:
                table.mask, block = node.other_mask, node.other_block
                node.other_mask = 0
                break
            if node.arrived != node.expected:
                return RECONVERGING
            table.mask = node.expected
            if block != self.exit and node.branch != NONE:
                self.reconverged.append(node.branch)
            pop(table, top)
        table.block = block
        if block != self.exit:
            return RUNNABLE
        return RECONVERGING if table.live else ENDED

    def exit_lanes(self, mask: int) -> None:
        """Exits some of the active lanes, but not all: removes them from the live and the active
        lanes, and counts them as arrived at the innermost node; outer nodes stay as they are. (All
        nodes that contain them reconverge at the kernel's exit, as a point that lanes can miss by
        exiting is not a post-dominator, so that no other node waits for them.)"""
        table = self.table
        table.live &= ~mask
        table.mask &= ~mask
        # Exited lanes count as arrived, so that the others do not wait for them.
        if table.top != NONE:
            node_of(table, table.top).arrived |= mask
