"""Loads, stores and atomics: where lanes reach, what that may do wrong, what it costs.

Every lane is checked before any takes effect; then lanes go one by one in rising order, so of
several stores to one address the highest lane's lasts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from warploom.core.errors import Allocation
from warploom.core.types import ScalarType
from warploom.cost.atomics import count_passes, lane_order
from warploom.cost.caches import count_cached
from warploom.cost.costliest_access import keep_example
from warploom.cost.device_rules import RULES
from warploom.cost.fields import EXAMPLE_COST, EXAMPLE_MASK, TRANSACTIONS
from warploom.cost.writes import lasting
from warploom.machine.compiled.caches import local_address
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.launch import shared_stride
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lanes import Values, collect, lanes_of
from warploom.machine.reference.operands import WINDOWS, addresses, read, write
from warploom.machine.reference.preconditions import check_word
from warploom.machine.reference.state import Access, Bytes, Wanted, Warp, Words
from warploom.program.accesses import accesses, route_of
from warploom.program.accesses import spaces_of as accessible_spaces
from warploom.program.effects.clusters import accesses_cluster, maps_addresses
from warploom.program.effects.tensor_waits import wait_request
from warploom.ptx.ir import Address, Instruction, Operand, Space, Symbol, Vector
from warploom.simt.address_windows import BLOCK_BITS, WINDOW_SIZE
from warploom.simt.clusters import NO_SUCH_BLOCK, cluster_offset, live_blocks
from warploom.simt.lane_counts import Addresses
from warploom.simt.schedule_layout import (
    CHANGES,
)

LANES = 32
"""What memory serves at once (CUDA C++ Programming Guide, "Compute Capabilities")."""


class Store(Protocol):
    """Bytes that can be reached by address."""

    def read(self, address: int, size: int) -> bytes: ...
    def write(self, address: int, data: bytes) -> None: ...
    def nearest(self, address: int) -> Allocation | None: ...
    def find(self, address: int) -> Allocation | None: ...
    def is_constant(self, address: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class Stretch:
    """Shared memory, or one thread's local memory or parameters: bytes from address 0 on."""

    data: Bytes
    name: str

    def read(self, address: int, size: int) -> bytes:
        return self.data[address : address + size].tobytes()

    def write(self, address: int, data: bytes) -> None:
        self.data[address : address + len(data)] = np.frombuffer(data, np.uint8)

    def nearest(self, address: int) -> Allocation:
        return Allocation(0, len(self.data), self.name)

    def find(self, address: int) -> Allocation | None:
        return self.nearest(address) if address < len(self.data) else None

    def is_constant(self, address: int) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Request:
    """Describes an access by instruction `index`: `op` (load, store, atomic), `size` bytes a lane.

    `framed` says that the addresses are those of the parameters of a call.
    """

    index: int
    space: Space
    op: str
    size: int
    framed: bool = False


@dataclass(frozen=True, slots=True)
class LaneAccess:
    """One lane's access: the space that it falls into, and the address there."""

    lane: int
    space: Space
    address: int
    store: Store


