"""Defines the Warp IR: the basic blocks of a kernel under one variant, with the results of passes.

`passes.pipeline` builds it, `ir.text` prints it, `ir.parser` parses it, and `lower.kernel.warp`
emits LLVM IR from it. All data are frozen: a pass returns a new IR. Instructions are not part of
it, but for their text; emission reads them from the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from warploom.abi.environment import CountLayout
from warploom.analysis.masked_loops import MaskedRegion
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
    """Names the lowerings of a guarded branch in convergent code. UNIFORM: all lanes take one
    target, a scalar branch. PREDICATED: if-conversion; the lanes that do not jump to the
    reconvergence point run one block under a mask. EXIT: lanes that leave a masked loop wait after
    it, the others continue. SPLIT: lanes diverge, and the sides run one after the other."""

    UNIFORM = "uniform"
    PREDICATED = "predicated"
    EXIT = "exit"
    SPLIT = "split"


@dataclass(frozen=True)
class BlockAccesses:
    """Holds the access groups of a basic block. `has_fast_version`: the block is also emitted in a
    version in which all lanes are active and every group has hit its range cache."""

    groups: tuple[AccessGroup, ...] = ()
    has_fast_version: bool = False

    @property
    def defers(self) -> bool:
        """Returns whether some of the block's stores are deferred."""
        return any(group.plan.guard is Guard.COMPARED for group in self.groups)


@dataclass(frozen=True)
class BasicBlock:
    """Describes a basic block.

    `first`: the number of its first instruction; `instructions`: their texts. `successors` are
    numbers of blocks; the number after the last block is the program's end. `reconvergence`: the
    block where lanes reconverge that diverge at its end (its immediate post-dominator).

    `live`: its live-in registers. `loose`: the registers that are varying in it, though uniform or
    affine elsewhere. `branch`: the lowering of a guarded branch at its end. `predicated_block`: the
    successor that can be run under a mask. `in_region_version`: the block has a copy for warps that
    run in warp order, from barrier to barrier. `accesses`: the groups of its convergent copy;
    `masked`: those of its copy under a mask, if it is a predicated block.
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
    """Describes where the lanes of a warp diverge, reconverge and wait, by numbers of basic blocks
    (the number after the last is the program's end).

    `suspends`: a warp may return from its function before it ends, and be resumed. `points`: the
    blocks where diverged lanes may reconverge, each with the blocks in which lanes wait for their
    turn meanwhile. `diverged`: the blocks that diverged lanes can execute. `resumable`: the blocks
    at which a suspended warp may resume.
    """

    suspends: bool = False
    points: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    diverged: frozenset[int] = frozenset()
    resumable: frozenset[int] = frozenset()


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


@dataclass(frozen=True)
class WarpIR:
    """Holds a kernel under one variant, with the results of the passes.

    `access_facts`: the options by which access plans are chosen. `regions`: the tree of loops and
    barrier regions. `exits`: regions that lanes leave one by one (masked loops).

    Registers: `shapes`: the vector shapes of those that are uniform or affine somewhere;
    `block_shapes`: of those that are so in the whole thread block. `memory`: those that all code
    keeps in the warp's context. `spilled`: those that convergent code stores to the context at each
    write. `scattered`: those whose lanes hold unrelated values, if code depends on that.

    Loops: `strided_loops` run in batches of iterations. `warp_loops`: paths from barrier to barrier
    that can run as one loop over the warps of a block. `static_schedule`: all such paths of a block
    in order, if the order is known before the launch, else empty.

    `origin`: the kernel that the IR was built from, which passes read; None in an IR that was
    parsed.
    """

    name: str
    variant: KernelVariant
    access_facts: Facts
    registers: tuple[Register, ...]
    blocks: tuple[BasicBlock, ...]
    regions: Region | None = None
    exits: tuple[MaskedRegion, ...] = ()
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
        """Returns the kernel that the IR was built from, with the layout of its counts."""
        assert self.origin is not None, "an IR that was parsed has no kernel"
        return self.origin

    @property
    def program(self) -> Program:
        """Returns the program that the IR was built from."""
        return self.layout.program

    @cached_property
    def uniformity(self) -> RegisterShapes:
        """Returns the vector shapes of registers, block by block, with the masked regions."""
        if not self.shapes:
            return RegisterShapes({}, (), self.exits)
        return RegisterShapes(self.shapes, tuple(block.loose for block in self.blocks), self.exits)

    @cached_property
    def predicated_blocks(self) -> dict[int, int]:
        """Returns, by the number of a block that ends with a branch, the number of the block after
        it that can run under a mask."""
        pairs = ((index, block.predicated_block) for index, block in enumerate(self.blocks))
        return {
            index: predicated_block
            for index, predicated_block in pairs
            if predicated_block is not None
        }

    def with_blocks(self, change: Callable[[int, BasicBlock], BasicBlock]) -> WarpIR:
        """Returns the IR with each block replaced by `change(number, block)`."""
        return replace(self, blocks=tuple(change(i, block) for i, block in enumerate(self.blocks)))

    def live(self, index: int) -> frozenset[Register]:
        """Returns the live-in registers of a block; none for the program's end."""
        return self.blocks[index].live if index < len(self.blocks) else frozenset()

    def region_versions(self) -> list[int]:
        """Returns the numbers of the blocks that have a copy for warps in warp order."""
        return [index for index, block in enumerate(self.blocks) if block.in_region_version]

    def accesses_of(self, program: Program) -> KernelAccesses:
        """Returns the description of the kernel's accesses, for its program."""
        return KernelAccesses(program, self.access_facts, self.scattered)

    def warp_loops_of(self, program: Program) -> tuple[WarpLoop, ...]:
        """Returns the warp loops of the kernel, for its program."""
        return tuple(WarpLoop.along(path, program) for path in self.warp_loops)

    def static_schedule_of(self, program: Program) -> tuple[WarpLoop, ...]:
        """Returns the static schedule of the kernel, for its program; empty if there is none."""
        return tuple(WarpLoop.along(path, program) for path in self.static_schedule)
