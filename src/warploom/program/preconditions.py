"""The preconditions of single instructions, with the operands that they are about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.core.types import PRED
from warploom.isa.preconditions import Precondition
from warploom.isa.terms import Term
from warploom.program.uses import sources
from warploom.ptx.ir import Address, Instruction, Operand, Register


@dataclass(frozen=True, slots=True)
class OperandCheck:
    """A precondition of an instruction: the term that holds, over the values of `operands`.

    `value` is the operand that the fault tells of, `address` where the instruction reaches memory.
    """

    precondition: Precondition
    term: Term
    operands: tuple[Operand, ...]
    address: Operand

    @property
    def value(self) -> Operand:
        return self.operands[0]


def operand_checks(instruction: Instruction) -> Iterator[OperandCheck]:
    """Yield the preconditions on operands that an instruction has, in the order in which they
    count."""
    operation = instruction.operation
    if not operation.spec.operand_preconditions:
        return
    operands_read = list(sources(instruction))
    if "L2::cache_hint" in operation.modifiers:
        operands_read.pop()
    named = {
        form.name: operand
        for form, operand in zip(operation.spec.sources, operands_read, strict=False)
    }
    numbers = {name: operand for name, operand in named.items() if not _is_predicate(operand)}
    for each in operation.spec.operand_preconditions:
        if all(name in numbers for name in each.operands):
            operands = tuple(numbers[name] for name in each.operands)
            are_addresses = tuple(isinstance(operand, Address) for operand in operands)
            address = next(o for o in (*operands, *operands_read) if isinstance(o, Address))
            yield OperandCheck(each, each.of_operands(are_addresses), operands, address)


def _is_predicate(operand: Operand) -> bool:
    return isinstance(operand, Register) and operand.type == PRED
