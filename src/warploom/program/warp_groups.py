"""Adds to instructions that wait for `wgmma` products (of a warp group), or for loads of tensor
memory, the registers that the pending operations use, so that liveness retains them up to the wait.
Also reads the operands of a `wgmma` product by role.

A pending product reads its registers (D, and A if that is in registers) when it completes, at the
wait; a load writes its destination there. So a wait reads the registers of every product, or load,
that it may complete. These are appended as one more operand, which makes them live up to the wait:

    wgmma.wait_group.sync.aligned 0;   ->   wgmma.wait_group.sync.aligned 0, {%r1, %r2, %r3, %r4};
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from warploom.isa.instruction import (
    Immediate,
    Instruction,
    Operand,
    Register,
    Vector,
    flatten_operands,
)
from warploom.isa.kinds import OpKind
from warploom.isa.ops.barrier import REGISTER_WAIT
from warploom.isa.ops.wgmma import (
    GROUP_BARRIER,
    GroupProduct,
    group_product,
)
from warploom.simt.schedule_layout import BARRIERS, GROUP_THREADS


@dataclass(frozen=True)
class GroupOperands:
    """The operands of a `wgmma.mma_async` by role. `metadata` and `selector` belong to a sparse
    A."""

    d: Operand
    a: Operand
    b: Operand
    metadata: tuple[Operand, Operand] | None
    scale_d: Operand
    product: GroupProduct

    @property
    def descriptors(self) -> tuple[Operand, Operand]:
        """Returns the descriptors of A and B; that of B twice if A is in registers."""
        return (self.b if self.product.shared_a is None else self.a), self.b


def group_operands(instruction: Instruction) -> GroupOperands:
    """Returns the operands of a `wgmma.mma_async` by role; those of `.sp` include the metadata and
    its selector. Immediates at the end give the signs of A and B and whether they are transposed;
    both signs are combined into one, and A can be transposed only in shared memory."""
    operation = instruction.operation
    d, a, b, *rest = instruction.operands
    metadata = None
    if "sp" in operation.modifiers:
        metadata_operand, selector, *rest = rest
        metadata = metadata_operand, selector
    scale_d, *constants = rest
    immediates = [o.value for o in constants if isinstance(o, Immediate)]
    # In this order: the signs of A and B (1 or -1), then whether A and B, or B alone, are
    # transposed.
    signs, transposed = immediates[:2], [bool(number) for number in immediates[2:]]
    shared = not isinstance(a, Vector)
    transposed_a = shared and bool(transposed) and transposed[0]
    transposed_b = bool(transposed) and transposed[-1]
    # Negating both factors cancels out.
    negated = len(signs) == 2 and signs[0] != signs[1]
    product = group_product(operation, shared, transposed_a, transposed_b, negated)
    return GroupOperands(d, a, b, metadata, scale_d, product)


def group_barrier_after(wait: Instruction) -> Instruction:
    """Returns the barrier of the 128 threads of a warp group that follows a wait for products,
    since the wait ends when all four warps have executed it."""
    operands = (Immediate(BARRIERS), Immediate(GROUP_THREADS))
    return replace(wait, operation=GROUP_BARRIER, operands=operands)


def requests_registers(instruction: Instruction) -> bool:
    """Returns whether an instruction requests registers of its block (`setmaxnreg.inc`)."""
    operation = instruction.operation
    is_count = operation.kind is OpKind.REGISTER_COUNT
    return is_count and operation.modifiers["action"] == "inc"


def register_wait_after(request: Instruction) -> Instruction:
    """Returns the wait for registers that follows a request of registers."""
    return replace(request, operation=REGISTER_WAIT, operands=())


def with_registers_in_flight(instructions: Iterable[Instruction]) -> tuple[Instruction, ...]:
    """Returns the instructions of a program in which waits have one more operand: waits for warp
    group products the registers that hold D or A of any product, waits for loads of tensor memory
    the destinations of any load; unchanged if the program has none."""
    program = tuple(instructions)
    # Of all products and loads, for which of them a wait completes depends on the path taken.
    products = [product for product in program if product.operation.kind is OpKind.GROUP_PRODUCT]
    # D, and A unless it is a descriptor of shared memory.
    fragments = [
        o for instruction in products for o in instruction.operands[:2] if isinstance(o, Vector)
    ]
    loads = [load for load in program if load.operation.kind is OpKind.TENSOR_LOAD]
    loaded = [
        o
        for instruction in loads
        for o in instruction.operands[: len(instruction.operation.spec.destinations)]
    ]
    program = _with_operands(program, OpKind.GROUP_WAIT, fragments)
    return _with_operands(program, OpKind.TENSOR_WAIT_LOADS, loaded)


def _with_operands(
    instructions: tuple[Instruction, ...],
    wait: OpKind,
    operands: Iterable[Operand],
) -> tuple[Instruction, ...]:
    """Returns instructions in which those of kind `wait` have one more operand: a vector of the
    different registers in `operands`, of vectors the elements, so that the registers count as used
    until the wait. Unchanged if there are none."""
    held = dict.fromkeys(
        member for member in flatten_operands(operands) if isinstance(member, Register)
    )
    if not held:
        return instructions
    return tuple(
        replace(member, operands=(*member.operands, Vector(tuple(held))))
        if member.operation.kind is wait
        else member
        for member in instructions
    )
