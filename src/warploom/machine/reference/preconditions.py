"""Preconditions of instructions (`isa.preconditions`), checked in each lane that executes one."""

from __future__ import annotations

from warploom.core.types import U32, U64
from warploom.isa.preconditions import Precondition
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lanes import Values, collect, lanes_of, to_mask
from warploom.machine.reference.operands import addresses, read
from warploom.machine.reference.state import Warp
from warploom.program.preconditions import operand_checks
from warploom.ptx.ir import Address, Instruction, Operand, Space


def check_operands(warp: Warp, index: int, instruction: Instruction, mask: int) -> None:
    """Raise the fault of the lowest lane of `mask` whose operands break a precondition."""
    for check in operand_checks(instruction):
        given = [_value(warp, operand) for operand in check.operands]
        bad = mask & ~to_mask(evaluate(check.term, given, warp.size))
        if bad:
            lane = next(iter(lanes_of(bad)))
            address, value = int(_value(warp, check.address)[lane]), int(given[0][lane])
            place = (index, warp.block.number, warp.number, lane)
            size = value if check.value != check.address else 0
            fault = Fault(FaultKind(check.precondition.number), *place, address, size)
            raise fault_error(fault, warp.run.program, warp.run.launch, None)


def check_word(
    warp: Warp, index: int, lane: int, need: Precondition | None, place: tuple[Space, int, int]
) -> None:
    """Raise the fault of a lane whose atomic finds a word that breaks a precondition; `place` is
    the space, the address there and the word."""
    space, address, word = place
    if need is None or evaluate(need.of_memory, [collect([word], U64)], 1)[0]:
        return
    at = (index, warp.block.number, warp.number, lane)
    fault = Fault(FaultKind(need.number), *at, address, U64.bytes, space)
    raise fault_error(fault, warp.run.program, warp.run.launch, None)


def _value(warp: Warp, operand: Operand) -> Values:
    if isinstance(operand, Address):
        return collect(addresses(warp, operand), U64)
    return read(warp, operand, U32)
