"""Executes texture and surface instructions on the reference machine: passes operand rows to
`texture.requests`, and writes the result rows to registers."""

from __future__ import annotations

import numpy as np

from warploom.core.types import PRED, U64
from warploom.cost.fields import CostRecord
from warploom.isa.instruction import Address, Instruction, Operand, Space, Symbol
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.reference.lane_access import LANES
from warploom.machine.reference.lanes import Values, resized
from warploom.machine.reference.operands import addresses, read, write
from warploom.machine.reference.state import Warp
from warploom.program.requests.texture import texel_request
from warploom.simt.lane_counts import ALL_LANES
from warploom.texture.descriptors import NO_PATH, TexelIssue, TexelOperands
from warploom.texture.requests import serve_texels


def texels(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Executes any instruction of textures and surfaces in the lanes of `mask` (`on`: the same set
    as a predicate), 32 lanes at a time. Counts it in its access record and the simulated caches,
    and writes its results to registers; a residency predicate is always true. Raises the fault that
    `serve_texels` records in the issue."""
    request, run = texel_request(instruction), warp.run
    operand_rows = np.zeros((TexelOperands.WORDS // LANES, warp.size), np.uint64)
    operand_rows[TexelOperands.handle // LANES] = _handles(warp, request.handle)
    if request.sampler is not None:
        operand_rows[TexelOperands.sampler // LANES] = _handles(warp, request.sampler)
    for offset, operand, type in request.inputs:
        operand_rows[offset // LANES] = resized(read(warp, operand, type), 64)
    space = next(
        (space for space in (Space.TEXTURE, Space.SURFACE) if (index, space) in run.record_numbers),
        None,
    )
    counts, path = np.zeros(CostRecord.WORDS, np.int64), NO_PATH
    if space is not None:
        counts = run.tally.records[run.record_numbers[index, space]]
        rule_path = run.rules.path(
            space.value, run.tally.access_records[run.record_numbers[index, space]].op
        )
        path = NO_PATH if rule_path is None else rule_path
    issue = TexelIssue(np.zeros(TexelIssue.WORDS, np.int64), 0)
    issue.request, issue.path, issue.block = request.request, path, warp.block.number
    for first_lane in range(0, warp.size, LANES):
        lanes = operand_rows[:, first_lane : first_lane + LANES].reshape(-1)
        issue.mask = mask >> first_lane & ALL_LANES
        if run.sanitizer is not None and issue.mask:
            run.sanitizer.texels(warp, index, lanes, issue)
        tables = (run.memory.textures.table().words, run.memory.bytes, lanes, issue.words, counts)
        with np.errstate(all="ignore"):
            failed = serve_texels(*tables, run.caches, run.plan.words)
        if failed:
            issue.fault_lane += first_lane
            raise _fault(warp, index, space or Space.TEXTURE, issue)
        operand_rows[:, first_lane : first_lane + LANES] = lanes.reshape(-1, LANES)
    for row, (target, type) in enumerate(request.results, TexelOperands.result // LANES):
        value = operand_rows[row] != 0 if type == PRED else resized(operand_rows[row], type.bits)
        write(warp, target, value, type, on)
    if request.resident is not None:
        write(warp, request.resident, np.ones(warp.size, np.bool_), PRED, on)


def _handles(warp: Warp, operand: Operand) -> Values:
    """Returns, by lane, the handles that an operand names: the value of a register or of a kernel
    parameter, or the address of another variable, in which the handle is stored."""
    if isinstance(operand, Address):
        if isinstance(operand.base, Symbol):
            location = warp.run.program.slots[operand.base.name]
            if location.space is Space.PARAM:
                start = location.offset + operand.base.offset + operand.offset
                parameter_bytes = warp.run.launch.parameters[start : start + 8]
                return np.full(warp.size, int.from_bytes(parameter_bytes, "little"), np.uint64)
        return np.array(addresses(warp, operand), np.uint64)
    return read(warp, operand, U64)


def _fault(warp: Warp, index: int, space: Space, issue: TexelIssue) -> Exception:
    """Returns the error of the fault of instruction `index` that an issue records."""
    position = (index, warp.block.number, warp.number, issue.fault_lane)
    address, size = issue.fault_address, issue.fault_size
    fault = Fault(FaultKind(issue.fault_kind), *position, address, size, space)
    return fault_error(fault, warp.run.program, warp.run.launch, None)
