"""Executes `tcgen05` on the reference machine: passes operand rows to `asynchronous.tensor_memory`,
which does the work.

Loads and stores may complete late, when their warp waits for them (`simt.product_groups`): such a
load reads tensor memory at that time, and its registers hold a marker value until then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.asynchronous.issue.late_stores import wait_stores
from warploom.asynchronous.issue.tensor_memory import issue_tensor_memory
from warploom.asynchronous.records import LANES, TensorMemoryOperands, WarpIssue
from warploom.asynchronous.tensor_memory.layout import LOAD, MOST_REGISTERS, NOT_LOADED, OP
from warploom.asynchronous.tensors.requests import field
from warploom.core.types import B32, U32
from warploom.isa.instruction import Address, Instruction, Space
from warploom.isa.kinds import OpKind
from warploom.machine.memory.host_memory import host_memory
from warploom.machine.reference.lanes import Values
from warploom.machine.reference.operands import addresses, read, write
from warploom.machine.reference.state import Warp
from warploom.machine.reference.tensors import access_record, new_issue, tensor_fault
from warploom.program.requests.tensor_memory import (
    RequestOperand,
    TensorMemoryRequest,
    tensor_memory_request,
)
from warploom.simt.product_groups import CAPACITY, completes_late


@dataclass(frozen=True)
class _Issued:
    """A `tcgen05` that was issued: instruction `index` in the lanes `on`, which are the bits of
    `mask`; its operand rows, shape (rows, lanes), and registers."""

    index: int
    mask: int
    on: Values
    operation: TensorMemoryRequest
    rows: npt.NDArray[np.int64]
    registers: npt.NDArray[np.uint32]


def execute_tensor_memory(
    warp: Warp, index: int, instruction: Instruction, mask: int, on: Values
) -> None:
    """Executes any `tcgen05` that has an effect, in the lanes of `mask` (`on`: the same set as a
    predicate), after it was reported to the sanitizer. A load that the schedule completes late is
    executed when the warp waits for it (or CAPACITY loads are in flight); until then its registers
    hold NOT_LOADED."""
    operation, run = tensor_memory_request(instruction), warp.run
    rows = np.zeros((TensorMemoryOperands.WORDS // LANES, warp.size), np.int64)
    for row_input in operation.inputs:
        rows[row_input[0] // LANES] = _input(warp, row_input)
    registers = np.zeros((MOST_REGISTERS, warp.size), np.uint32)
    loads = field(operation.request, OP) == LOAD
    for number, register in enumerate(() if loads else operation.registers):
        registers[number] = read(warp, register, U32)
    issued = _Issued(index, mask, on, operation, rows, registers)
    if run.sanitizer is not None and mask:
        run.sanitizer.tensor_memory(warp, index, _new_issue(warp, issued))
    if not loads or not completes_late(run.plan, warp.block.number, warp.number):
        _issue_tensor_memory(warp, issued)
        return
    # The list is full: complete all loads early, which a schedule is free to do.
    if len(warp.in_flight) == CAPACITY:
        _complete_loads(warp)
    warp.in_flight.append(issued)
    registers[:] = NOT_LOADED
    _write(warp, issued)


def wait(warp: Warp, instruction: Instruction) -> None:
    """Completes the loads (`tcgen05.wait::ld`) or stores (`::st`) that an instruction waits for;
    nothing for other instructions."""
    if instruction.operation.kind is OpKind.TENSOR_WAIT_LOADS:
        _complete_loads(warp)
    elif instruction.operation.kind is OpKind.TENSOR_WAIT_STORES:
        plan, queue = warp.run.plan.words, warp.run.queue
        wait_stores(host_memory(), new_issue(warp, first_lane=0).words, plan, queue)


def _complete_loads(warp: Warp) -> None:
    """Completes all loads in flight, in the order of their issue."""
    while warp.in_flight:
        _issue_tensor_memory(warp, warp.in_flight.popleft())


def _issue_tensor_memory(warp: Warp, issued: _Issued) -> None:
    """Has the compiled helper `issue_tensor_memory` perform or queue an instruction of tensor
    memory and count its shared accesses, then writes the registers of a load. Raises the fault that
    the helper records in the issue; lower lanes may have taken effect then."""
    run, index, issue = warp.run, issued.index, _new_issue(warp, issued)
    arrays = issued.registers.reshape(-1), access_record(warp, index, Space.SHARED)
    with np.errstate(all="ignore"):
        failed = issue_tensor_memory(
            host_memory(), issue.words, *arrays, run.plan.words, run.queue, index
        )
    if failed:
        raise tensor_fault(warp, index, first_lane=0, issue=issue)
    if field(issued.operation.request, OP) == LOAD:
        _write(warp, issued)


def _new_issue(warp: Warp, issued: _Issued) -> WarpIssue:
    """Returns the words by which the helpers read an instruction, its operands and its lanes."""
    issue = new_issue(warp, 0, issued.mask, issued.rows)
    issue.request = issued.operation.request
    return issue


def _write(warp: Warp, issued: _Issued) -> None:
    """Writes the values `issued.registers` to the registers of a load, in its lanes."""
    for number, register in enumerate(issued.operation.registers):
        write(warp, register, issued.registers[number], B32, issued.on)


def _input(warp: Warp, row_input: RequestOperand) -> Values:
    """Returns an operand's words by lane: addresses, or a register's values, zero-extended
    (`row_input`: offset, operand, and type, which is None for an address)."""
    _, operand, type = row_input
    if type is None:
        assert isinstance(operand, Address)
        return np.array(addresses(warp, operand), np.uint64).view(np.int64)
    return np.asarray(read(warp, operand, type)).astype(np.uint64).view(np.int64)
