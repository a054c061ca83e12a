"""Groups the memory accesses of a basic block that have one base register, so that emitted code
checks all of a group by one guard.

    ld.global.f32 %f1, [%rd1];       group 1: lanes=affine<4> members=0+0,2+128
    ld.global.f32 %f2, [%rd2];       group 2
    ld.global.f32 %f3, [%rd1+128];   group 1: %rd1 has not been written in between

The accesses of a group have one access type, and offsets that are equal modulo the size of an
access, so that they are aligned alike. A guarded access is a group of its own. Atomics, bulk copies
and accesses whose plan is general (`ir.access_plans`) are in no group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from warploom.abi.access_type import AccessType
from warploom.ir.access_plans import AccessPlan, Addresses, Guard, Pattern, select
from warploom.ir.kernel_accesses import KernelAccesses
from warploom.isa.instruction import Address, Instruction, Register, Symbol
from warploom.isa.kinds import OpKind
from warploom.program.cfg import ProgramBlock
from warploom.program.uses import writes
from warploom.shapes.operand_shapes import OperandShapes
from warploom.shapes.vector_shape import VectorShape
from warploom.shapes.warp_layout import RUNS


@dataclass(frozen=True)
class AccessGroup:
    """Describes accesses of a basic block with one access type, `shape`, and one `plan`, whose base
    register is not written between them.

    `base`: the vector shape of their addresses; of addresses that are varying, its width is the
    number of runs of a warp. `members`: the instructions with their byte offsets. `crossed`: of a
    group of deferred stores (`lower.access.store_batching`), the loads between its members.
    """

    shape: AccessType
    plan: AccessPlan
    base: VectorShape
    members: tuple[tuple[int, int], ...] = ()
    crossed: tuple[int, ...] = ()

    @property
    def is_laid_out(self) -> bool:
        """Returns whether the plan treats each lane as a run of its own (Guard.LANES)."""
        return self.plan.guard is Guard.LANES

    @property
    def span(self) -> tuple[int, int]:
        """Returns the byte range that a run accesses in all members: its begin and end (exclusive),
        as offsets from the run's first address (of a batch of stores, from each lane's address)."""
        # A falling run begins with its highest address: its extent is negative, and lowers the
        # begin instead of raising the end.
        offsets = [offset for _, offset in self.members]
        extent = 0 if self.plan.pattern is Pattern.COLUMNS else self.base.extent
        return min(offsets) + min(extent, 0), max(offsets) + self.shape.size + max(extent, 0)


@dataclass
class _Open:
    """Collects the members of a group; `group` is the group without members, with its access type,
    plan and vector shape."""

    group: AccessGroup
    members: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def closed(self) -> AccessGroup:
        """Returns the group with all members collected."""
        group = self.group
        return AccessGroup(group.shape, group.plan, group.base, tuple(self.members))


def find_groups(
    accesses: KernelAccesses,
    operand_shapes: OperandShapes,
    block: ProgramBlock,
    mask: Register | None = None,
) -> list[AccessGroup]:
    """Returns the groups of a basic block, in the order of their first members. Unguarded accesses
    are in one group if they have one access type, offsets equal modulo its size, and a base that is
    not written between them; a guarded one is a group of its own; those with a general plan are in
    none. `operand_shapes` has the shapes of operands in the block. `mask`: the predicate register
    under which the block runs, if it is if-converted."""
    open_groups: dict[object, _Open] = {}
    versions: dict[Register, int] = {}
    for index in range(block.start, block.stop):
        instruction = accesses.program.instructions[index]
        described = _describe(accesses, operand_shapes, index, instruction, mask)
        if described is not None:
            address, group, common = described
            # By the last writer of its base: once the register is overwritten, accesses from it are
            # another group.
            # (A symbol has no writer.)
            version = versions.get(address.base) if isinstance(address.base, Register) else None
            # A group's guard is evaluated once, for the lanes of the block; a guarded access has
            # fewer.
            key = index if instruction.guard else (address.base, version, *common)
            open_groups.setdefault(key, _Open(group)).members.append((index, address.offset))
        # Only now: `ld.global.u64 %rd1, [%rd1]` reads its base before it writes it.
        for register in writes(instruction):
            versions[register] = index
    return [open_group.closed() for open_group in open_groups.values()]


def by_instruction(groups: Iterable[AccessGroup]) -> dict[int, AccessGroup]:
    """Returns a map from the instruction of each member to its group."""
    return {index: group for group in groups for index, _ in group.members}


def _describe(
    accesses: KernelAccesses,
    operand_shapes: OperandShapes,
    index: int,
    instruction: Instruction,
    mask: Register | None = None,
) -> tuple[Address, AccessGroup, tuple[object, ...]] | None:
    """Describes an access that can be in a group: its address operand, a group without members, and
    the key that all accesses of its group share beside their base: access type and misalignment
    (offset modulo size). Returns None for an instruction that is no load or store (`st.async` is
    one) or whose address has no base (a register or a symbol), and for accesses whose plan is
    general. `mask` is the predicate register under which the block runs, if any: an access is
    scattered if its base, its guard or `mask` is (`KernelAccesses.scattered`)."""
    kind = instruction.operation.kind
    if kind not in (OpKind.LOAD, OpKind.STORE, OpKind.ASYNC_STORE):
        return None
    op = "load" if kind is OpKind.LOAD else "store"
    address = instruction.operands[0 if op == "store" else 1]
    if not isinstance(address, Address) or not isinstance(address.base, Register | Symbol):
        return None
    shape, lanes = accesses.access_type_of(op, index, instruction), operand_shapes.address(address)
    guard = None if instruction.guard is None else instruction.guard.register
    scattered = not accesses.scattered.isdisjoint((address.base, guard, mask))
    addresses = Addresses.of(
        shape, lanes, RUNS.get(operand_shapes.warp_layout, 1), scattered=scattered
    )
    plan = select(shape, addresses, accesses.facts)
    if plan.is_general:
        return None
    base = addresses.base(shape, plan)
    return address, AccessGroup(shape, plan, base), (shape, address.offset % shape.size)
