"""Finds the accesses of a basic block from one register, at addresses with shapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from warploom.abi.access_type import AccessType
from warploom.analysis.shape_transfer import RUNS, Reading
from warploom.analysis.vector_shape import VectorShape
from warploom.ir.access_plans import AccessPlan, Addresses, Guard, Pattern, select
from warploom.ir.kernel_accesses import KernelAccesses
from warploom.program.program import Block
from warploom.program.uses import writes
from warploom.ptx.ir import Address, Instruction, Register, Symbol


@dataclass(frozen=True)
class AccessGroup:
    """Accesses of one block, `shape` and `plan`, from what one register holds all the time. `base`
    is the shape of their addresses; where these have none, it says how many runs a warp is.

    `members` are instructions and their offsets. `crossed` are the loads between its members, of
    those that are put off (`lower.access.store_batching`).
    """

    shape: AccessType
    plan: AccessPlan
    base: VectorShape
    members: tuple[tuple[int, int], ...] = ()
    crossed: tuple[int, ...] = ()

    @property
    def is_laid_out(self) -> bool:
        """Return whether each lane is a run of its own: then lanes may follow by one step."""
        return self.plan.guard is Guard.LANES

    @property
    def span(self) -> tuple[int, int]:
        """Return the first offset that a run reaches, and the first behind the last place."""
        offsets = [offset for _, offset in self.members]
        extent = 0 if self.plan.pattern is Pattern.COLUMNS else self.base.extent
        return min(offsets) + min(extent, 0), max(offsets) + self.shape.size + max(extent, 0)


@dataclass
class _Open:
    """A group of which more members may be found: its shape, plan and base, and those so far."""

    found: AccessGroup
    members: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def closed(self) -> AccessGroup:
        """Returns the group of those that have been found."""
        found = self.found
        return AccessGroup(found.shape, found.plan, found.base, tuple(self.members))


def find_groups(
    accesses: KernelAccesses, reading: Reading, block: Block, mask: Register | None = None
) -> list[AccessGroup]:
    """Returns the groups of a block's accesses, by their first ones. `mask`: the register that
    says which lanes are on, if one does."""
    found: dict[object, _Open] = {}
    versions: dict[Register, int] = {}
    for index in range(block.start, block.stop):
        instruction = accesses.program.instructions[index]
        placed = _placed(accesses, reading, index, instruction, mask)
        if placed is not None:
            address, group, alike = placed
            version = versions.get(address.base) if isinstance(address.base, Register) else None
            key = index if instruction.guard else (address.base, version, *alike)
            found.setdefault(key, _Open(group)).members.append((index, address.offset))
        for register in writes(instruction):
            versions[register] = index
    return [one.closed() for one in found.values()]


def group_alone(
    accesses: KernelAccesses, reading: Reading, index: int, instruction: Instruction
) -> AccessGroup | None:
    """Return an access as a group of its own; None where it can have none."""
    placed = _placed(accesses, reading, index, instruction)
    if placed is None:
        return None
    address, group, _ = placed
    return AccessGroup(group.shape, group.plan, group.base, ((index, address.offset),))


def by_instruction(groups: Iterable[AccessGroup]) -> dict[int, AccessGroup]:
    """Returns groups by the instructions of their accesses."""
    return {index: group for group in groups for index, _ in group.members}


def _placed(
    accesses: KernelAccesses,
    reading: Reading,
    index: int,
    instruction: Instruction,
    mask: Register | None = None,
) -> tuple[Address, AccessGroup, tuple[object, ...]] | None:
    """For an access that can have a group, its address, a group for it, and what those of one group
    have in common."""
    if (
        instruction.operation.name not in ("ld", "ldu", "st")
        or "bulk" in instruction.operation.modifiers
    ):
        return None
    op = "store" if instruction.operation.name == "st" else "load"
    address = instruction.operands[0 if op == "store" else 1]
    if not isinstance(address, Address) or not isinstance(address.base, Register | Symbol):
        return None
    shape, lanes = accesses.shape_of(op, index, instruction), reading.address(address)
    guard = None if instruction.guard is None else instruction.guard.register
    scattered = not accesses.scattered.isdisjoint((address.base, guard, mask))
    at = Addresses.of(shape, lanes, RUNS.get(reading.warp_layout, 1), scattered=scattered)
    plan = select(shape, at, accesses.facts)
    if plan.is_general:
        return None
    return address, AccessGroup(shape, plan, at.lanes), (shape, address.offset % shape.size)
