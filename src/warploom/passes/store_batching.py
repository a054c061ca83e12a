"""Stores of a basic block from one register whose places follow from lane to lane by a step that is
known only as the code runs; found before its code.

They can be put off to the last of them (`lower.access.store_batching`). So between them stands only
what nobody can see the difference by: arithmetic, loads of parameters, and loads in groups, whose
places are compared with theirs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from warploom.abi.access_type import DATA_BYTES
from warploom.analysis.shape_transfer import OperandShapes, computes
from warploom.analysis.vector_shape import LANES
from warploom.ir.access_groups import AccessGroup
from warploom.ir.access_plans import Addresses, Pattern, select
from warploom.ir.kernel_accesses import KernelAccesses
from warploom.program.accesses import space_of
from warploom.program.program import ProgramBlock
from warploom.program.uses import writes
from warploom.ptx.ir import Address, Instruction, Register, Space, Symbol

STRONG = ("volatile", "relaxed", "acquire", "release", "mmio", "async")
"""What other threads may see the order of (PTX ISA, "Memory Consistency Model")."""


@dataclass
class _OpenBatch:
    """A group to which more stores may come, and what they must have in common with it."""

    key: object
    group: AccessGroup
    members: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    crossed: list[int] = field(default_factory=list[int])
    loads: list[int] = field(default_factory=list[int])
    """The loads behind its last store."""

    def add(self, index: int, offset: int) -> None:
        """Add one more store; the loads so far lie before it."""
        self.members.append((index, offset))
        if len(self.members) > 1:
            self.crossed += self.loads
        self.loads.clear()

    @property
    def is_full(self) -> bool:
        """Returns whether there is no room to keep what one more stores."""
        return (len(self.members) + 1) * self.group.shape.size * LANES > DATA_BYTES

    def closed(self) -> AccessGroup:
        """Returns the group of those that have been found."""
        return replace(self.group, members=tuple(self.members), crossed=tuple(self.crossed))


def find_store_batches(
    accesses: KernelAccesses,
    operand_shapes: OperandShapes,
    block: ProgramBlock,
    grouped: Collection[int],
) -> list[AccessGroup]:
    """Return the groups of two stores and more that may have a step; `grouped` are the accesses in
    other groups of the block."""
    batches: list[_OpenBatch] = []
    open_batch: _OpenBatch | None = None
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
        for register in writes(instruction):
            versions[register] = index
    return [one.closed() for one in batches if len(one.members) > 1]


def _deferrable_store(
    accesses: KernelAccesses,
    operand_shapes: OperandShapes,
    index: int,
    instruction: Instruction,
    versions: dict[Register, int],
) -> tuple[object, AccessGroup, int] | None:
    """For a store that may be one, what those of one group have in common, a group for it and its
    offset."""
    if (
        instruction.operation.name != "st"
        or not _is_weak_unguarded(instruction)
        or "bulk" in instruction.operation.modifiers
    ):
        return None
    address = instruction.operands[0]
    if not isinstance(address, Address) or not isinstance(address.base, Register):
        return None
    shape, base = accesses.shape_of("store", index, instruction), operand_shapes.address(address)
    if base.is_affine and (base.width > 1 or base.stride <= 0):
        return None
    plan = select(shape, Addresses(Pattern.COLUMNS), accesses.facts)
    if plan.is_general:
        return None
    misalignment = address.offset % shape.size
    key = (address.base, versions.get(address.base), shape.space, shape.size, misalignment)
    return key, AccessGroup(shape, plan, base), address.offset


def _is_weak_unguarded(instruction: Instruction) -> bool:
    return instruction.guard is None and not any(
        m in instruction.operation.modifiers for m in STRONG
    )


def _is_weak_load(instruction: Instruction) -> bool:
    return instruction.operation.name in ("ld", "ldu") and _is_weak_unguarded(instruction)


def _is_transparent(accesses: KernelAccesses, instruction: Instruction) -> bool:
    """Returns whether nobody can tell by an instruction if stores before it have been done."""
    if instruction.operation.name == "ld" and space_of(instruction) is Space.PARAM:
        base = (
            instruction.operands[1].base if isinstance(instruction.operands[1], Address) else None
        )
        places = accesses.program.places
        return (
            isinstance(base, Symbol)
            and not places[base.name].frame
            and _is_weak_unguarded(instruction)
        )
    return computes(instruction) or instruction.operation.name in ("mov", "cvta")
