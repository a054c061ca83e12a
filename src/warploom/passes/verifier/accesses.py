"""Checks the access groups of a Warp IR: that their members are accesses of the program of one type
and base, and that the table has their plan for such addresses.

    group (%rd1): 0 at [%rd1+4]    -> an error: operation 0 does not have the offset 0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from warploom.ir.access_groups import AccessGroup
from warploom.ir.access_plans import ANYWHERE, TABLE, Addresses, Exit, Guard, general, select
from warploom.ir.warp_ir import BasicBlock, BlockAccesses, WarpIR
from warploom.isa.instruction import Address
from warploom.isa.kinds import OpKind
from warploom.passes.plans import access_type_of
from warploom.shapes.operand_shapes import OperandShapes
from warploom.shapes.warp_layout import RUNS

GROUPED = (OpKind.LOAD, OpKind.STORE, OpKind.ASYNC_STORE)
"""Kinds of operations that can be in an access group."""


def access_errors(ir: WarpIR, index: int, block: BasicBlock) -> Iterator[str]:
    """Yields what is wrong with the access groups of block number `index`, those of its convergent
    copy and of its copy under a mask, and with their fast version."""
    operand_shapes = ir.operand_shapes(index)
    code = ir.program.blocks[index]
    for accesses in (block.accesses, block.masked):
        yield from group_errors(ir, operand_shapes, range(code.start, code.stop), accesses.groups)
        yield from _version_errors(accesses)


def plan_errors(ir: WarpIR) -> Iterator[str]:
    """Yields accesses whose plan at any addresses is neither the one that the table has for them
    nor that out of line; or only that the plans are not those of the program's accesses. An IR
    without any plans has none of these errors."""
    types = {
        (record.instruction, record.space): access_type_of(ir, record)
        for record in ir.layout.records
    }
    planned = {key for key, access_type in types.items() if access_type is not None}
    if ir.plans and set(ir.plans) != planned:
        yield "its access plans do not match the accesses of its program"
        return
    for key, plan in ir.plans.items():
        access_type = types[key]
        assert access_type is not None
        if plan not in (select(access_type, ANYWHERE, ir.accesses.facts), general(access_type)):
            yield f"no row in the plan table matches the plan of operation {key[0]}"


def _version_errors(accesses: BlockAccesses) -> Iterator[str]:
    """Yields that the block has a fast version and no group whose failed guard leaves it, or such a
    group and no fast version; and that some groups leave a fast version and one guarded by the
    range cache does not."""
    exiting = [group for group in accesses.groups if group.plan.exit is Exit.SLOW_VERSION]
    if accesses.has_fast_version != bool(exiting):
        yield (
            "it must have both a fast version and a group that exits to the slow version, or "
            "neither"
        )
    stays = (group for group in accesses.groups if group.plan.guard is Guard.CACHE)
    if exiting and not all(group in exiting for group in stays):
        yield "a group guarded by the range cache does not exit to the slow version"


def group_errors(
    ir: WarpIR,
    operand_shapes: OperandShapes,
    operations: Iterable[int],
    groups: Iterable[AccessGroup],
) -> Iterator[str]:
    """Yields what is wrong with the access groups of some operations: no members, members that are
    not among `operations` or are in two groups, or crossed loads that are not among `operations`.
    It ends after one of these errors; else it yields members that do not fit their group, and
    groups with a plan that no row of the table has for them, with or without an exit to a slow
    version. `operand_shapes` has the shapes of operands there."""
    inside = frozenset(operations)
    free = set(inside)
    for group in groups:
        members = {member for member, _ in group.members}
        if not members or not members <= free or not inside.issuperset(group.crossed):
            yield (
                f"group {sorted(members)} has members in another block, or members that are also "
                "in another group"
            )
            return
        free -= members
        yield from _member_errors(ir, operand_shapes, group)
        addresses, facts = Addresses(group.plan.pattern, group.base), ir.accesses.facts
        # Every row that fits, not the first alone, which `select` takes: an IR written by hand may
        # choose a slower plan, but none that is wrong for these addresses.
        rows = (row.plan for row in TABLE if row.fits(group.shape, addresses, facts))
        if not any(group.plan in (plan, plan.in_one_version()) for plan in rows):
            yield f"no row in the plan table matches the plan of group {sorted(members)}"


def _member_errors(ir: WarpIR, operand_shapes: OperandShapes, group: AccessGroup) -> Iterator[str]:
    """Yields members whose access type (of deferred stores: size), offset or shape of addresses is
    not that of their group, and groups with several bases. Ends at a member that is no load or
    store."""
    bases = set[object]()
    for member, offset in group.members:
        instruction = ir.program.instructions[member]
        if instruction.operation.kind not in GROUPED:
            yield f"operation {member} is not a load or a store"
            return
        op = "load" if instruction.operation.kind is OpKind.LOAD else "store"
        address = instruction.operands[0 if op == "store" else 1]
        access_type = ir.accesses.access_type_of(op, member, instruction)
        # Deferred stores of one size are a batch, whatever their types.
        if group.plan.guard is Guard.COMPARED and access_type.size == group.shape.size:
            access_type = replace(group.shape, op=access_type.op, space=access_type.space)
        if access_type != group.shape:
            yield f"operation {member} does not have its group's access type"
        if not isinstance(address, Address) or address.offset != offset:
            yield f"operation {member} does not have the offset {offset}"
            continue
        bases.add(address.base)
        shape = operand_shapes.address(address)
        if group.plan.guard is not Guard.COMPARED:
            runs = RUNS.get(operand_shapes.warp_layout, 1)
            shape = Addresses.of(access_type, shape, runs).base(access_type, group.plan)
        if shape != group.base:
            yield f"the addresses of operation {member} do not have the access group's shape"
    if len(bases) > 1:
        yield f"the accesses {group.members} have several base registers"
