"""Defines the Warp IR: a kernel's program under one variant, with the results of passes.

`passes.pipeline` builds it, `ir.text` prints it, `ir.parser` parses it, `passes.verifier` checks
it, and `lower.kernel.warp` emits LLVM IR from it alone. All data are frozen: a pass returns a new
IR, with more about its basic blocks, or with another program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from warploom.abi.environment import CountLayout
from warploom.core.lazy import cached_property
from warploom.ir.access_groups import AccessGroup
from warploom.ir.access_plans import AccessPlan, Guard
from warploom.ir.kernel_accesses import KernelAccesses, facts_of
from warploom.ir.loops import BatchedLoop, WarpLoop, WarpLoopPath
from warploom.ir.variant import KernelVariant
from warploom.isa.instruction import Register, Space
from warploom.llvm.opt_level import is_long
from warploom.program.masked_loops import MaskedRegion
from warploom.program.program import Program
from warploom.shapes.operand_shapes import (
    BlockShapes,
    OperandShapes,
    RegisterShapes,
    block_affine_registers,
)
from warploom.shapes.vector_shape import VectorShape


class BranchKind(Enum):
    """Names the lowerings of a guarded branch in convergent code. UNIFORM: all lanes branch to one
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
    version in which all lanes are active and no group that may leave it (Exit.SLOW_VERSION) has
    failed its guard."""

    groups: tuple[AccessGroup, ...] = ()
    has_fast_version: bool = False

    @property
    def defers(self) -> bool:
        """Returns whether some of the block's stores are batched: their guard is COMPARED, their
        move DEFERRED."""
        return any(group.plan.guard is Guard.COMPARED for group in self.groups)


@dataclass(frozen=True)
class BasicBlock:
    """Describes how a basic block of the program is emitted.

    `varying`: the registers that are varying in it, though uniform or affine elsewhere. `branch`:
    the lowering of a guarded branch at its end. `predicated_block`: the successor that can be run
    under a mask. `in_region_version`: the block has a copy for warps that run in warp order, from
    barrier to barrier. `accesses`: the groups of its convergent copy; `masked`: those of its copy
    under a mask, if it is a predicated block.
    """

    varying: frozenset[Register] = frozenset()
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
    turn meanwhile. `diverged`: the blocks that diverged lanes can execute; all, if registers have
    shapes. `resumable`: the blocks at which a suspended warp may resume.
    """

    suspends: bool = False
    points: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    diverged: frozenset[int] = frozenset()
    resumable: frozenset[int] = frozenset()


@dataclass(frozen=True)
class WarpIR:
    """Holds a kernel under one variant, with the results of the passes.

    `layout`: its program (operations in basic blocks, registers and variables), and how they are
    counted on a device. `blocks`: how each basic block is emitted. `exits`: regions that lanes
    leave one by one (masked loops).

    `plans`: how accesses are done at any addresses, by operation and space: those in no group, and
    others where the guard of their group fails.

    Registers: `shapes`: the vector shapes of those that are uniform or affine somewhere;
    `block_shapes`: of those that are so in the whole thread block. `spilled`: those that convergent
    code stores to the context at each write. `scattered`: those whose lanes hold unrelated values,
    if code depends on that.

    Loops: `strided_loops` run in batches of iterations. `warp_loops`: paths from barrier to barrier
    that can run as one loop over the warps of a block. `static_schedule`: all such paths of a block
    in order, if the order is known before the launch, else empty.
    """

    layout: CountLayout
    variant: KernelVariant
    blocks: tuple[BasicBlock, ...]
    plans: Mapping[tuple[int, Space], AccessPlan] = field(
        default_factory=dict[tuple[int, Space], AccessPlan]
    )
    exits: tuple[MaskedRegion, ...] = ()
    shapes: BlockShapes = field(default_factory=dict[Register, VectorShape])
    spilled: frozenset[Register] = frozenset()
    scattered: frozenset[Register] = frozenset()
    reconvergence: Reconvergence = Reconvergence()
    block_shapes: BlockShapes = field(default_factory=dict[Register, VectorShape])
    warp_loops: tuple[WarpLoopPath, ...] = ()
    static_schedule: tuple[WarpLoopPath, ...] = ()
    strided_loops: tuple[BatchedLoop, ...] = ()

    # What follows from fields is computed once for each IR. It cannot become stale: fields are
    # frozen, and `replace` makes an object of its own, with nothing computed.
    @cached_property
    def uniformity(self) -> RegisterShapes:
        """Returns the vector shapes of registers (`shapes`), the registers that are varying in each
        block (`BasicBlock.varying`), and the masked regions (`exits`); without shapes only
        these."""
        if not self.shapes:
            return RegisterShapes({}, (), self.exits)
        return RegisterShapes(
            self.shapes, tuple(block.varying for block in self.blocks), self.exits
        )

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
        live = self.program.live_in
        return live[index] if index < len(live) else frozenset()

    def region_versions(self) -> list[int]:
        """Returns the numbers of the blocks that have a copy for warps in warp order."""
        return [index for index, block in enumerate(self.blocks) if block.in_region_version]

    @property
    def program(self) -> Program:
        """Returns the kernel's program."""
        return self.layout.program

    @property
    def is_scheduled(self) -> bool:
        """Returns whether the schedule chooses the warps that run: they may suspend, are in
        clusters, or their buffers are laid out as under a policy."""
        variant = self.variant
        return self.reconvergence.suspends or variant.has_policy_layout or variant.clusters

    @property
    def has_shapes(self) -> bool:
        """Returns whether registers may have shapes: the variant does not store all of them lane by
        lane (`KernelVariant.stores_lane_by_lane`), and the kernel is not so large that it is
        compiled with the lowest effort (`llvm.opt_level.is_long`), for the analysis would last too
        long."""
        return not (self.variant.stores_lane_by_lane or is_long(self.program))

    def operand_shapes(self, block: int) -> OperandShapes:
        """Returns the shapes of operands in a basic block of convergent code."""
        return OperandShapes(self.program, self.variant.warp_layout, self.uniformity.at(block))

    @cached_property
    def accesses(self) -> KernelAccesses:
        """Returns what is known of the kernel's accesses when their plans are chosen: its program,
        the facts of layout and variant that decide (`facts_of`), and the registers whose lanes hold
        unrelated values."""
        return KernelAccesses(self.program, facts_of(self.layout, self.variant), self.scattered)

    @cached_property
    def block_affine_registers(self) -> frozenset[Register]:
        """Returns the registers whose values in all warps of a thread block follow from those in
        the first one: their shape in the thread block continues that in its warps, and holds in all
        basic blocks. Empty without `block_shapes`."""
        return block_affine_registers(self.block_shapes, self.uniformity)

    def along(self, paths: Iterable[WarpLoopPath]) -> tuple[WarpLoop, ...]:
        """Returns the warp loops along paths of the program, such as `warp_loops`."""
        return tuple(WarpLoop.along(path, self.program) for path in paths)
