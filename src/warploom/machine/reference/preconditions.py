"""Checks, on the reference machine, preconditions of instructions (`isa.preconditions`) in each
lane that executes them, and raises their faults."""

from __future__ import annotations

from warploom.core.types import U32, U64
from warploom.isa.instruction import Address, Instruction, Operand, Space
from warploom.isa.preconditions import Precondition
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lanes import Values, collect, lanes_of, to_mask
from warploom.machine.reference.operands import addresses, read
from warploom.machine.reference.state import Warp
from warploom.program.preconditions import operand_checks


def check_operands(warp: Warp, index: int, instruction: Instruction, mask: int) -> None:
    """Raises the fault of the first precondition of the instruction (such as the alignment of a
    bulk copy) that operands of any lane of `mask` break, in the lowest such lane. The fault has the
    address that the check names, and as size the value of the operand checked, 0 if that is the
    address."""
    for check in operand_checks(instruction):
        values = [_value(warp, operand) for operand in check.operands]
        failing = mask & ~to_mask(evaluate(check.term, values, warp.size))
        if failing:
            lane = next(iter(lanes_of(failing)))
            address, value = int(_value(warp, check.address)[lane]), int(values[0][lane])
            position = (index, warp.block.number, warp.number, lane)
            # The fault's second word is the operand's value, 0 if the address is that operand.
            size = value if check.value != check.address else 0
            fault = Fault(FaultKind(check.precondition.number), *position, address, size)
            raise fault_error(fault, warp.run.program, warp.run.launch, None)


def check_word(
    warp: Warp,
    index: int,
    lane: int,
    precondition: Precondition | None,
    location: tuple[Space, int, int],
) -> None:
    """Raises the fault of a lane whose atomic finds a word in memory that breaks `precondition`
    (such as that of an mbarrier which is not initialized); nothing if that is None. `location` is
    the space, the address there and the word."""
    space, address, word = location
    if precondition is None or evaluate(precondition.of_memory, [collect([word], U64)], 1)[0]:
        return
    position = (index, warp.block.number, warp.number, lane)
    fault = Fault(FaultKind(precondition.number), *position, address, U64.bytes, space)
    raise fault_error(fault, warp.run.program, warp.run.launch, None)


def _value(warp: Warp, operand: Operand) -> Values:
    """Returns the lanes of an operand: of an address operand the addresses, else 32-bit values."""
    if isinstance(operand, Address):
        return collect(addresses(warp, operand), U64)
    return read(warp, operand, U32)
