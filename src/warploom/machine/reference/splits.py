"""The lanes of a warp: which run, where they part, and where they meet again.

A branch that sends lanes both ways makes a node, at whose point — the immediate post-dominator of
its block — the lanes gather again (CUDA C++ Programming Guide, "SIMT Architecture"). One side runs
before the other begins. What else can happen to lanes that wait is in `simt.convergence`, whose
table this is a view of.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from warploom.simt.convergence import pop, push
from warploom.simt.indexed_branch import Words, take_indexed_branch
from warploom.simt.schedule_layout import (
    ENDED,
    GATHERS,
    RUNNABLE,
)
from warploom.simt.warp_table import (
    ARRIVED,
    BLOCK,
    BRANCH,
    EXPECTED,
    LEVEL,
    LIVE,
    MASK,
    NONE,
    OTHER_BLOCK,
    OTHER_MASK,
    POINT,
    TOP,
    Table,
    node_at,
)


@dataclass(frozen=True, slots=True)
class BranchSide:
    """Lanes that go on at a block."""

    block: int
    mask: int


@dataclass(slots=True)
class Splits:
    """A view of a warp's table; `exit` is the virtual end. `reconverged` collects the branches whose lanes
    have met since it was last cleared."""

    table: Table
    exit: int
    reconverged: list[int] = field(default_factory=list[int])

    @property
    def active(self) -> int:
        """Return the lanes that run."""
        return int(self.table[MASK])

    @property
    def live(self) -> int:
        """Return the lanes that have not exited."""
        return int(self.table[LIVE])

    @property
    def block(self) -> int:
        """Returns where they are."""
        return int(self.table[BLOCK])

    def diverge(
        self, branch: int, point: int, first: BranchSide, other: BranchSide, level: int
    ) -> None:
        """Part the running lanes at a branch; those of `first` run on.

        The others may be already where the sides meet. Then they have nothing to run: they only
        wait, at an outer node if that has the same point. `level` says how many calls deep the
        lanes are.
        """
        if other.block != point:
            push(self.table, point, self.active, other.block, other.mask, branch, level)
        else:
            if not self._gathers_at(point, level):
                push(self.table, point, self.active, 0, 0, branch, level)
            self.table[node_at(self.table[TOP]) + ARRIVED] |= other.mask
        self.table[MASK] = first.mask

    def split_targets(
        self,
        branch: int,
        point: int,
        goals: Words,
        targets: Words,
        on: int,
        through: int,
        level: int,
    ) -> int:
        """Part the running lanes at an indexed branch (`simt.indexed_branch`); gives the block of
        those that go first, NONE where an index chooses none."""
        return take_indexed_branch(
            self.table, goals, on, targets, len(targets), through, point, branch, level
        )

    def _gathers_at(self, block: int, level: int) -> bool:
        """Returns whether the innermost node gathers lanes at that block, as deep in calls."""
        table, top = self.table, self.table[TOP]
        if top == NONE or table[node_at(top) + POINT] != block:
            return False
        return block == self.exit or table[node_at(top) + LEVEL] == level

    def arrive(self, block: int, level: int) -> int:
        """Let the running lanes come to `block`: RUNNABLE with the lanes that go on, GATHERS where
        they wait for others, or ENDED."""
        table = self.table
        if block == self.exit:
            table[LIVE] &= ~table[MASK]
        while self._gathers_at(block, level):
            top = int(table[TOP])
            at = node_at(top)
            table[at + ARRIVED] |= table[MASK]
            if table[at + OTHER_MASK]:
                table[MASK], block = table[at + OTHER_MASK], int(table[at + OTHER_BLOCK])
                table[at + OTHER_MASK] = 0
                break
            if table[at + ARRIVED] != table[at + EXPECTED]:
                return GATHERS
            table[MASK] = table[at + EXPECTED]
            if block != self.exit and table[at + BRANCH] != NONE:
                self.reconverged.append(int(table[at + BRANCH]))
            pop(table, top)
        table[BLOCK] = block
        if block != self.exit:
            return RUNNABLE
        return GATHERS if table[LIVE] else ENDED

    def exit_lanes(self, mask: int) -> None:
        """Let some of the running lanes exit, not all. The nodes that they are in all end at the
        exit, for whatever can exit before a point is not post-dominated by it."""
        table = self.table
        table[LIVE] &= ~mask
        table[MASK] &= ~mask
        if table[TOP] != NONE:
            table[node_at(table[TOP]) + ARRIVED] |= mask
