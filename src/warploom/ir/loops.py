"""Defines the loops of the Warp IR: strided loops, which run in batches of iterations, and warp
loops, which run all warps of a thread block from one barrier to the next.

`analysis.strided_loops` and `analysis.warp_loops` find them, with examples; `lower.loops` emits
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum, auto
from typing import Any

from warploom.core.lazy import cached_property
from warploom.ir.access_groups import AccessGroup
from warploom.isa.instruction import Register
from warploom.program.program import Program
from warploom.program.uses import writes
from warploom.shapes.operand_shapes import BlockShapes


@dataclass(frozen=True)
class StridedLoop:
    """A loop, its `blocks` in the order of an iteration, the first its header; other fields are
    numbers of instructions.

    `advances` are those, in order, that compute addresses and bounds. Their results are linear in
    the number of iterations as long as no operand in `widened` (instruction, index of a source)
    wraps around. `compared` are the comparisons of linear values by which lanes leave, each with
    the relation ("lt" ...) of its operands in lanes that stay. `accesses` are the accesses at
    linear addresses, the first of each group."""

    blocks: tuple[int, ...]
    advances: tuple[int, ...]
    widened: tuple[tuple[int, int], ...]
    compared: tuple[tuple[int, str], ...]
    accesses: tuple[int, ...]

    @property
    def header(self) -> int:
        """Returns the block that each iteration begins with."""
        return self.blocks[0]


@dataclass(frozen=True)
class BatchedLoop:
    """Describes a loop whose accesses are checked once for a batch of iterations.

    `shapes`: vector shapes that registers have in a batch, though they are varying in the loop's
    header; live-in registers are compared with theirs when a batch begins. `groups`: all access
    groups of the loop, strided or not.
    """

    loop: StridedLoop
    shapes: BlockShapes
    groups: tuple[AccessGroup, ...]


class StepKind(Enum):
    """Classifies the instructions on the path of a warp loop by what each warp has to do for them.

    SHAPED: nothing, for the result is affine in the thread block and computed once, for the first
    warp. COMPUTED: compute it. ACCESS: a load or store, whose addresses in all warps follow from
    the first one. NONE: nothing, since it has no effect."""

    SHAPED = auto()
    COMPUTED = auto()
    ACCESS = auto()
    NONE = auto()


@dataclass(frozen=True)
class WarpLoopPath:
    """The path of a warp loop. It begins after the barrier at the end of block `site`, or at the
    entry (None), and leads through the blocks `before` and `after`. It ends at the end of the last
    of these, with a barrier or with the program.

    At the end of the last block of `before`, the first threads of the block run block `body`, then
    all run `after`; without a `body` all blocks are `before`. `allows_partial_warp`: a warp of
    which only some lanes run the body is allowed; else whole warps run it or skip it. `choices`
    maps the guarded branches (instructions) at which all threads follow the same path to whether
    they are taken. `kinds` has each instruction but those that end a block.

    `condition` is the comparison (an instruction) that selects the threads of the body: the first
    ones of the block. `groups` are the accesses by full warps, whose addresses in all warps follow
    from the first one's; `partial` those of a warp of which only some lanes run the body.
    """

    site: int | None
    before: tuple[int, ...]
    body: int | None
    allows_partial_warp: bool
    after: tuple[int, ...]
    choices: Mapping[int, bool]
    kinds: Mapping[int, StepKind]
    condition: int | None = None
    groups: tuple[AccessGroup, ...] = ()
    partial: tuple[AccessGroup, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WarpLoop(WarpLoopPath):
    """A path between barriers together with its program, from which live registers and lengths
    follow. The Warp IR stores only the `path`."""

    program: Program

    @classmethod
    def along(cls, path: WarpLoopPath, program: Program) -> WarpLoop:
        """Returns the warp loop of a program along a path."""
        return cls(**_fields(path), program=program)

    @property
    def path(self) -> WarpLoopPath:
        """Returns the path without the program."""
        return WarpLoopPath(**_fields(self))

    @property
    def blocks(self) -> tuple[int, ...]:
        """Returns the basic blocks that all warps run."""
        return (*self.before, *self.after)

    def steps(self, blocks: Iterable[int]) -> list[int]:
        """Returns the numbers of the instructions of `blocks` that have a kind (`kinds`): all but
        those that end a block."""
        inside = (self.program.blocks[index] for index in blocks)
        return [i for b in inside for i in range(b.start, b.stop) if i in self.kinds]

    def length(self, blocks: Iterable[int]) -> int:
        """Returns the number of instructions in `blocks`, those that end a block included."""
        inside = (self.program.blocks[index] for index in blocks)
        return sum(block.stop - block.start for block in inside)

    @property
    def next_block(self) -> int:
        """Returns the block that follows the path; the virtual exit at the program's end."""
        return self.program.blocks[self.blocks[-1]].successors[-1]

    @property
    def ends(self) -> bool:
        """Returns whether the path ends the program."""
        return self.next_block == self.program.exit

    @property
    def body_blocks(self) -> tuple[int, ...]:
        """Returns the body as a tuple; empty if there is none."""
        return () if self.body is None else (self.body,)

    @property
    def merged(self) -> frozenset[Register]:
        """Returns the registers that the body writes and that are live after it: lanes that skip it
        retain their values."""
        return self._written(self.body_blocks) & self.live_after_body

    @cached_property
    def extrapolated(self) -> frozenset[int]:
        """Returns the accesses whose addresses in all full warps follow from the first warp's."""
        return frozenset(index for group in self.groups for index, _ in group.members)

    @property
    def handles_full_warps(self) -> bool:
        """Returns whether full warps can run the loop: all of its accesses are extrapolated."""
        accesses = {index for index, kind in self.kinds.items() if kind is StepKind.ACCESS}
        return accesses <= self.extrapolated

    @property
    def condition_is_negated(self) -> bool:
        """Returns whether the body is run by the threads in which the condition does not hold: by
        the negation of the branch's guard, and by whether the body is the branch's target or falls
        through. Asserts that there is a guard."""
        block = self.program.blocks[self.before[-1]]
        guard = self.program.terminator(block).guard
        assert guard is not None
        # The first successor is the branch's target. A body that is the target runs where the guard
        # holds, one that falls through where it does not; `@!%p` exchanges the two.
        return (self.body == block.successors[0]) == guard.negated

    @property
    def has_common_work(self) -> bool:
        """Returns whether each warp has an instruction of kind COMPUTED or ACCESS outside of the
        body, or registers that it retains if it skips the body (`merged`)."""
        work = (StepKind.COMPUTED, StepKind.ACCESS)
        return bool(self.merged) or any(self.kinds[i] in work for i in self.steps(self.blocks))

    @property
    def live_after_body(self) -> frozenset[Register]:
        """Returns the registers that are live at the first block after the body; none without such
        a block."""
        return self.program.live_in[self.after[0]] if self.after else frozenset()

    @property
    def live_out(self) -> frozenset[Register]:
        """Returns the registers that are written on the path or in its body and live after it,
        which a warp loop has to leave in the warps' contexts; none if the path ends the program."""
        if self.ends:
            return frozenset()
        return (
            self._written((*self.blocks, *self.body_blocks)) & self.program.live_in[self.next_block]
        )

    def _written(self, blocks: Iterable[int]) -> frozenset[Register]:
        """Returns the registers that the instructions of `blocks` write, but for those that end a
        block."""
        instructions = (self.program.instructions[index] for index in self.steps(blocks))
        return frozenset(
            register for instruction in instructions for register in writes(instruction)
        )


def _fields(path: WarpLoopPath) -> dict[str, Any]:
    """Returns the fields of a path by name, without those that a subclass adds."""
    return {field.name: getattr(path, field.name) for field in fields(WarpLoopPath)}
