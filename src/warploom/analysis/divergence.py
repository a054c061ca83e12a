"""Finds, for `passes.reconvergence`, the blocks where lanes of a warp can diverge, reconverge, wait
for each other, and resume.

    0: @%p bra 2;     diverge; reconvergence point 3
    1: bra 3;         lanes of one path wait at the start of 1 or 2 for their turn
    2: ...            diverged: blocks 1, 2
    3: ret;           reconvergence point
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from warploom.core.lazy import cached_property
from warploom.isa.instruction import Instruction, Register
from warploom.isa.kinds import Needs, OpKind
from warploom.isa.spec import Unit
from warploom.program.cfg import ProgramBlock, can_diverge
from warploom.program.program import Program
from warploom.program.uses import may_wait_before, member_mask, writes

MOST_IN_REGION_VERSIONS = 160
"""Instructions of a program of which region versions are emitted, at most. Between barriers that
are further apart, the cost of a switch between warps is small, and a third copy of the code only
costs time to compile."""


@dataclass(frozen=True)
class DivergencePoints:
    """Computes where lanes of a program diverge and reconverge, for `passes.reconvergence`.

    `independent`: each thread has its own program counter (7.0 and later). `interleaves_paths`:
    diverged lanes run in turn by a policy, instead of one path after the other.
    `policy_orders_paths`: one path after the other, and the policy chooses which goes first."""

    program: Program
    independent: bool
    interleaves_paths: bool
    policy_orders_paths: bool

    @cached_property
    def suspends(self) -> bool:
        """Returns whether the compiled function of a warp may return before the warp ends: under
        `interleaves_paths`, with a back edge, with an instruction that waits for other lanes of a
        member mask if `independent`, or where the program needs it (Needs.RESUMPTION: barriers,
        reallocation of registers)."""
        blocks, needs = self.program.blocks, self.program.needs
        has_back_edge = any(to <= block.index for block in blocks for to in block.successors)
        waits_for_lanes = self.independent and any(
            member_mask(i) is not None for i in self.program.instructions
        )
        return (
            self.interleaves_paths or has_back_edge or waits_for_lanes or Needs.RESUMPTION in needs
        )

    @cached_property
    def spilled(self) -> frozenset[Register]:
        """Returns the registers that are live after a barrier of the thread block, cluster or warp
        group and are written by one instruction: emitted code stores them to the warp's context
        where they are written, not at the barrier. Registers live at the entry are excluded: they
        begin as zero, and nothing would store that zero to the context."""
        program = self.program
        written = Counter(
            register for instruction in program.instructions for register in writes(instruction)
        )
        resumed = (b.successors[-1] for b in program.blocks if self._ends_with_barrier(b))
        live = frozenset[Register]().union(
            *(program.live_in[b] for b in resumed if b < program.exit)
        )
        live -= program.live_in[0]
        return frozenset(register for register in live if written[register] == 1)

    @cached_property
    def region_versions(self) -> frozenset[int]:
        """Returns the blocks that are also emitted as region versions, a copy that runs all warps
        of a thread block one after the other from barrier to barrier: those on paths from the entry
        or a barrier to the next barrier or the end. If these have more than MOST_IN_REGION_VERSIONS
        (160) instructions, only those on paths from a barrier; empty if these, too, have more, or
        without barriers."""
        waiting = {b.index for b in self.program.blocks if self._ends_with_barrier(b)}
        after_barriers = {self.program.blocks[index].successors[-1] for index in waiting}
        for starts in ({0} | after_barriers, after_barriers) if waiting else ():
            between_barriers = self._between_barriers(starts, waiting)
            size = sum(
                self.program.blocks[i].stop - self.program.blocks[i].start for i in between_barriers
            )
            if size <= MOST_IN_REGION_VERSIONS:
                return between_barriers
        return frozenset()

    def _between_barriers(self, starts: set[int], waiting: set[int]) -> frozenset[int]:
        """Returns the blocks on paths from `starts`, up to and including blocks in `waiting`, which
        end with a barrier; the virtual exit is left out."""
        visited: set[int] = set()
        pending = list(starts)
        while pending:
            at = pending.pop()
            if at != self.program.exit and at not in visited:
                visited.add(at)
                pending.extend(() if at in waiting else self.program.blocks[at].successors)
        return frozenset(visited)

    def _ends_with_barrier(self, block: ProgramBlock) -> bool:
        """Returns whether the last instruction of a block satisfies `is_barrier_across_warps`."""
        return is_barrier_across_warps(self.program.instructions[block.stop - 1])

    @cached_property
    def _branches(self) -> list[tuple[int, tuple[int, ...]]]:
        """Returns every block that ends with a branch at which lanes may diverge (guarded, or
        indexed), with its successors."""
        instructions = self.program.instructions
        return [
            (b.index, b.successors)
            for b in self.program.blocks
            if can_diverge(instructions[b.stop - 1])
        ]

    @cached_property
    def reconvergence_points(self) -> frozenset[int]:
        """Returns the reconvergence points (immediate post-dominators) of all branches at which
        lanes may diverge, and the virtual exit; the same under every policy."""
        points = {self.program.reconvergence[block] for block, _ in self._branches}
        return frozenset(points | {self.program.exit})

    @cached_property
    def waiting_blocks(self) -> dict[int, list[int]]:
        """Returns, for each of `reconvergence_points`, the blocks (sorted, perhaps none) at whose
        start diverged lanes may wait for their turn. A branch contributes to its own point: an
        indexed one all targets but that point; a guarded one nothing if a target is that point,
        else both targets if `policy_orders_paths`, only the taken one otherwise."""
        waiting: dict[int, set[int]] = {index: set() for index in self.reconvergence_points}
        for block, targets in self._branches:
            point = self.program.reconvergence[block]
            last = self.program.instructions[self.program.blocks[block].stop - 1]
            if last.operation.kind is OpKind.INDEXED_BRANCH:
                waiting[point].update(target for target in targets if target != point)
            elif point not in targets:
                # Without an `else`, one side is the reconvergence point itself, where lanes count
                # as arrived, not as waiting for their turn. The fall-through path runs first,
                # unless the policy chooses: only the branch target waits.
                waiting[point].update(targets if self.policy_orders_paths else targets[:1])
        return {point: sorted(blocks) for point, blocks in waiting.items()}

    @cached_property
    def diverged(self) -> frozenset[int]:
        """Returns the blocks that diverged lanes can execute, which are emitted with a mask: those
        on paths from the targets of each branch that may diverge, up to and without its
        reconvergence point. Paths go on to the exit if lanes may continue separately from there
        (`independent`, and the warp can be suspended). All blocks under `interleaves_paths`."""
        if self.interleaves_paths:
            return frozenset(range(len(self.program.blocks)))
        gathers = not (self.independent and self.suspends)
        blocks: set[int] = set()
        for block, targets in self._branches:
            stop = {self.program.exit}
            # Without reconvergence at the point, only blocks that were followed before end the
            # search.
            stop |= {self.program.reconvergence[block]} if gathers else blocks
            blocks |= self._reachable(targets, stop)
        return frozenset(blocks)

    def _reachable(self, starts: tuple[int, ...], stop: set[int]) -> set[int]:
        """Returns the blocks on paths from `starts`, up to but without blocks in `stop`."""
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
        """Returns the blocks, without the virtual exit, at which a suspended warp, or part of it,
        may resume. They are the targets of back edges; reconvergence points; blocks where lanes
        wait for their turn; blocks after a barrier; and blocks that begin with an instruction that
        may wait for other lanes. Under `interleaves_paths` they are all blocks."""
        blocks, instructions = self.program.blocks, self.program.instructions
        if self.interleaves_paths:
            return frozenset(block.index for block in blocks)
        targets = {to for block in blocks for to in block.successors if to <= block.index}
        targets |= self.reconvergence_points | {
            block for waiting in self.waiting_blocks.values() for block in waiting
        }
        targets |= {b.successors[-1] for b in blocks if self._ends_with_barrier(b)}
        targets |= {b.index for b in blocks if may_wait_before(instructions[b.start])}
        return frozenset(targets - {self.program.exit})


def is_barrier_across_warps(instruction: Instruction) -> bool:
    """Returns whether an instruction is a barrier across warps: of the thread block, of its
    cluster, or of a warp group."""
    return instruction.operation.spec.unit is Unit.BARRIER
