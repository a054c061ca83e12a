"""`tcgen05`: operands in rows, done by `rules.tensor_memory`."""

from __future__ import annotations

import numpy as np

from warploom.analysis.tensor_memory import Input, memory_request, work_words
from warploom.core.types import B32, U32
from warploom.machine.host_memory import host_memory
from warploom.machine.reference.lanes import Values
from warploom.machine.reference.operands import addresses, read, write
from warploom.machine.reference.state import TensorWork, Warp
from warploom.machine.reference.tensors import access_row, place, tensor_fault
from warploom.ptx.ir import Address, Instruction, Space
from warploom.rules.tensor_memory.issue import issue_tensor_memory
from warploom.rules.tensor_memory.words import DATA_ROWS, LOAD, MOST_REGISTERS, OP, part


def execute(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Execute any `tcgen05` that does something."""
    asked, run = memory_request(instruction), warp.run
    data = np.zeros((DATA_ROWS, warp.size), np.int64)
    for given in asked.inputs:
        data[given[0]] = _input(warp, given)
    registers = np.zeros((MOST_REGISTERS, warp.size), np.uint32)
    loads = part(asked.request, OP) == LOAD
    for number, register in enumerate(() if loads else asked.registers):
        registers[number] = read(warp, register, U32)
    scratch, work = place(warp, 0), np.zeros(work_words(run.program.has_tensor_memory), np.int64)
    if run.sanitizer is not None and mask:
        given = TensorWork(asked.request, data.reshape(-1), scratch)
        run.sanitizer.tensor_memory(warp, index, mask, given)
    values, row = registers.reshape(-1), access_row(warp, index, Space.SHARED)
    with np.errstate(all="ignore"):
        failed = issue_tensor_memory(
            host_memory(),
            data.reshape(-1),
            scratch,
            values,
            row,
            run.plan,
            run.queue,
            work,
            mask,
            asked.request,
            index,
        )
    if failed:
        raise tensor_fault(warp, index, 0, scratch.tolist())
    for number, register in enumerate(asked.registers if loads else ()):
        write(warp, register, registers[number], B32, on)


def _input(warp: Warp, given: Input) -> Values:
    """Return the words of a row."""
    _, operand, type = given
    if type is None:
        assert isinstance(operand, Address)
        return np.array(addresses(warp, operand), np.uint64).view(np.int64)
    return np.asarray(read(warp, operand, type)).astype(np.uint64).view(np.int64)
