"""Decides before a launch whether its thread blocks are independent: none accesses bytes of global
memory that another writes, nor depends on the order of blocks otherwise.

Independent blocks can run on several workers at a time, with the same result in any order:

    x[blockIdx.x * blockDim.x + threadIdx.x] = 1;     independent: blocks write disjoint bytes
    x[threadIdx.x] = 1;                               not: all blocks write the same bytes

Not handled: atomics, loads of pointers, and instructions whose results depend on block order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from warploom.analysis.linear.affine import (
    NOT_SHARED,
    LaunchInputs,
    MemoryAccess,
    block_indices,
    global_accesses,
)
from warploom.core.errors import Dim3
from warploom.isa.instruction import Instruction, Special, flatten_operands
from warploom.isa.kinds import ACCESSES_BY_LANE, Effect, OpKind
from warploom.program.accesses import accesses
from warploom.program.program import Program

ORDER_DEPENDENT = ("%clock", "%globaltimer", "%gridid")
"""Special registers (by the beginnings of their names) whose values depend on the order of
blocks."""


BY_LANE = ACCESSES_BY_LANE | {OpKind.COPY, OpKind.BULK_COPY}
"""Instructions, besides atomics, in which each lane accesses what its own operands say."""


def why_blocks_conflict(program: Program, launch: LaunchInputs) -> str:
    """Returns why blocks of a launch may conflict, as a sentence with a source line; empty if they
    cannot, so that several workers may run them. The first reason found of: an instruction that
    depends on other blocks (`_order_dependence`); a pointer into any allocation, if the kernel
    stores at all; an allocation that is stored to in which accesses are not disjoint by block.

    An access is assumed to stay in the allocation that its pointer refers to; one that strays into
    another is a fault of the kernel, for which no schedule is specified."""
    for index, instruction in enumerate(program.instructions):
        reason = _order_dependence(instruction)
        if reason:
            return f"{reason} at {program.line(index)}"
    memory_accesses = global_accesses(program, launch)
    stores = [access for access in memory_accesses if access.op == "store"]
    if any(access.address.allocations is None for access in memory_accesses) and stores:
        unknown = next(r for r in memory_accesses if r.address.allocations is None)
        return f"nothing is known of the address at {program.line(unknown.instruction)}"
    for allocation in {each for store in stores for each in store.address.allocations or ()}:
        in_allocation = [
            access for access in memory_accesses if allocation in (access.address.allocations or ())
        ]
        if not are_disjoint(in_allocation, launch.grid):
            line = next(r for r in in_allocation if r.op == "store").instruction
            return f"blocks may reach the same addresses as the store at {program.line(line)}"
    return ""


def _order_dependence(instruction: Instruction) -> str:
    """Returns why an instruction depends on other blocks, whatever its addresses: a call, a special
    register of clocks or the grid's number, a tensor map; an atomic, or an access that is not by
    lane (BY_LANE; matrices, textures, surfaces), in memory that blocks share. Empty if it does
    not."""
    if instruction.operation.kind is OpKind.CALL:
        return "the kernel calls printf, malloc or assert"
    special_names = [
        o.name for o in flatten_operands(instruction.operands) if isinstance(o, Special)
    ]
    if any(name.startswith(ORDER_DEPENDENT) for name in special_names):
        return "the kernel reads a value that depends on block order"
    if instruction.operation.has(Effect.USES_TMA):
        return "nothing is known of where a tensor map leads"
    for space, op in accesses(instruction):
        if space in NOT_SHARED:
            continue
        if op == "atomic":
            return "the order of atomics shows"
        if instruction.operation.kind not in BY_LANE:
            return "an access of a whole warp"
    return ""


# ---- independence of blocks ---------------------------------------------------------------------


def are_disjoint(memory_accesses: Sequence[MemoryAccess], grid: Dim3) -> bool:
    """Returns whether no two blocks touch the same byte by any of these accesses (at least one) to
    one allocation, each taken to be of the largest one's size. True only if all addresses are
    known, have the same strides, and include every block index that varies."""
    forms = [access.address.form for access in memory_accesses]
    forms_known = [f for f in forms if f is not None]
    if len(forms_known) < len(forms) or len({f.strides for f in forms_known}) > 1:
        return False
    first = min(f.constant for f in forms_known)
    offsets = [f.constant - first for f in forms_known]
    unit = math.gcd(*offsets)
    strides = dict(forms_known[0].strides)
    if any(block not in strides for block in block_indices(grid)):
        return False
    digits = [(v.extent, abs(s), v.of_block) for v, s in strides.items()]
    # The constants of several accesses count as one more digit, which all blocks share.
    if unit:
        digits.append((max(offsets) // unit + 1, unit, False))
    return _digits_disjoint(digits, max(access.size for access in memory_accesses))


def _digits_disjoint(digits: Sequence[tuple[int | None, int, bool]], size: int) -> bool:
    """Returns whether intervals of `size` bytes, which start at sums of digits times strides, are
    disjoint for different blocks. A digit is (number of its values, None if unbounded; stride;
    whether it is a block index).

    In order of strides, a digit whose stride is at least the span of all smaller digits has
    separate values. One with a smaller stride overlaps with these: allowed only if no block index
    is involved. Only the digit with the largest stride may be unbounded."""
    span, of_blocks = size, False
    unbounded = False
    for extent, stride, of_block in sorted(digits, key=lambda digit: digit[1]):
        # A smaller digit has no greatest value: it reaches every larger one.
        if unbounded:
            return False
        if stride < span and (of_block or of_blocks):
            return False
        of_blocks |= of_block
        unbounded = extent is None
        span += stride * ((extent or 1) - 1)
    return True
