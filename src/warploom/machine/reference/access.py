"""Executes loads, stores and atomics of a warp on the reference machine: computes lane addresses,
checks them, and counts their cost.

All lanes are checked before any access is done. Then lanes access memory one by one in rising
order, so of several stores to one address that of the highest lane lasts (unless a policy chooses
otherwise). Costs come from the device's rules (`cost`), per request of up to 32 lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warploom.core.types import ScalarType
from warploom.cost.atomics import lane_order
from warploom.cost.writes import lasting
from warploom.isa.instruction import Address, Instruction, Operand, Space, Symbol, Vector
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lane_access import LANES, AccessRequest, LaneAccess, lane_requests
from warploom.machine.reference.lane_checks import lane_accesses
from warploom.machine.reference.lanes import Values, collect
from warploom.machine.reference.operands import addresses, read, write
from warploom.machine.reference.preconditions import check_word
from warploom.machine.reference.state import Bytes, Warp
from warploom.program.accesses import accesses
from warploom.program.effects.tensor_waits import wait_request


def load(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Executes `ld` and `ldu` in the lanes of `mask` (`on`: the same set as a predicate), and
    writes the destination registers there: 0 in lanes that a sanitizer suppresses."""
    destination, address = instruction.operands[:2]
    type = instruction.operation.modifiers.scalar()
    elements = elements_of(destination)
    request = _access_request(warp, index, instruction, address, type.bytes * len(elements))
    data = gather(warp, request, _lane_addresses(warp, address), mask)
    for index_in_vector, element in enumerate(elements):
        write(warp, element, part(data, index_in_vector, type), type, on)


def store(warp: Warp, index: int, instruction: Instruction, mask: int, _on: Values) -> None:
    """Executes `st` of registers in the lanes of `mask`: one access, in which a vector's elements
    have consecutive addresses."""
    address, source = instruction.operands[:2]
    type = instruction.operation.modifiers.scalar()
    rows = as_lane_rows([read(warp, element, type) for element in elements_of(source)], type)
    request = _access_request(warp, index, instruction, address, rows.shape[1])
    scatter(warp, request, _lane_addresses(warp, address), rows, mask)


def atomic(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Executes `atom`, `red` and operations on mbarriers in the lanes of `mask` (`on`: the same set
    as a predicate). Each lane in turn, in the order of the policy, reads, combines and writes,
    element by element, after a check of the old value, which may raise a fault. Then the result, if
    there is one, is written to the registers. A lane that a sanitizer suppresses counts as having
    read 0. Adds to `changes` the number of elements that changed. A test of an mbarrier's phase
    that fails in a lane sets `warp.failed_wait`."""
    operation = instruction.operation
    type = operation.modifiers.scalar()
    count = len(operation.spec.destinations)
    address, *sources = instruction.operands[count:]
    values = sources[: operation.value_count]
    operand_values = [[read(warp, part, type) for part in elements_of(source)] for source in values]
    parts = len(operand_values[0]) if operand_values else 1
    old_values = [[0] * warp.size for _ in range(parts)]
    precondition = operation.spec.memory_precondition
    request = _access_request(warp, index, instruction, address, type.bytes * parts)
    # For the sanitizer: all lanes' bytes of the first element, then those of the next.
    operands = b"".join(value.tobytes() for elements in operand_values for value in elements)
    for lane_access in _in_atomic_order(
        warp, lane_accesses(warp, request, _lane_addresses(warp, address), mask, operands)
    ):
        lane, term = (
            lane_access.lane,
            operation.combine(len(operand_values), lane_access.space.value),
        )
        for element_index in range(parts):
            address_of_element = lane_access.address + element_index * type.bytes
            old = int.from_bytes(lane_access.store.read(address_of_element, type.bytes), "little")
            check_word(
                warp, index, lane, precondition, (lane_access.space, address_of_element, old)
            )
            arguments = [
                collect([old], type),
                *(o[element_index][lane : lane + 1] for o in operand_values),
            ]
            new = int(evaluate(term, arguments, 1)[0])
            lane_access.store.write(address_of_element, new.to_bytes(type.bytes, "little"))
            old_values[element_index][lane] = old
            warp.run.plan.changes += new != old
    if count:
        answer = operation.answer(len(operand_values))
        for element_index, element in enumerate(elements_of(instruction.operands[0])):
            arguments = [
                collect(old_values[element_index], type),
                *(o[element_index] for o in operand_values),
            ]
            value = evaluate(answer, arguments, warp.size)
            if wait_request(instruction) is not None:
                warp.failed_wait |= bool(np.any(on & ~value))
            write(warp, element, value, answer.type, on)


def elements_of(operand: Operand) -> tuple[Operand, ...]:
    """Returns the elements of a vector operand, or a scalar operand as the only element."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


def part(data: Bytes, index: int, type: ScalarType) -> Values:
    """Returns element number `index`, of `type`, of each lane's bytes; `data` has shape (lanes,
    bytes)."""
    columns = data[:, index * type.bytes : (index + 1) * type.bytes]
    return collect((int.from_bytes(row.tobytes(), "little") for row in columns), type)


def as_lane_rows(values: Sequence[Values], type: ScalarType) -> Bytes:
    """Returns each lane's elements, one array of lanes for each, as consecutive bytes, shape
    (lanes, bytes); inverse of `part`."""
    lanes = zip(*(v.tolist() for v in values), strict=True)
    rows = [b"".join(bits.to_bytes(type.bytes, "little") for bits in lane) for lane in lanes]
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)


