"""Lists the preconditions of an instruction on its operands, such as an aligned address, which the
interpreter and compiled code check before they execute it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.core.types import PRED
from warploom.isa.instruction import Address, Instruction, Operand, Register
from warploom.isa.preconditions import Precondition
from warploom.isa.terms import Term
from warploom.program.uses import sources


@dataclass(frozen=True, slots=True)
class OperandCheck:
    """A precondition of an instruction: it is met if `term` is true for the values of `operands`.

    `value` is the operand that a fault reports, `address` the operand of the memory access."""

    precondition: Precondition
    term: Term
    operands: tuple[Operand, ...]
    address: Operand

    @property
    def value(self) -> Operand:
        """Returns the operand whose value a fault reports: the first of `operands`."""
        return self.operands[0]


def operand_checks(instruction: Instruction) -> Iterator[OperandCheck]:
    """Yields the preconditions that an instruction's specification sets on its operands (such as an
    aligned address), each with these operands and the address to report, in the order in which
    faults have precedence. Those on operands that the instruction does not have, or that are
    predicates, are left out."""
    operation = instruction.operation
    if not operation.spec.operand_preconditions:
        return
    operands_read = list(sources(instruction))
    if "L2::cache_hint" in operation.modifiers:
        # The last operand is the cache policy, which is no source of the operation's specification.
        operands_read.pop()
    named = {
        form.name: operand
        for form, operand in zip(operation.spec.sources, operands_read, strict=False)
    }
    numbers = {name: operand for name, operand in named.items() if not _is_predicate(operand)}
    for precondition in operation.spec.operand_preconditions:
        if all(name in numbers for name in precondition.operands):
            operands = tuple(numbers[name] for name in precondition.operands)
            are_addresses = tuple(isinstance(operand, Address) for operand in operands)
            address = next(o for o in (*operands, *operands_read) if isinstance(o, Address))
            yield OperandCheck(
                precondition, precondition.of_operands(are_addresses), operands, address
            )


def _is_predicate(operand: Operand) -> bool:
    """Returns whether an operand is a predicate register, not negated."""
    return isinstance(operand, Register) and operand.type == PRED