def load(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`ld` and `ldu`."""
    destination, address = instruction.operands[:2]
    type = instruction.operation.modifiers.scalar()
    elements = elements_of(destination)
    request = _request(warp, index, instruction, address, type.bytes * len(elements))
    data = gather(warp, request, _where(warp, address), mask)
    for place, element in enumerate(elements):
        write(warp, element, part(data, place, type), type, on)


def store(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`st`."""
    address, source = instruction.operands[:2]
    type = instruction.operation.modifiers.scalar()
    data = joined([read(warp, element, type) for element in elements_of(source)], type)
    request = _request(warp, index, instruction, address, data.shape[1])
    scatter(warp, request, _where(warp, address), data, mask)


def atomic(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`atom` and `red`: each lane reads, combines and writes in its turn, element by element."""
    operation = instruction.operation
    type = operation.modifiers.scalar()
    count = len(operation.spec.destinations)
    address, *sources = instruction.operands[count:]
    values = sources[: operation.value_count]
    given = [[read(warp, e, type) for e in elements_of(source)] for source in values]
    parts = len(given[0]) if given else 1
    olds = [[0] * warp.size for _ in range(parts)]
    need = operation.spec.memory_precondition
    request = _request(warp, index, instruction, address, type.bytes * parts)
    operands = b"".join(value.tobytes() for elements in given for value in elements)
    for lane_access in _in_turn(
        warp, lane_accesses(warp, request, _where(warp, address), mask, operands)
    ):
        lane, term = lane_access.lane, operation.combine(len(given), lane_access.space.value)
        for place in range(parts):
            at = lane_access.address + place * type.bytes
            old = int.from_bytes(lane_access.store.read(at, type.bytes), "little")
            check_word(warp, index, lane, need, (lane_access.space, at, old))
            each = [collect([old], type), *(o[place][lane : lane + 1] for o in given)]
            new = int(evaluate(term, each, 1)[0])
            lane_access.store.write(at, new.to_bytes(type.bytes, "little"))
            olds[place][lane] = old
            warp.run.plan[CHANGES] += new != old
    if count:
        answer = operation.answer(len(given))
        for place, element in enumerate(elements_of(instruction.operands[0])):
            each = [collect(olds[place], type), *(o[place] for o in given)]
            value = evaluate(answer, each, warp.size)
            if wait_request(instruction) is not None:
                warp.failed_wait |= bool(np.any(on & ~value))
            write(warp, element, value, answer.type, on)


def elements_of(operand: Operand) -> tuple[Operand, ...]:
    """Return the elements of a vector operand, or the operand itself."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


def part(data: Bytes, place: int, type: ScalarType) -> Values:
    """Element `place` of rows of bytes, a row for each lane."""
    cut = data[:, place * type.bytes : (place + 1) * type.bytes]
    return collect((int.from_bytes(row.tobytes(), "little") for row in cut), type)


def joined(values: Sequence[Values], type: ScalarType) -> Bytes:
    """Rows of bytes, one for each lane, from elements."""
    lanes = zip(*(v.tolist() for v in values), strict=True)
    rows = [b"".join(each.to_bytes(type.bytes, "little") for each in lane) for lane in lanes]
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)


def gather(warp: Warp, request: Request, where: Sequence[int], mask: int) -> Bytes:
    """Return the bytes that each lane of `mask` loads, a row for each lane; the others have
    zeros."""
    data = np.zeros((warp.size, request.size), np.uint8)
    for lane_access in lane_accesses(warp, request, where, mask):
        found = lane_access.store.read(lane_access.address, request.size)
        data[lane_access.lane] = np.frombuffer(found, np.uint8)
    return data


def scatter(warp: Warp, request: Request, where: Sequence[int], data: Bytes, mask: int) -> None:
    """Store each lane's row of bytes."""
    for lane_access in _lasting(warp, lane_accesses(warp, request, where, mask, data.tobytes())):
        lane_access.store.write(lane_access.address, data[lane_access.lane].tobytes())
    warp.run.plan[CHANGES] += mask != 0


def _in_turn(warp: Warp, found: Sequence[LaneAccess]) -> list[LaneAccess]:
    """Return the lanes of an atomic in the order in which they have their turn, space by space."""
    turns: list[LaneAccess] = []
    for space in (Space.GLOBAL, Space.SHARED):
        for request in _requests(warp, found, space):
            order = lane_order(request.where, request.mask, warp.run.plan, warp.block.number)
            lanes = [(order + turn * (order >> 5)) % LANES for turn in range(LANES)]
            turns += [request.lanes[lane] for lane in lanes if lane in request.lanes]
    return turns


def _lasting(warp: Warp, found: Sequence[LaneAccess]) -> list[LaneAccess]:
    """Return the stores that last, of those to one address of a space that lanes share."""
    kept = [one for one in found if one.space not in (Space.GLOBAL, Space.SHARED)]
    for space in (Space.GLOBAL, Space.SHARED):
        for request in _requests(warp, found, space):
            lasts = lasting(request.where, request.mask, warp.run.plan, warp.block.number)
            kept += [one for lane, one in request.lanes.items() if lasts >> lane & 1]
    return kept


@dataclass(frozen=True, slots=True)
class Half:
    """Holds the accesses that memory serves at once: of up to 32 lanes, by number among these.

    `where` are the addresses of all of them, `mask` says which take part; `first` is the warp's
    lane that is lane 0 here.
    """

    first: int
    lanes: dict[int, LaneAccess]
    where: Addresses
    mask: int


def _requests(warp: Warp, found: Sequence[LaneAccess], space: Space) -> Iterator[Half]:
    """Yield the requests that the lanes of a warp make of a space: one, or for each 32 of 64 lanes
    one, the lower first."""
    inside = [one for one in found if one.space is space]
    for first in range(0, warp.size, LANES):
        lanes = {one.lane - first: one for one in inside if one.lane // LANES * LANES == first}
        if lanes:
            where = np.zeros(LANES, np.uint64)
            for lane, one in lanes.items():
                local = space is Space.LOCAL
                where[lane] = _physical(one, warp.size) if local else one.address
            yield Half(first, lanes, where, sum(1 << lane for lane in lanes))


def _request(
    warp: Warp, index: int, instruction: Instruction, address: Operand, size: int
) -> Request:
    assert isinstance(address, Address)
    ((space, op),) = accesses(instruction)
    framed = isinstance(address.base, Symbol) and warp.run.program.slots[address.base.name].frame
    return Request(index, space, op, size, framed)


def _where(warp: Warp, address: Operand) -> list[int]:
    assert isinstance(address, Address)
    return addresses(warp, address)


def lane_accesses(
    warp: Warp, request: Request, where: Sequence[int], mask: int, data: bytes = b""
) -> list[LaneAccess]:
    """Return the accesses of the lanes of `mask`, lane l at `where[l]`, checked and counted; `data`
    are the bytes that they bring along."""
    found: list[LaneAccess] = []
    for lane in lanes_of(mask):
        inside, offset = _locate(request.space, where[lane])
        store = _store(warp, inside, lane, request.framed)
        found.append(LaneAccess(lane, inside, offset, store))
    if warp.run.sanitizer is not None and not request.framed:
        found = _sanitized(warp, request, found, data)
    if _is_in_cluster(warp, request):
        found = [
            _in_cluster(warp, request, one) if one.space is Space.SHARED else one for one in found
        ]
    for one in found:
        _check(warp, request, one)
    for each in accessible_spaces(request.space):
        inside = [one for one in found if one.space is each]
        _count(warp, request, each, inside)
        _publish(warp, request, each, inside)
    return found


def _sanitized(
    warp: Warp, request: Request, found: Sequence[LaneAccess], data: bytes
) -> list[LaneAccess]:
    """Return the accesses without those that the sanitizer keeps from memory."""
    sanitizer, kept = warp.run.sanitizer, list[LaneAccess]()
    assert sanitizer is not None
    for space in accessible_spaces(request.space):
        inside = [one for one in found if one.space is space]
        if inside and space is not Space.PARAM:
            addresses = {one.lane: one.address for one in inside}
            wanted = Wanted(request.index, space, request.op, request.size, addresses, data)
            lanes = sanitizer.admitted(warp, wanted)
            inside = [one for one in inside if lanes >> one.lane & 1]
        kept += inside
    return kept


def _publish(warp: Warp, request: Request, space: Space, found: Sequence[LaneAccess]) -> None:
    """Tell the listener and the observer, if there are such, of lanes that reach into a space."""
    listener, observer = warp.run.listener, warp.run.observer
    if (listener is None and observer is None) or not found:
        return
    lanes = tuple(one.lane for one in found)
    where = tuple(one.address for one in found)
    data = tuple(one.store.read(one.address, request.size) for one in found)
    access = Access(request.index, space, request.op, request.size, lanes, where, data)
    if listener is not None:
        listener.accessed(warp, access)
    if observer is not None:
        observer.access(warp, access)


def _locate(space: Space, address: int) -> tuple[Space, int]:
    """Return the space that an address leads to, and the address there."""
    if space is not Space.GENERIC:
        return space, address
    for inside, start in WINDOWS.items():
        if start <= address < start + WINDOW_SIZE:
            return inside, address - start
    return Space.GLOBAL, address


def _is_in_cluster(warp: Warp, request: Request) -> bool:
    """Returns whether an access to shared memory may lead to another block's."""
    made = warp.run.program.instructions[request.index]
    run = warp.run
    return (run.launch.cluster_blocks > 1 or maps_addresses(run.program)) and accesses_cluster(made)


def _in_cluster(warp: Warp, request: Request, one: LaneAccess) -> LaneAccess:
    """Return an access to shared memory by its place in that of the cluster. Raises the fault of
    one that leads beyond a block's, or to a block that is not there."""
    run, block, address = warp.run, warp.block, one.address
    live, size = live_blocks(run.plan, run.slots), len(block.shared)
    stride = shared_stride(run.program, run.launch)
    offset = cluster_offset(address, request.size, block.rank, live, size, stride)
    if offset >= 0:
        return replace(
            one, address=offset, store=Stretch(block.cluster, "the shared memory of the cluster")
        )
    place = (request.index, block.number, warp.number, one.lane)
    if offset == NO_SUCH_BLOCK:
        rank = (address >> BLOCK_BITS) - 1
        fault = Fault(FaultKind.NO_BLOCK, *place, rank, request.size, Space.SHARED)
    else:
        within = address & ((1 << BLOCK_BITS) - 1)
        fault = Fault(FaultKind.OUT_OF_BOUNDS, *place, within, request.size, Space.SHARED)
    own = Stretch(block.shared, "the block's shared memory").nearest(0)
    raise fault_error(fault, run.program, run.launch, own)


def _store(warp: Warp, space: Space, lane: int, framed: bool) -> Store:
    if space is Space.SHARED:
        return Stretch(warp.block.shared, "the block's shared memory")
    if space is Space.LOCAL:
        return Stretch(warp.local[lane], "the thread's local memory")
    if framed:
        return Stretch(warp.frame[lane], "the parameters of the call")
    if space is Space.PARAM:
        parameters = np.frombuffer(warp.run.launch.parameters, np.uint8)
        return Stretch(parameters, "the parameters of the kernel")
    return warp.run.memory


def peek(warp: Warp, request: Request, lane: int, address: int) -> bytes:
    """Returns what one lane finds at an address, for the host: not counted, at any alignment."""
    space, offset = _locate(request.space, address)
    one = LaneAccess(lane, space, offset, _store(warp, space, lane, request.framed))
    found = one.store.find(offset)
    if found is None or offset + request.size > found.address + found.size:
        _check(warp, request, one)
    return one.store.read(offset, request.size)


def _check(warp: Warp, request: Request, one: LaneAccess) -> None:
    """Raise the fault of an access that must not be."""
    size = request.size
    found = one.store.find(one.address)
    if found is None or one.address + size > found.address + found.size:
        kind = FaultKind.OUT_OF_BOUNDS
    elif one.address % size:
        kind = FaultKind.MISALIGNED
    elif request.op != "load" and one.store.is_constant(one.address):
        kind = FaultKind.READ_ONLY
    else:
        return
    place = (request.index, warp.block.number, warp.number, one.lane)
    fault = Fault(kind, *place, one.address, size, one.space)
    nearest = one.store.nearest(one.address)
    raise fault_error(fault, warp.run.program, warp.run.launch, nearest)


def _count(warp: Warp, request: Request, space: Space, found: Sequence[LaneAccess]) -> None:
    """Count the request that some lanes make of a space; parameters are not counted, nor is the
    stack of calls."""
    if not found or space is Space.PARAM or request.index in warp.run.program.private:
        return
    row = warp.run.tally.rows_of_rules[warp.run.rows[request.index, space]]
    rules, instruction = warp.run.rules, warp.run.program.instructions[request.index]
    cost = rules.cost(space.value, request.op, route=route_of(instruction))
    writes = rules.writes(space.value) if request.op == "store" else None
    for half in _requests(warp, found, space):
        where, mask = half.where, half.mask
        before = int(row[TRANSACTIONS])
        RULES[cost](where, mask, request.size, row)
        costliest = int(row[EXAMPLE_COST])
        keep_example(where, mask, before, row)
        if row[EXAMPLE_COST] > costliest:
            row[EXAMPLE_MASK] <<= half.first
        if request.op == "atomic":
            count_passes(where, mask, request.size, row)
        if writes is not None:
            RULES[writes](where, mask, request.size, row)
        _look_up(warp, request, space, where, mask, row)


def _look_up(
    warp: Warp, request: Request, space: Space, where: Addresses, mask: int, row: Words
) -> None:
    """Count what the caches have of an access, where caches are counted."""
    run = warp.run
    route = route_of(run.program.instructions[request.index])
    path = run.rules.path(space.value, request.op, route=route)
    if path is not None:
        own = local_address(run.program, run.launch, warp.block.number, warp.number)
        offset = own if space is Space.LOCAL else 0
        block = warp.block.number
        count_cached(where, mask, request.size, row, run.caches, path, block, offset)


def _physical(one: LaneAccess, size: int) -> int:
    """Returns where a thread's local byte lies: the same word of all lanes is one stretch, of 128
    bytes for 32 lanes (CUDA C++ Programming Guide, "Local Memory")."""
    word, byte = divmod(one.address, 4)
    return (word * size + one.lane) * 4 + byte
