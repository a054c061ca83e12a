"""Textures and surfaces: operands in rows, the rules' own answer, results out of its rows."""

from __future__ import annotations

import numpy as np

from warploom.core.types import PRED, U64
from warploom.cost.fields import RECORD_WIDTH
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.reference.access import LANES
from warploom.machine.reference.lanes import Values, resized
from warploom.machine.reference.operands import addresses, read, write
from warploom.machine.reference.state import TexelWork, Warp
from warploom.program.requests.texture import texel_request
from warploom.ptx.ir import Address, Instruction, Operand, Space, Symbol
from warploom.simt.lane_counts import ALL_LANES
from warploom.texture.descriptors import (
    DATA_ROWS,
    FAULT_ADDRESS,
    FAULT_KIND,
    FAULT_LANE,
    FAULT_SIZE,
    HANDLE_ROW,
    RESULT_ROW,
    SAMPLER_ROW,
    SCRATCH_WORDS,
)
from warploom.texture.requests import NO_PATH, serve_texels


def texels(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Execute any instruction of textures and surfaces."""
    asked, run = texel_request(instruction), warp.run
    data = np.zeros((DATA_ROWS, warp.size), np.uint64)
    data[HANDLE_ROW] = _handles(warp, asked.handle)
    if asked.sampler is not None:
        data[SAMPLER_ROW] = _handles(warp, asked.sampler)
    for row, operand, type in asked.inputs:
        data[row] = resized(read(warp, operand, type), 64)
    space = next((s for s in (Space.TEXTURE, Space.SURFACE) if (index, s) in run.rows), None)
    counts, path = np.zeros(RECORD_WIDTH, np.int64), NO_PATH
    if space is not None:
        counts = run.tally.rows_of_rules[run.rows[index, space]]
        found = run.rules.path(space.value, run.tally.rows[run.rows[index, space]].op)
        path = NO_PATH if found is None else found
    scratch = np.zeros(SCRATCH_WORDS, np.int64)
    place = (path, warp.block.number)
    for first in range(0, warp.size, LANES):
        lanes, some = data[:, first : first + LANES].reshape(-1), mask >> first & ALL_LANES
        if run.sanitizer is not None and some:
            run.sanitizer.texels(warp, index, some, TexelWork(asked.request, lanes, scratch))
        tables = (run.memory.textures.table().words, run.memory.bytes, lanes, scratch, counts)
        with np.errstate(all="ignore"):
            failed = serve_texels(*tables, run.caches, run.plan, some, asked.request, *place)
        if failed:
            scratch[FAULT_LANE] += first
            raise _fault(warp, index, space or Space.TEXTURE, scratch.tolist())
        data[:, first : first + LANES] = lanes.reshape(DATA_ROWS, LANES)
    for row, (target, type) in enumerate(asked.results, RESULT_ROW):
        value = data[row] != 0 if type == PRED else resized(data[row], type.bits)
        write(warp, target, value, type, on)
    if asked.resident is not None:
        write(warp, asked.resident, np.ones(warp.size, np.bool_), PRED, on)


def _handles(warp: Warp, operand: Operand) -> Values:
    """Returns what an operand names: a value, the address of a variable, or a parameter."""
    if isinstance(operand, Address):
        if isinstance(operand.base, Symbol):
            place = warp.run.program.slots[operand.base.name]
            if place.space is Space.PARAM:
                start = place.offset + operand.base.offset + operand.offset
                given = warp.run.launch.parameters[start : start + 8]
                return np.full(warp.size, int.from_bytes(given, "little"), np.uint64)
        return np.array(addresses(warp, operand), np.uint64)
    return read(warp, operand, U64)


def _fault(warp: Warp, index: int, space: Space, scratch: list[int]) -> Exception:
    kind, lane = FaultKind(scratch[FAULT_KIND]), scratch[FAULT_LANE]
    place = (index, warp.block.number, warp.number, lane)
    fault = Fault(kind, *place, scratch[FAULT_ADDRESS], scratch[FAULT_SIZE], space)
    return fault_error(fault, warp.run.program, warp.run.launch, None)
