"""Finds the registers that the instructions of a warp group, and waits for loads of tensor memory,
read or write beyond their operands: those in flight.

A product that is not complete reads its multiplicand when it completes, which is where the warp
waits for it; a load writes its registers there. So a wait reads the registers of every product, or
load, that it may complete; they stand behind its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from warploom.isa.ops.tcgen05 import is_tensor_load, waits_for_loads
from warploom.isa.ops.wgmma import (
    GROUP_BARRIER,
    GroupProduct,
    group_product,
    is_group_product,
    is_wait,
)
from warploom.isa.spec import Operation
from warploom.ptx.ir import Immediate, Instruction, Operand, Register, Vector, spread
from warploom.simt.schedule_layout import BARRIERS, GROUP_THREADS


@dataclass(frozen=True)
class GroupOperands:
    """The operands of a `wgmma.mma_async` by their roles. `metadata` and `selector` are those of a
    sparse A."""

    d: Operand
    a: Operand
    b: Operand
    metadata: tuple[Operand, Operand] | None
    scale_d: Operand
    product: GroupProduct

    @property
    def descriptors(self) -> tuple[Operand, Operand]:
        """Return the descriptors of A and B; of B twice, where A is in registers."""
        return (self.b if self.product.shared_a is None else self.a), self.b


def group_operands(instruction: Instruction) -> GroupOperands:
    """Returns the operands of a `wgmma.mma_async`."""
    operation = instruction.operation
    d, a, b, *rest = instruction.operands
    metadata = None
    if "sp" in operation.modifiers:
        first, second, *rest = rest
        metadata = first, second
    scale_d, *constants = rest
    numbers = [o.value for o in constants if isinstance(o, Immediate)]
    signs, transposed = numbers[:2], [bool(number) for number in numbers[2:]]
    shared = not isinstance(a, Vector)
    transposed_a = shared and bool(transposed) and transposed[0]
    transposed_b = bool(transposed) and transposed[-1]
    negated = len(signs) == 2 and signs[0] != signs[1]
    product = group_product(operation, shared, transposed_a, transposed_b, negated)
    return GroupOperands(d, a, b, metadata, scale_d, product)


def group_barrier_after(wait: Instruction) -> Instruction:
    """Return the meeting of the warp group behind a wait."""
    operands = (Immediate(BARRIERS), Immediate(GROUP_THREADS))
    return replace(wait, operation=GROUP_BARRIER, operands=operands)


def with_registers_in_flight(instructions: Iterable[Instruction]) -> tuple[Instruction, ...]:
    """Returns the instructions of a program, each wait with the registers that it may read."""
    program = tuple(instructions)
    products = [instruction for instruction in program if is_group_product(instruction.operation)]
    factors = [
        o for instruction in products for o in instruction.operands[:2] if isinstance(o, Vector)
    ]
    loads = [instruction for instruction in program if is_tensor_load(instruction.operation)]
    loaded = [
        o
        for instruction in loads
        for o in instruction.operands[: len(instruction.operation.spec.destinations)]
    ]
    return _with_operands(_with_operands(program, is_wait, factors), waits_for_loads, loaded)


def _with_operands(
    instructions: tuple[Instruction, ...],
    waits: Callable[[Operation], bool],
    operands: Iterable[Operand],
) -> tuple[Instruction, ...]:
    """Returns instructions in which those that wait have the registers of these operands, too."""
    held = dict.fromkeys(each for each in spread(operands) if isinstance(each, Register))
    if not held:
        return instructions
    return tuple(
        replace(each, operands=(*each.operands, Vector(tuple(held))))
        if waits(each.operation)
        else each
        for each in instructions
    )
