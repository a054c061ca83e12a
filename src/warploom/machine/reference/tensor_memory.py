"""`tcgen05`: operands in rows, done by `asynchronous.tensor_memory`.

Loads and stores may complete late, where their warp waits for them (`simt.product_groups`): a load
reads tensor memory then, and its registers hold nothing of use until then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.asynchronous.issue.late_stores import wait_stores
from warploom.asynchronous.issue.tensor_memory import issue_tensor_memory
from warploom.asynchronous.tensor_memory.layout import (
    DATA_ROWS,
    LOAD,
    MOST_REGISTERS,
    NOT_LOADED,
    OP,
    part,
)
from warploom.core.types import B32, U32
from warploom.isa.ops.tcgen05 import waits_for_loads, waits_for_stores
from warploom.machine.memory.host_memory import host_memory
from warploom.machine.reference.lanes import Values
from warploom.machine.reference.operands import addresses, read, write
from warploom.machine.reference.state import TensorWork, Warp
from warploom.machine.reference.tensors import access_row, place, tensor_fault
from warploom.program.requests.tensor_memory import (
    RequestOperand,
    TensorMemoryRequest,
    tensor_memory_request,
    work_words,
)
from warploom.ptx.ir import Address, Instruction, Space
from warploom.simt.product_groups import CAPACITY, completes_late


@dataclass(frozen=True)
class _Issued:
    """A `tcgen05` as it was issued: instruction `index` in the lanes `on`, as bits in `mask`; rows
    of operands, and registers."""

    index: int
    mask: int
    on: Values
    asked: TensorMemoryRequest
    rows: npt.NDArray[np.int64]
    registers: npt.NDArray[np.uint32]


def execute(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Execute any `tcgen05` that does something."""
    asked, run = tensor_memory_request(instruction), warp.run
    data = np.zeros((DATA_ROWS, warp.size), np.int64)
    for given in asked.inputs:
        data[given[0]] = _input(warp, given)
    registers = np.zeros((MOST_REGISTERS, warp.size), np.uint32)
    loads = part(asked.request, OP) == LOAD
    for number, register in enumerate(() if loads else asked.registers):
        registers[number] = read(warp, register, U32)
    if run.sanitizer is not None and mask:
        work = TensorWork(asked.request, data.reshape(-1), place(warp, 0))
        run.sanitizer.tensor_memory(warp, index, mask, work)
    issued = _Issued(index, mask, on, asked, data, registers)
    if not loads or not completes_late(run.plan, warp.block.number, warp.number):
        _issue(warp, issued)
        return
    if len(warp.in_flight) == CAPACITY:
        _complete_loads(warp)
    warp.in_flight.append(issued)
    registers[:] = NOT_LOADED
    _write(warp, issued)


def wait(warp: Warp, instruction: Instruction) -> None:
    """Complete what any instruction waits for."""
    if waits_for_loads(instruction.operation):
        _complete_loads(warp)
    elif waits_for_stores(instruction.operation):
        wait_stores(host_memory(), place(warp, 0), warp.run.plan, warp.run.queue)


def _complete_loads(warp: Warp) -> None:
    while warp.in_flight:
        _issue(warp, warp.in_flight.popleft())


def _issue(warp: Warp, issued: _Issued) -> None:
    """Do what an instruction wants, and write what it loads."""
    run, index = warp.run, issued.index
    scratch, work = place(warp, 0), np.zeros(work_words(run.program.has_tensor_memory), np.int64)
    values, row = issued.registers.reshape(-1), access_row(warp, index, Space.SHARED)
    with np.errstate(all="ignore"):
        failed = issue_tensor_memory(
            host_memory(),
            issued.rows.reshape(-1),
            scratch,
            values,
            row,
            run.plan,
            run.queue,
            work,
            issued.mask,
            issued.asked.request,
            index,
        )
    if failed:
        raise tensor_fault(warp, index, 0, scratch.tolist())
    if part(issued.asked.request, OP) == LOAD:
        _write(warp, issued)


def _write(warp: Warp, issued: _Issued) -> None:
    """Write the registers of a load."""
    for number, register in enumerate(issued.asked.registers):
        write(warp, register, issued.registers[number], B32, issued.on)


def _input(warp: Warp, given: RequestOperand) -> Values:
    """Return the words of a row."""
    _, operand, type = given
    if type is None:
        assert isinstance(operand, Address)
        return np.array(addresses(warp, operand), np.uint64).view(np.int64)
    return np.asarray(read(warp, operand, type)).astype(np.uint64).view(np.int64)
