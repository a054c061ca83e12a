"""Finds the places where the lanes of a warp can part, meet, wait for each other, and be taken up
again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from warploom.isa.spec import Unit
from warploom.program.cfg import can_diverge
from warploom.program.program import Program, ProgramBlock
from warploom.program.uses import changes_register_count, may_wait_before, member_mask, writes
from warploom.ptx.ir import Instruction, Register

MOST_IN_REGION_VERSIONS = 160
"""Instructions of which a third copy is made: where more lie between barriers, what it costs to
pass on from warp to warp does not count, and the copy only takes time to compile."""


@dataclass(frozen=True)
class DivergencePoints:
    """The divergence of a program under one way of scheduling lanes.

    `independent`: each thread has its own program counter (7.0 and later). `mixes`: lanes that part
    take turns by a policy, instead of one side after the other. `chooses`: one side after the
    other, and the policy says which goes first.
    """

    program: Program
    independent: bool
    mixes: bool
    chooses: bool

    @cached_property
    def suspends(self) -> bool:
        """Returns whether a warp may come back before it ends: loops, barriers, lanes that await
        lanes; and where its state is looked at, for its registers."""
        blocks, instructions = self.program.blocks, self.program.instructions
        has_back_edge = any(to <= block.index for block in blocks for to in block.successors)
        waits_for_lanes = any(
            is_block_barrier(i) or (self.independent and member_mask(i) is not None)
            for i in instructions
        )
        return (
            self.mixes or has_back_edge or waits_for_lanes or changes_register_count(instructions)
        )

    @cached_property
    def spilled(self) -> frozenset[Register]:
        """Registers that one instruction writes and that live over a barrier of the block; none
        that is read before: it is zero at first, and nothing would put that into its place."""
        program = self.program
        written = Counter(register for one in program.instructions for register in writes(one))
        resumed = (b.successors[-1] for b in program.blocks if self._ends_with_barrier(b))
        live = frozenset[Register]().union(
            *(program.live_in[b] for b in resumed if b < program.exit)
        )
        live -= program.live_in[0]
        return frozenset(register for register in live if written[register] == 1)

    @cached_property
    def region_versions(self) -> frozenset[int]:
        """Blocks that warps reach behind a barrier of the block before they come to another, and
        those before the first; the latter are left out, or all, if those are many instructions."""
        waiting = {b.index for b in self.program.blocks if self._ends_with_barrier(b)}
        behind = {self.program.blocks[index].successors[-1] for index in waiting}
        for starts in ({0} | behind, behind) if waiting else ():
            found = self._between_barriers(starts, waiting)
            size = sum(self.program.blocks[i].stop - self.program.blocks[i].start for i in found)
            if size <= MOST_IN_REGION_VERSIONS:
                return found
        return frozenset()

    def _between_barriers(self, starts: set[int], waiting: set[int]) -> frozenset[int]:
        """Return the blocks that are reached from some, but not through those at whose ends warps
        wait."""
        found: set[int] = set()
        pending = list(starts)
        while pending:
            at = pending.pop()
            if at != self.program.exit and at not in found:
                found.add(at)
                pending.extend(() if at in waiting else self.program.blocks[at].successors)
        return frozenset(found)

    def _ends_with_barrier(self, block: ProgramBlock) -> bool:
        return is_block_barrier(self.program.instructions[block.stop - 1])

    @cached_property
    def _branches(self) -> list[tuple[int, tuple[int, ...]]]:
        """Return every block at whose end lanes may part, and where they go then."""
        instructions = self.program.instructions
        return [
            (b.index, b.successors)
            for b in self.program.blocks
            if can_diverge(instructions[b.stop - 1])
        ]

    @cached_property
    def reconvergence_points(self) -> frozenset[int]:
        """Blocks at which parted lanes may meet; the virtual exit always is one."""
        points = {self.program.reconvergence[block] for block, _ in self._branches}
        return frozenset(points | {self.program.exit})

    @cached_property
    def waiting_blocks(self) -> dict[int, list[int]]:
        """Return, by reconvergence point, the blocks at which lanes may wait for their turn."""
        waiting: dict[int, set[int]] = {index: set() for index in self.reconvergence_points}
        for block, targets in self._branches:
            point = self.program.reconvergence[block]
            last = self.program.instructions[self.program.blocks[block].stop - 1]
            if last.operation.name == "brx":
                waiting[point].update(target for target in targets if target != point)
            elif point not in targets:
                # The one that is to fall through goes first, unless the policy chooses.
                waiting[point].update(targets if self.chooses else targets[:1])
        return {point: sorted(blocks) for point, blocks in waiting.items()}

    @cached_property
    def diverged(self) -> frozenset[int]:
        """Blocks to which lanes can come that have parted from others.

        They part at branches and are together again at the branch's point, unless other lanes may
        let them go on from there alone.
        """
        if self.mixes:
            return frozenset(range(len(self.program.blocks)))
        gathers = not (self.independent and self.suspends)
        found: set[int] = set()
        for block, targets in self._branches:
            stop = {self.program.exit}
            stop |= {self.program.reconvergence[block]} if gathers else found
            found |= self._reachable(targets, stop)
        return frozenset(found)

    def _reachable(self, starts: tuple[int, ...], stop: set[int]) -> set[int]:
        """Return the blocks on the ways from some up to where these stop."""
        seen: set[int] = set()
        pending = list(starts)
        while pending:
            at = pending.pop()
            if at not in stop and at not in seen:
                seen.add(at)
                pending.extend(self.program.blocks[at].successors)
        return seen

    @cached_property
    def resumable(self) -> frozenset[int]:
        """Blocks at which a split may stand when it is taken up: loop heads, where a turn ends, and
        wherever lanes meet or wait."""
        blocks, instructions = self.program.blocks, self.program.instructions
        if self.mixes:
            return frozenset(block.index for block in blocks)
        places = {to for block in blocks for to in block.successors if to <= block.index}
        places |= self.reconvergence_points | {
            block for waiting in self.waiting_blocks.values() for block in waiting
        }
        places |= {b.successors[-1] for b in blocks if self._ends_with_barrier(b)}
        places |= {b.index for b in blocks if may_wait_before(instructions[b.start])}
        return frozenset(places - {self.program.exit})


def is_block_barrier(instruction: Instruction) -> bool:
    """Returns whether it is a barrier of the block."""
    return instruction.operation.spec.unit is Unit.BARRIER
