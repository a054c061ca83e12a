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
from warploom.analysis.shape_transfer import Reading, computes
from warploom.analysis.vector_shape import LANES
from warploom.ir.access_groups import AccessGroup
from warploom.ir.access_plans import Addresses, Pattern, select
from warploom.ir.kernel_accesses import KernelAccesses
from warploom.program.accesses import space_of
from warploom.program.program import Block
from warploom.program.uses import writes
from warploom.ptx.ir import Address, Instruction, Register, Space, Symbol

STRONG = ("volatile", "relaxed", "acquire", "release", "mmio", "async")
"""What other threads may see the order of (PTX ISA, "Memory Consistency Model")."""


@dataclass
class _Open:
    """A group to which more stores may come, and what they must have in common with it."""

    key: object
    found: AccessGroup
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
        return (len(self.members) + 1) * self.found.shape.size * LANES > DATA_BYTES

    def closed(self) -> AccessGroup:
        """Returns the group of those that have been found."""
        return replace(self.found, members=tuple(self.members), crossed=tuple(self.crossed))


def find_store_batches(
    accesses: KernelAccesses, reading: Reading, block: Block, grouped: Collection[int]
) -> list[AccessGroup]:
    """Return the groups of two stores and more that may have a step; `grouped` are the accesses in
    other groups of the block."""
    found: list[_Open] = []
    now: _Open | None = None
    versions: dict[Register, int] = {}
    for index in range(block.start, block.stop):
        made = accesses.program.instructions[index]
        placed = None if index in grouped else _placed(accesses, reading, index, made, versions)
        if placed is not None:
            key, group, offset = placed
            if now is None or now.key != key or now.is_full:
                now = _Open(key, group)
                found.append(now)
            now.add(index, offset)
        elif now is not None and index in grouped and _is_weak_load(made):
            now.loads.append(index)
        elif not _passes(accesses, made):
            now = None
        for register in writes(made):
            versions[register] = index
    return [one.closed() for one in found if len(one.members) > 1]


def _placed(
    accesses: KernelAccesses,
    reading: Reading,
    index: int,
    made: Instruction,
    versions: dict[Register, int],
) -> tuple[object, AccessGroup, int] | None:
    """For a store that may be one, what those of one group have in common, a group for it and its
    offset."""
    if made.operation.name != "st" or not _is_plain(made) or "bulk" in made.operation.modifiers:
        return None
    address = made.operands[0]
    if not isinstance(address, Address) or not isinstance(address.base, Register):
        return None
    shape, base = accesses.access_type_of("store", index, made), reading.address(address)
    if base.is_known and (base.width > 1 or base.stride <= 0):
        return None
    plan = select(shape, Addresses(Pattern.COLUMNS), accesses.facts)
    if plan.is_general:
        return None
    place = address.offset % shape.size
    key = (address.base, versions.get(address.base), shape.space, shape.size, place)
    return key, AccessGroup(shape, plan, base), address.offset


def _is_plain(made: Instruction) -> bool:
    return made.guard is None and not any(m in made.operation.modifiers for m in STRONG)


def _is_weak_load(made: Instruction) -> bool:
    return made.operation.name in ("ld", "ldu") and _is_plain(made)


def _passes(accesses: KernelAccesses, made: Instruction) -> bool:
    """Returns whether nobody can tell by an instruction if stores before it have been done."""
    if made.operation.name == "ld" and space_of(made) is Space.PARAM:
        base = made.operands[1].base if isinstance(made.operands[1], Address) else None
        places = accesses.program.places
        return isinstance(base, Symbol) and not places[base.name].frame and _is_plain(made)
    return computes(made) or made.operation.name in ("mov", "cvta")