def gather(
    warp: Warp, request: AccessRequest, addresses_by_lane: Sequence[int], mask: int
) -> Bytes:
    """Returns the bytes that each lane of `mask` loads, after checks and counting
    (`lane_accesses`), shape (lanes, size); zeros for other lanes and those that a sanitizer
    suppresses."""
    data = np.zeros((warp.size, request.size), np.uint8)
    for lane_access in lane_accesses(warp, request, addresses_by_lane, mask):
        loaded = lane_access.store.read(lane_access.address, request.size)
        data[lane_access.lane] = np.frombuffer(loaded, np.uint8)
    return data


def scatter(
    warp: Warp, request: AccessRequest, addresses_by_lane: Sequence[int], data: Bytes, mask: int
) -> None:
    """Stores the bytes `data[lane]` of each lane of `mask` at its address, after checks and
    counting (`lane_accesses`); if lanes store to one address, the value of one lasts
    (`_surviving_stores`). Adds 1 to `changes`, by which deadlocks are found, unless `mask` is 0."""
    for lane_access in _surviving_stores(
        warp, lane_accesses(warp, request, addresses_by_lane, mask, data.tobytes())
    ):
        lane_access.store.write(lane_access.address, data[lane_access.lane].tobytes())
    warp.run.plan.changes += mask != 0


def _in_atomic_order(warp: Warp, accesses_by_lane: Sequence[LaneAccess]) -> list[LaneAccess]:
    """Returns the accesses of an atomic in the order in which lanes perform them: global memory
    first, then shared memory, in each the order that the schedule's policy gives
    (`cost.atomics.lane_order`)."""
    ordered: list[LaneAccess] = []
    for space in (Space.GLOBAL, Space.SHARED):
        for request in lane_requests(warp, accesses_by_lane, space):
            order = lane_order(
                request.addresses_by_lane, request.mask, warp.run.plan, warp.block.number
            )
            # The order packs the first lane (5 bits) and, above it, the distance to the next.
            first_lane, distance = order & (LANES - 1), order >> 5
            lanes = [(first_lane + step * distance) % LANES for step in range(LANES)]
            ordered += [request.lanes[lane] for lane in lanes if lane in request.lanes]
    return ordered


def _surviving_stores(warp: Warp, accesses_of_warp: Sequence[LaneAccess]) -> list[LaneAccess]:
    """Returns the stores that are performed if several lanes store to one address of a space that
    lanes share: by default all, as the highest lane stores last; under the policies that choose
    another lane (`lasting`) only that one's. In local memory and parameters all are."""
    # Local memory and parameters are private to a lane, so their stores never conflict.
    surviving = [
        lane_access
        for lane_access in accesses_of_warp
        if lane_access.space not in (Space.GLOBAL, Space.SHARED)
    ]
    for space in (Space.GLOBAL, Space.SHARED):
        for request in lane_requests(warp, accesses_of_warp, space):
            surviving_mask = lasting(
                request.addresses_by_lane, request.mask, warp.run.plan, warp.block.number
            )
            surviving += [
                lane_access
                for lane, lane_access in request.lanes.items()
                if surviving_mask >> lane & 1
            ]
    return surviving


def _access_request(
    warp: Warp, index: int, instruction: Instruction, address: Operand, size: int
) -> AccessRequest:
    """Returns the description of the access of instruction number `index`, to one space (generic
    memory counts as one), of `size` bytes per lane: its space, kind of access ("load", "store" or
    "atomic") and size, but neither lanes nor their addresses. `of_call_parameters` is true if
    `address` begins with a `.param` variable of a call (`VariableSlot.frame`). Asserts that
    `address` is an Address operand, and that the instruction makes one access."""
    assert isinstance(address, Address)
    ((space, op),) = accesses(instruction)
    slots, base = warp.run.program.slots, address.base
    of_call_parameters = isinstance(base, Symbol) and slots[base.name].frame
    return AccessRequest(index, space, op, size, of_call_parameters)


def _lane_addresses(warp: Warp, address: Operand) -> list[int]:
    """Returns the address of each lane for an address operand."""
    assert isinstance(address, Address)
    return addresses(warp, address)
