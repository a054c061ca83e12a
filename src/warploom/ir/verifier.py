"""Checks that a Warp IR is consistent: that what it says of blocks, registers and accesses agrees
with its program, and that every plan is one that the table has for the access.

    block b4 ... branch=predicated          -> an error, if b4 has no predicated block
    plan=consecutive/cache/vector/list/...  -> an error, for the table has no such plan
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from warploom.analysis.shape_transfer import OperandShapes
from warploom.core.errors import WarploomError
from warploom.ir.access_groups import AccessGroup
from warploom.ir.access_plans import TABLE, Addresses, Exit, Guard
from warploom.ir.program_verifier import program_errors
from warploom.ir.warp_ir import BasicBlock, BlockAccesses, BranchKind, WarpIR
from warploom.isa.kinds import OpKind
from warploom.ptx.ir import Address, Register

GROUPED = (OpKind.LOAD, OpKind.STORE, OpKind.ASYNC_STORE)
"""Kinds of operations that can be in an access group."""


def verify(ir: WarpIR) -> None:
    """Raises WarploomError if an IR is not consistent, with the first reason."""
    for reason in program_errors(ir.program):
        _fail(ir, reason)
    for reason in _errors(ir):
        _fail(ir, reason)


def _fail(ir: WarpIR, reason: str) -> None:
    raise WarploomError(f"the Warp IR of kernel {ir.program.name} is not valid: {reason}")


def _errors(ir: WarpIR) -> Iterator[str]:
    """Yields what is wrong with an IR whose program is valid."""
    if ir.layout.warp_layout is not ir.variant.warp_layout:
        yield "its counts are for another layout of warps"
    if len(ir.blocks) != len(ir.program.blocks):
        yield f"it describes {len(ir.blocks)} of {len(ir.program.blocks)} blocks"
        return
    yield from _register_errors(ir)
    yield from _exit_errors(ir)
    for index, block in enumerate(ir.blocks):
        yield from (f"block b{index}: {reason}" for reason in _branch_errors(ir, index, block))
        for name, accesses in (("accesses", block.accesses), ("masked", block.masked)):
            for reason in _access_errors(ir, index, accesses):
                yield f"block b{index}, {name}: {reason}"


def _register_errors(ir: WarpIR) -> Iterator[str]:
    """Yields registers with facts that the program does not have, or has no shape for."""
    declared = frozenset(ir.program.registers)
    for name, registers in (
        ("shapes", ir.shapes),
        ("block shapes", ir.block_shapes),
        ("spilled", ir.spilled),
        ("scattered", ir.scattered),
    ):
        if not declared.issuperset(registers):
            yield f"{name} of a register that is not declared"
    if not all(ir.shapes.keys() >= block.loose for block in ir.blocks):
        yield "a register is varying in a block, and has no shape in others"


def _exit_errors(ir: WarpIR) -> Iterator[str]:
    """Yields masked regions that are not entered and left as they say."""
    for region in ir.exits:
        leaving = frozenset(
            block
            for block in region.blocks
            if any(to not in region.blocks for to in ir.program.blocks[block].successors)
        )
        targets = {to for block in leaving for to in ir.program.blocks[block].successors}
        if region.header not in region.blocks or leaving != region.exits:
            yield f"the masked region of b{region.header} is left in other blocks"
        elif targets - region.blocks != {region.point}:
            yield f"the masked region of b{region.header} does not lead to b{region.point} alone"
        elif region.merged != region.written & ir.live(region.point):
            yield f"the masked region of b{region.header} merges other registers"


def _branch_errors(ir: WarpIR, index: int, block: BasicBlock) -> Iterator[str]:
    """Yields what is wrong with the branch at the end of a block."""
    last = ir.program.instructions[ir.program.blocks[index].stop - 1]
    is_guarded = last.operation.kind is OpKind.BRANCH and last.guard is not None
    if not is_guarded and block.branch is not None:
        yield "a branch without a guard needs no kind"
    if block.predicated_block not in (None, *ir.program.blocks[index].successors):
        yield "the predicated block does not follow"
    expected: BranchKind | None = None
    if last.guard is not None and last.guard.register in ir.uniformity.at(index):
        expected = BranchKind.UNIFORM
    elif any(index in region.exits for region in ir.exits):
        expected = BranchKind.EXIT
    elif block.predicated_block is None:
        expected = BranchKind.SPLIT
    else:
        expected = BranchKind.PREDICATED
    if block.branch is not None and block.branch is not expected:
        yield f"the branch is {expected.value}, not {block.branch.value}"


def _access_errors(ir: WarpIR, index: int, accesses: BlockAccesses) -> Iterator[str]:
    """Yields what is wrong with the access groups of a block."""
    reading = OperandShapes(ir.program, ir.variant.warp_layout, ir.uniformity.at(index))
    block, seen = ir.program.blocks[index], set[int]()
    for group in accesses.groups:
        members = [member for member, _ in group.members]
        if not members or not set(members) <= set(range(block.start, block.stop)) - seen:
            yield f"group {members} is not of this block, or overlaps another"
            return
        seen |= set(members)
        yield from _group_errors(ir, reading, group)
        leaves = group.plan.exit is Exit.SLOW_VERSION
        if leaves and not accesses.has_fast_version:
            yield f"group {members} leaves a fast version that the block does not have"
        if group.plan.guard is Guard.CACHE and accesses.has_fast_version and not leaves:
            yield f"group {members} does not leave the fast version"


def _group_errors(ir: WarpIR, reading: OperandShapes, group: AccessGroup) -> Iterator[str]:
    """Yields what is wrong with the members and the plan of an access group."""
    bases = set[object]()
    for member, offset in group.members:
        instruction = ir.program.instructions[member]
        if instruction.operation.kind not in GROUPED:
            yield f"operation {member} is no load or store"
            return
        op = "load" if instruction.operation.kind is OpKind.LOAD else "store"
        address = instruction.operands[0 if op == "store" else 1]
        access_type = ir.accesses.access_type_of(op, member, instruction)
        # Deferred stores of one space and size are a batch, whatever their types.
        is_deferred = group.plan.guard is Guard.COMPARED
        if is_deferred:
            access_type = replace(group.shape, space=access_type.space)
        if access_type != group.shape:
            yield f"operation {member} is not an access of its group's type"
        if not isinstance(address, Address) or address.offset != offset:
            yield f"operation {member} does not have the offset {offset}"
            continue
        bases.add(address.base)
        shape = reading.address(address)
        if isinstance(address.base, Register) and shape.is_affine and shape != group.base:
            yield f"operation {member} has addresses of another shape"
    if len(bases) > 1:
        yield f"the accesses {group.members} have several base registers"
    addresses = Addresses(group.plan.pattern, group.base)
    facts = ir.accesses.facts
    if not any(
        group.plan in (row.plan, row.plan.in_one_version())
        for row in TABLE
        if row.fits(group.shape, addresses, facts)
    ):
        yield f"no row of the table gives the plan of {group.members}"
