"""The pass that completes the plans of accesses: groups in blocks without a fast version use the
general path where their guard fails. Each load, store and atomic also gets the plan for any
addresses, which is used where it is in no group, or where the guard of its group fails.

    10: atom.shared.add.u32 %r3, [%r6], %r2;   ->   plan=shared:any/window/lane_by_lane/list/general
    11: ld.global.f32 %f1, [%rd4];             ->   plan=global:any/bounds/by_pattern/patterns/fault
    load global .f32 members=11+0 plan=consecutive/cache/vector/cache/slow_version
                                 ->   the same group with plan=.../general: b1 has no fast version

An access at generic addresses has a plan for each space. Not handled: accesses of copies, matrices,
tensors and textures, which have a code of their own. It costs nothing: the table has one plan for
each access."""

from __future__ import annotations

from dataclasses import replace

from warploom.abi.access_type import AccessType
from warploom.ir.access_plans import ANYWHERE, select
from warploom.ir.kernel_accesses import elements
from warploom.ir.warp_ir import BlockAccesses, WarpIR
from warploom.isa.kinds import OpKind
from warploom.isa.spec import Unit
from warploom.program.accesses import AccessRecord


def complete_plans(ir: WarpIR) -> WarpIR:
    """Returns an IR in which no group leaves a version that its block does not have, and, except in
    baseline code, each access has a plan at any addresses."""
    return plan_general_accesses(fit_plans(ir))


def fit_plans(ir: WarpIR) -> WarpIR:
    """Adapts the plans of accesses to blocks without a fast version: a failed guard then leads to
    the general path of that access, for there is no slow version to jump to."""

    def fitted(accesses: BlockAccesses) -> BlockAccesses:
        """Returns access groups whose plans have no exit to a slow version, if the block has no
        fast version."""
        if accesses.has_fast_version or not accesses.groups:
            return accesses
        return BlockAccesses(
            tuple(replace(group, plan=group.plan.in_one_version()) for group in accesses.groups)
        )

    return ir.with_blocks(
        lambda _, block: replace(
            block, accesses=fitted(block.accesses), masked=fitted(block.masked)
        ),
    )


def plan_general_accesses(ir: WarpIR) -> WarpIR:
    """Adds the plans of accesses at any addresses (loads, stores, atomics) as `plans`, by the
    number of the operation and the space; none in code of one copy, whose lanes count as diverged,
    so that its accesses are done out of line."""
    if ir.variant.has_one_copy:
        return ir
    typed = ((record, access_type_of(ir, record)) for record in ir.layout.records)
    facts = ir.accesses.facts
    return replace(
        ir,
        plans={
            (record.instruction, record.space): select(access_type, ANYWHERE, facts)
            for record, access_type in typed
            if access_type is not None
        },
    )


def access_type_of(ir: WarpIR, record: AccessRecord) -> AccessType | None:
    """Returns the access type in one space of a load, a store (`st.async`, too) or an atomic; None
    for other operations."""
    instruction = ir.program.instructions[record.instruction]
    operation = instruction.operation
    if operation.kind in (OpKind.LOAD, OpKind.STORE, OpKind.ASYNC_STORE):
        moved = ir.accesses.access_type_of(record.op, record.instruction, instruction)
        return replace(moved, space=record.space)
    if operation.spec.unit is not Unit.ATOMIC:
        return None
    # Sources follow the results and the address.
    first_source = len(operation.spec.destinations) + 1
    sources = instruction.operands[first_source : first_source + operation.value_count]
    parts = len(elements(sources[0])) if sources else 1
    return AccessType(record.op, record.space, operation.modifiers.scalar(), parts)
