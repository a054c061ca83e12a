"""The Warp IR: a kernel under a variant, with all that the passes have found of it.

`passes.pipeline` makes it, `ir.text` prints it, `ir.parser` reads
that back, and `lower.kernel.warp` emits LLVM IR from it. It is data: nothing in it is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from warploom.abi.environment import CountLayout
from warploom.analysis.masked_loops import MaskedRegion as ExitRegion
from warploom.analysis.regions import Region
from warploom.analysis.shape_transfer import BlockShapes, RegisterShapes
from warploom.analysis.strided_loops import StridedLoop
from warploom.analysis.vector_shape import VectorShape
from warploom.analysis.warp_loops import WarpLoop, WarpLoopPath
from warploom.ir.access_groups import AccessGroup
from warploom.ir.access_plans import Facts, Guard
from warploom.ir.kernel_accesses import KernelAccesses
from warploom.ir.variant import KernelVariant
from warploom.program.program import Program
from warploom.ptx.ir import Register


class BranchKind(Enum):
    """Says what lanes do at a guarded branch that come there together. UNIFORM: all go one way.
    PREDICATED: those that do not go straight to where all meet run one block under a mask. EXIT:
    those that leave a region wait behind it, and the others go on together. SPLIT: one side after
    the other is run as diverged lanes."""

    UNIFORM = "uniform"
    PREDICATED = "predicated"
    EXIT = "exit"
    SPLIT = "split"


@dataclass(frozen=True)
class BlockAccesses:
    """The accesses of a block that have groups. `has_fast_version`: it is emitted in a fast version
    as well, in which all lanes are on and each group is known."""

    groups: tuple[AccessGroup, ...] = ()
    has_fast_version: bool = False

    @property
    def defers(self) -> bool:
        """Returns whether some of its stores are put off."""
        return any(group.plan.guard is Guard.COMPARED for group in self.groups)


@dataclass(frozen=True)
class BasicBlock:
    """A basic block: its label, the text of its instructions, of which `first` is the number of the
    first, and the numbers of those that follow; that behind the last block is the program's end.

    `reconvergence` is the block in which lanes reconverge that diverge at its end. `live` are the
    registers that are live where it begins, `loose` those that have no shape in it, though
    elsewhere they may. `branch` says what lanes do at a guarded branch at its end,
    `predicated_block` which block behind it can be run under a mask. `in_region_version`: it has a
    copy for warps that run from barrier to barrier, one after the other. `accesses` are those of
    code for all lanes together, `masked` those of code that some run under a mask, of a block that
    can be an aside.
    """

    label: str
    first: int
    instructions: tuple[str, ...]
    successors: tuple[int, ...]
    reconvergence: int
    live: frozenset[Register] = frozenset()
    loose: frozenset[Register] = frozenset()
    branch: BranchKind | None = None
    predicated_block: int | None = None
    in_region_version: bool = False
    accesses: BlockAccesses = BlockAccesses()
    masked: BlockAccesses = BlockAccesses()


@dataclass(frozen=True)
class Reconvergence:
    """Says how the lanes of a warp diverge and reconverge. `suspends`: a warp may wait, and come
    back. `points` are the blocks where diverged lanes may reconverge, each with those in which
    lanes wait for their turn. Diverged lanes can come to the `diverged` blocks; a warp that waits
    may go on in the `resumable` ones. The number behind the last block is the program's end."""

    suspends: bool = False
    points: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    diverged: frozenset[int] = frozenset()
    resumable: frozenset[int] = frozenset()


@dataclass(frozen=True)
class BatchedLoop:
    """A loop of which accesses are checked for a batch of iterations at once. `shapes` are those of
    registers in a batch that have none in its header as it is: what is live there is looked at as
    a batch begins. `groups` are the accesses of a batch, those that take part and others."""

    loop: StridedLoop
    shapes: BlockShapes
    groups: tuple[AccessGroup, ...]


@dataclass(frozen=True)
class WarpIR:
    """A kernel under a variant. `access_facts` are those by which plans of accesses are chosen.

    `shapes` are the registers that have a shape somewhere, in the order of the registers;
    `block_shapes` those that have one in the whole block of threads. Code for all lanes together
    writes the `spilled` registers to the context at once. The lanes of `scattered` registers hold
    unrelated values, where code depends on that. Lanes leave the regions `exits` one by one.
    `warp_loops` are the ways from barrier to barrier that may be gone by all warps of a block at
    once, and the `static_schedule` all of these in order, where it is known. `strided_loops` are
    those that run in batches of iterations.

    `origin` is the kernel that the IR was made from, which passes read; None in one that was
    parsed.
    """

    name: str
    variant: KernelVariant
    access_facts: Facts
    registers: tuple[Register, ...]
    blocks: tuple[BasicBlock, ...]
    regions: Region | None = None
    exits: tuple[ExitRegion, ...] = ()
    shapes: BlockShapes = field(default_factory=dict[Register, VectorShape])
    spilled: frozenset[Register] = frozenset()
    scattered: frozenset[Register] = frozenset()
    reconvergence: Reconvergence = Reconvergence()
    block_shapes: BlockShapes = field(default_factory=dict[Register, VectorShape])
    warp_loops: tuple[WarpLoopPath, ...] = ()
    static_schedule: tuple[WarpLoopPath, ...] = ()
    strided_loops: tuple[BatchedLoop, ...] = ()
    origin: CountLayout | None = field(default=None, compare=False, repr=False)

    @property
    def layout(self) -> CountLayout:
        """Returns the kernel that it was made from."""
        assert self.origin is not None, "an IR that was parsed has no kernel"
        return self.origin

    @property
    def program(self) -> Program:
        """Returns the program that it was made from."""
        return self.layout.program

    @cached_property
    def uniformity(self) -> RegisterShapes:
        """Returns the shapes of registers, block by block."""
        if not self.shapes:
            return RegisterShapes({}, (), self.exits)
        return RegisterShapes(self.shapes, tuple(block.loose for block in self.blocks), self.exits)

    @cached_property
    def predicated_blocks(self) -> dict[int, int]:
        """Returns, by blocks that end with a branch, those behind them that can be run under a
        mask."""
        found = ((index, block.predicated_block) for index, block in enumerate(self.blocks))
        return {
            index: predicated_block
            for index, predicated_block in found
            if predicated_block is not None
        }

    def with_blocks(self, change: Callable[[int, BasicBlock], BasicBlock]) -> WarpIR:
        """Returns the IR with other blocks: what each becomes, which is given with its number."""
        return replace(self, blocks=tuple(change(i, block) for i, block in enumerate(self.blocks)))

    def live(self, index: int) -> frozenset[Register]:
        """Returns the registers that are live where a block begins, or the program's end."""
        return self.blocks[index].live if index < len(self.blocks) else frozenset()

    def region_versions(self) -> list[int]:
        """Returns the blocks that have a copy for warps in relay."""
        return [index for index, block in enumerate(self.blocks) if block.in_region_version]

    def accesses_of(self, program: Program) -> KernelAccesses:
        """Returns the accesses of the kernel, whose program is given."""
        return KernelAccesses(program, self.access_facts, self.scattered)

    def warp_loops_of(self, program: Program) -> tuple[WarpLoop, ...]:
        """Returns the sweeps of the kernel, whose program is given."""
        return tuple(WarpLoop.along(path, program) for path in self.warp_loops)

    def static_schedule_of(self, program: Program) -> tuple[WarpLoop, ...]:
        """Returns the course of the kernel, whose program is given."""
        return tuple(WarpLoop.along(path, program) for path in self.static_schedule)
