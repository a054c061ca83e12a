"""Finds stores of a basic block that can be deferred to the last one of a batch and then done lane
by lane, so that each cache line is written once (`lower.access.store_batching`).

Lanes that write a column of a matrix each touch a line of their own, and these lines compete for
the same few ways of a cache. Deferred, all that one lane stores goes to its line at once:

    st.global.f32 [%rd1], %f1;       lane l writes base + l * step: 32 lines
    st.global.f32 [%rd1+4], %f2;     the same 32 lines: batched, each line is written once
    add.f32 %f3, %f1, %f2;           transparent: no effect on memory
    st.global.f32 [%rd1+8], %f3;

    ->   accesses fast_version=yes
           store global .f32 lanes=varying members=7+0,8+4,10+8
             plan=columns/compared/deferred/patterns/slow_version

The step between lanes is found at run time. Between stores of a batch only instructions are allowed
that cannot observe whether the stores were done: arithmetic, loads of parameters, and grouped
loads, whose addresses the emitted guard compares with those of the stores. Not handled: guarded
stores, strong ones, and batches across blocks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from warploom.abi.access_type import DATA_BYTES
from warploom.ir.access_groups import AccessGroup, by_instruction
from warploom.ir.access_plans import Addresses, Guard, Pattern, select
from warploom.ir.kernel_accesses import KernelAccesses
from warploom.ir.warp_ir import BasicBlock, BlockAccesses, WarpIR
from warploom.isa.instruction import Address, Instruction, Register, Space, Symbol
from warploom.isa.kinds import OpKind
from warploom.program.accesses import space_of
from warploom.program.cfg import ProgramBlock
from warploom.program.uses import writes
from warploom.shapes.operand_shapes import OperandShapes, computes
from warploom.shapes.vector_shape import LANES

STRONG = ("volatile", "relaxed", "acquire", "release", "mmio", "async")
"""Modifiers of accesses whose order other threads may observe (PTX ISA, "Memory Consistency
Model")."""


@dataclass
class _OpenBatch:
    """A batch that may get more stores; `key` is equal for stores of one batch, `group` is its
    access group without members. `members` are stores with their offsets, `crossed` the loads
    between them, `loads` those after the last store."""

    key: object
    group: AccessGroup
    members: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    crossed: list[int] = field(default_factory=list[int])
    loads: list[int] = field(default_factory=list[int])

    def add(self, index: int, offset: int) -> None:
        """Adds a store. The loads since the previous member are then `crossed`; those before a
        first member are dropped."""
        # Loads after the last store run after all stores are done, deferred or not, and need no
        # comparison. Only a further store shows that they lie between two of the batch.
        self.members.append((index, offset))
        if len(self.members) > 1:
            self.crossed += self.loads
        self.loads.clear()

    @property
    def is_full(self) -> bool:
        """Returns whether another store would exceed the buffer for deferred data."""
        return (len(self.members) + 1) * self.group.shape.size * LANES > DATA_BYTES

    def closed(self) -> AccessGroup:
        """Returns the batch as an access group."""
        return replace(self.group, members=tuple(self.members), crossed=tuple(self.crossed))


def batch_stores(ir: WarpIR) -> WarpIR:
    """Returns the IR with its batches of strided stores as access groups (`Move.DEFERRED`), whose
    stores are done at the last one; a block that has batches gets a fast version, in which they
    are. Stores in groups guarded by the range cache stay there. Any other group that has a store of
    a batch is removed, so that its remaining accesses are in no group. Returns an IR without shapes
    unchanged."""
    if not ir.shapes:
        return ir
    accesses = ir.accesses

    def with_batches(index: int, block: BasicBlock) -> BasicBlock:
        """Returns a block with its batches of stores among its access groups, and a fast version if
        it has any."""
        groups = block.accesses.groups
        cached = by_instruction(group for group in groups if group.plan.guard is Guard.CACHE)
        batches = find_store_batches(
            accesses, ir.operand_shapes(index), ir.program.blocks[index], cached
        )
        stores = by_instruction(batches).keys()
        # A store may be in one group only: those that a batch takes over are removed from the
        # others.
        rest = (
            found_group
            for found_group in groups
            if stores.isdisjoint(i for i, _ in found_group.members)
        )
        stored = BlockAccesses((*rest, *batches), has_fast_version=True)
        return replace(block, accesses=stored) if batches else block

    return ir.with_blocks(with_batches)


def find_store_batches(
    accesses: KernelAccesses,
    operand_shapes: OperandShapes,
    block: ProgramBlock,
    grouped: Collection[int],
) -> list[AccessGroup]:
    """Returns the batches of at least two stores in a block, as access groups. `grouped` are
    accesses that are not put in batches. A batch ends when it is full, at a store that does not fit
    it (which begins another if it can be deferred), or at an instruction that could observe whether
    stores were done. Weak loads in `grouped` do not end it; those before its last store are
    recorded (`crossed`), for the emitted guard compares their addresses with those of its
    stores."""
    batches: list[_OpenBatch] = []
    open_batch: _OpenBatch | None = None
    # The number of the last instruction so far that writes a register: stores by one base register
    # belong together only while it is unchanged.
    versions: dict[Register, int] = {}
    for index in range(block.start, block.stop):
        instruction = accesses.program.instructions[index]
        deferrable = (
            None
            if index in grouped
            else _deferrable_store(accesses, operand_shapes, index, instruction, versions)
        )
        if deferrable is not None:
            key, group, offset = deferrable
            if open_batch is None or open_batch.key != key or open_batch.is_full:
                open_batch = _OpenBatch(key, group)
                batches.append(open_batch)
            open_batch.add(index, offset)
        elif open_batch is not None and index in grouped and _is_weak_load(instruction):
            open_batch.loads.append(index)
        elif not _is_transparent(accesses, instruction):
            open_batch = None
        # An instruction that writes the base register ends no batch: later stores have another key,
        # which begins a batch of their own, and those before were given their addresses already.
        for register in writes(instruction):
            versions[register] = index
    return [batch.closed() for batch in batches if len(batch.members) > 1]


def _deferrable_store(
    accesses: KernelAccesses,
    operand_shapes: OperandShapes,
    index: int,
    instruction: Instruction,
    versions: dict[Register, int],
) -> tuple[object, AccessGroup, int] | None:
    """Returns the key of the batch that a store may be deferred in (base register and its last
    writer, space, size, misalignment), a group for that batch, and the store's offset. None if it
    is no weak unguarded store from a base register, if the base is affine and its lanes do not
    ascend with one positive stride, or if no plan defers it. `versions` maps registers to their
    last writers in the block."""
    if instruction.operation.kind is not OpKind.STORE or not _is_weak_unguarded(instruction):
        return None
    address = instruction.operands[0]
    if not isinstance(address, Address) or not isinstance(address.base, Register):
        return None
    shape, base = (
        accesses.access_type_of("store", index, instruction),
        operand_shapes.address(address),
    )
    # A varying base has its step computed at run time (`StoreBatch.begin`). One of known shape
    # qualifies only with one positive stride, so that lanes write disjoint addresses in ascending
    # order.
    if base.is_affine and (base.runs > 1 or base.stride <= 0):
        return None
    plan = select(shape, Addresses(Pattern.COLUMNS), accesses.facts)
    if plan.is_general:
        return None
    misalignment = address.offset % shape.size
    key = (address.base, versions.get(address.base), shape.space, shape.size, misalignment)
    return key, AccessGroup(shape, plan, base), address.offset


def _is_weak_unguarded(instruction: Instruction) -> bool:
    """Returns whether an access has no guard and no modifier by which other threads may observe its
    order (STRONG: `volatile`, `relaxed`, `acquire`, `release`, `mmio`, `async`)."""
    return instruction.guard is None and not any(
        m in instruction.operation.modifiers for m in STRONG
    )


def _is_weak_load(instruction: Instruction) -> bool:
    """Returns whether an instruction is a weak load without a guard (`_is_weak_unguarded`)."""
    return instruction.operation.kind is OpKind.LOAD and _is_weak_unguarded(instruction)


def _is_transparent(accesses: KernelAccesses, instruction: Instruction) -> bool:
    """Returns whether an instruction cannot observe if stores before it have been done: it computes
    or moves, or is a weak unguarded load of a parameter of the kernel by its name."""
    if instruction.operation.kind is OpKind.LOAD and space_of(instruction) is Space.PARAM:
        base = (
            instruction.operands[1].base if isinstance(instruction.operands[1], Address) else None
        )
        slots = accesses.program.slots
        return (
            isinstance(base, Symbol)
            and not slots[base.name].frame
            and _is_weak_unguarded(instruction)
        )
    moves = instruction.operation.kind in (OpKind.MOVE, OpKind.CONVERT_ADDRESS)
    return moves or computes(instruction)
