"""Executes loads, stores and atomics of a warp on the reference machine: computes lane addresses,
checks them, and counts their cost.

All lanes are checked before any access takes effect. Then lanes access memory one by one in rising
order, so of several stores to one address that of the highest lane lasts (unless a policy chooses
otherwise). Costs come from the device's rules (`cost`), per request of up to 32 lanes.
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
from warploom.isa.kinds import Needs
from warploom.machine.compiled.caches import local_address
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.machine.launch import shared_stride
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lanes import Values, collect, lanes_of
from warploom.machine.reference.operands import WINDOWS, addresses, read, write
from warploom.machine.reference.preconditions import check_word
from warploom.machine.reference.state import AttemptedAccess, Bytes, Warp, WarpAccess, Words
from warploom.program.accesses import accesses, route_of
from warploom.program.accesses import spaces_of as accessible_spaces
from warploom.program.effects.clusters import accesses_cluster
from warploom.program.effects.tensor_waits import wait_request
from warploom.ptx.ir import Address, Instruction, Operand, Space, Symbol, Vector
from warploom.simt.address_windows import BLOCK_BITS, WINDOW_SIZE
from warploom.simt.clusters import NO_SUCH_BLOCK, cluster_offset, live_blocks
from warploom.simt.lane_counts import Addresses
from warploom.simt.schedule_layout import (
    CHANGES,
)

LANES = 32
"""The most lanes whose accesses memory serves in one request (CUDA C++ Programming Guide, "Compute
Capabilities")."""


class ByteStore(Protocol):
    """Bytes that are accessed by address: device memory, or a `ByteArea`. `find` returns the
    allocation that contains an address, None if none does; `nearest` the closest, for messages."""

    def read(self, address: int, size: int) -> bytes: ...
    def write(self, address: int, data: bytes) -> None: ...
    def nearest(self, address: int) -> Allocation | None: ...
    def find(self, address: int) -> Allocation | None: ...
    def is_constant(self, address: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class ByteArea:
    """Shared memory, or one thread's local memory or parameters: bytes that start at address 0 and
    are one writable allocation; `name` stands for it in messages."""

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
class AccessRequest:
    """Describes a warp's access by instruction `index`: `op` (load, store, atomic) of `size` bytes
    per lane in `space`, which may be generic. `framed` is true if the addresses are those of the
    parameters of a call, which are in the thread's frame."""

    index: int
    space: Space
    op: str
    size: int
    framed: bool = False


@dataclass(frozen=True, slots=True)
class LaneAccess:
    """One lane's access: the space of its address (not generic), the address in that space, and the
    memory that it addresses."""

    lane: int
    space: Space
    address: int
    store: ByteStore


def load(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Executes `ld` and `ldu` in the lanes of `mask`; `on` is the same set as a predicate."""
    destination, address = instruction.operands[:2]
    type = instruction.operation.modifiers.scalar()
    elements = elements_of(destination)
    request = _access_request(warp, index, instruction, address, type.bytes * len(elements))
    data = gather(warp, request, _lane_addresses(warp, address), mask)
    for index_in_vector, element in enumerate(elements):
        write(warp, element, part(data, index_in_vector, type), type, on)


def store(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Executes `st` of registers in the lanes of `mask`; a vector's elements are stored one after
    the other."""
    address, source = instruction.operands[:2]
    type = instruction.operation.modifiers.scalar()
    rows = as_lane_rows([read(warp, element, type) for element in elements_of(source)], type)
    request = _access_request(warp, index, instruction, address, rows.shape[1])
    scatter(warp, request, _lane_addresses(warp, address), rows, mask)


def atomic(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Executes `atom`, `red` and operations on mbarriers in the lanes of `mask`: each lane in turn,
    in the order of the policy, reads, combines and writes, element by element, after a check of the
    old value; then the result, if there is one, is written to the registers. A test of an
    mbarrier's phase that fails in a lane sets `warp.failed_wait`."""
    operation = instruction.operation
    type = operation.modifiers.scalar()
    count = len(operation.spec.destinations)
    address, *sources = instruction.operands[count:]
    values = sources[: operation.value_count]
    operand_values = [[read(warp, e, type) for e in elements_of(source)] for source in values]
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
            warp.run.plan[CHANGES] += new != old
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
    counting (`lane_accesses`); if lanes store to one address, only the value that lasts. Adds 1 to
    CHANGES, by which deadlocks are found, unless `mask` is 0."""
    for lane_access in _surviving_stores(
        warp, lane_accesses(warp, request, addresses_by_lane, mask, data.tobytes())
    ):
        lane_access.store.write(lane_access.address, data[lane_access.lane].tobytes())
    warp.run.plan[CHANGES] += mask != 0


def _in_atomic_order(warp: Warp, accesses_by_lane: Sequence[LaneAccess]) -> list[LaneAccess]:
    """Returns the accesses of an atomic in the order in which lanes perform them, space by space
    (`cost.atomics.lane_order`)."""
    ordered: list[LaneAccess] = []
    for space in (Space.GLOBAL, Space.SHARED):
        for request in _lane_requests(warp, accesses_by_lane, space):
            order = lane_order(
                request.addresses_by_lane, request.mask, warp.run.plan, warp.block.number
            )
            # `order` packs the first lane (5 bits) and the distance to the next.
            lanes = [(order + step * (order >> 5)) % LANES for step in range(LANES)]
            ordered += [request.lanes[lane] for lane in lanes if lane in request.lanes]
    return ordered


def _surviving_stores(warp: Warp, accesses_of_warp: Sequence[LaneAccess]) -> list[LaneAccess]:
    """Returns the stores whose value remains if several lanes store to one address of a space that
    lanes share: the schedule decides which (`lasting`); in local memory and parameters all
    remain."""
    # Local memory and parameters are private to a lane, so their stores never conflict.
    surviving = [
        lane_access
        for lane_access in accesses_of_warp
        if lane_access.space not in (Space.GLOBAL, Space.SHARED)
    ]
    for space in (Space.GLOBAL, Space.SHARED):
        for request in _lane_requests(warp, accesses_of_warp, space):
            surviving_mask = lasting(
                request.addresses_by_lane, request.mask, warp.run.plan, warp.block.number
            )
            surviving += [
                lane_access
                for lane, lane_access in request.lanes.items()
                if surviving_mask >> lane & 1
            ]
    return surviving


@dataclass(frozen=True, slots=True)
class LaneRequest:
    """The accesses of a warp that memory serves in one request: up to 32 lanes, numbered from 0.

    `addresses_by_lane` has 0 for lanes that are not in `mask` (of the request's lanes); `first` is
    the warp's lane that is lane 0 of the request.
    """

    first: int
    lanes: dict[int, LaneAccess]
    addresses_by_lane: Addresses
    mask: int


def _lane_requests(
    warp: Warp, accesses_of_warp: Sequence[LaneAccess], space: Space
) -> Iterator[LaneRequest]:
    """Yields the requests of a warp's accesses to a space: one for each 32 lanes of the warp, lower
    lanes first, of which any access it. Local addresses are those of the interleaved layout."""
    in_space = [lane_access for lane_access in accesses_of_warp if lane_access.space is space]
    for first_lane in range(0, warp.size, LANES):
        lanes = {
            lane_access.lane - first_lane: lane_access
            for lane_access in in_space
            if lane_access.lane // LANES * LANES == first_lane
        }
        if lanes:
            addresses_by_lane = np.zeros(LANES, np.uint64)
            for lane, lane_access in lanes.items():
                local = space is Space.LOCAL
                addresses_by_lane[lane] = (
                    _local_offset(lane_access, warp.size) if local else lane_access.address
                )
            yield LaneRequest(
                first_lane, lanes, addresses_by_lane, sum(1 << lane for lane in lanes)
            )


def _access_request(
    warp: Warp, index: int, instruction: Instruction, address: Operand, size: int
) -> AccessRequest:
    """Returns the request of an instruction that accesses `size` bytes per lane at `address`."""
    assert isinstance(address, Address)
    ((space, op),) = accesses(instruction)
    framed = isinstance(address.base, Symbol) and warp.run.program.slots[address.base.name].frame
    return AccessRequest(index, space, op, size, framed)


def _lane_addresses(warp: Warp, address: Operand) -> list[int]:
    """Returns the address of each lane for an address operand."""
    assert isinstance(address, Address)
    return addresses(warp, address)


def lane_accesses(
    warp: Warp,
    request: AccessRequest,
    addresses_by_lane: Sequence[int],
    mask: int,
    data: bytes = b"",
) -> list[LaneAccess]:
    """Returns the accesses of the lanes of `mask`, lane l at `addresses_by_lane[l]`, after they
    were checked, counted and reported to listener and observer; without those that a sanitizer
    suppresses. Generic addresses are resolved. `data` are the bytes of the operands, for the
    sanitizer. Raises the fault of the lowest lane that may not access memory, before any access
    takes effect."""
    accesses_of_warp: list[LaneAccess] = []
    for lane in lanes_of(mask):
        space_of_lane, offset = _locate(request.space, addresses_by_lane[lane])
        store = _store_of(warp, space_of_lane, lane, request.framed)
        accesses_of_warp.append(LaneAccess(lane, space_of_lane, offset, store))
    # Before the checks, so that a sanitizer can report and suppress invalid accesses.
    if warp.run.sanitizer is not None and not request.framed:
        accesses_of_warp = _admitted(warp, request, accesses_of_warp, data)
    if _is_in_cluster(warp, request):
        accesses_of_warp = [
            _to_cluster_offset(warp, request, lane_access)
            if lane_access.space is Space.SHARED
            else lane_access
            for lane_access in accesses_of_warp
        ]
    # Check every lane first: a faulting instruction must have no effect.
    for lane_access in accesses_of_warp:
        _check(warp, request, lane_access)
    for accessed_space in accessible_spaces(request.space):
        space_of_lane = [
            lane_access for lane_access in accesses_of_warp if lane_access.space is accessed_space
        ]
        _count(warp, request, accessed_space, space_of_lane)
        _publish(warp, request, accessed_space, space_of_lane)
    return accesses_of_warp


def _admitted(
    warp: Warp, request: AccessRequest, accesses_of_warp: Sequence[LaneAccess], data: bytes
) -> list[LaneAccess]:
    """Returns the accesses, space by space, but for those that the sanitizer suppresses; accesses
    to parameters are all kept and not passed to it."""
    sanitizer, admitted = warp.run.sanitizer, list[LaneAccess]()
    assert sanitizer is not None
    for space in accessible_spaces(request.space):
        in_space = [lane_access for lane_access in accesses_of_warp if lane_access.space is space]
        if in_space and space is not Space.PARAM:
            addresses = {lane_access.lane: lane_access.address for lane_access in in_space}
            attempt = AttemptedAccess(
                request.index, space, request.op, request.size, addresses, data
            )
            lanes = sanitizer.admitted(warp, attempt)
            in_space = [lane_access for lane_access in in_space if lanes >> lane_access.lane & 1]
        admitted += in_space
    return admitted


def _publish(
    warp: Warp, request: AccessRequest, space: Space, accesses_of_warp: Sequence[LaneAccess]
) -> None:
    """Reports the accesses to one space, with the bytes that are there before a store takes effect,
    to the listener and the observer; nothing without these or without accesses."""
    listener, observer = warp.run.listener, warp.run.observer
    if (listener is None and observer is None) or not accesses_of_warp:
        return
    lanes = tuple(lane_access.lane for lane_access in accesses_of_warp)
    lane_addresses = tuple(lane_access.address for lane_access in accesses_of_warp)
    data = tuple(
        lane_access.store.read(lane_access.address, request.size)
        for lane_access in accesses_of_warp
    )
    access = WarpAccess(request.index, space, request.op, request.size, lanes, lane_addresses, data)
    if listener is not None:
        listener.accessed(warp, access)
    if observer is not None:
        observer.access(warp, access)


def _locate(space: Space, address: int) -> tuple[Space, int]:
    """Returns the space that an address belongs to, and the address in that space: a generic
    address is in the shared or local window, or global; others stay as they are."""
    if space is not Space.GENERIC:
        return space, address
    for window_space, start in WINDOWS.items():
        if start <= address < start + WINDOW_SIZE:
            return window_space, address - start
    return Space.GLOBAL, address


def _is_in_cluster(warp: Warp, request: AccessRequest) -> bool:
    """Returns true if an access to shared memory may address another thread block's: the launch has
    clusters of several blocks or the program maps addresses (`mapa`), and the instruction is of
    `shared::cluster` or has a generic address."""
    instruction = warp.run.program.instructions[request.index]
    run = warp.run
    names_blocks = run.launch.cluster_blocks > 1 or Needs.CLUSTER_ADDRESSES in run.program.needs
    return names_blocks and accesses_cluster(instruction)


def _to_cluster_offset(warp: Warp, request: AccessRequest, lane_access: LaneAccess) -> LaneAccess:
    """Returns an access to shared memory with its offset in the shared memory of the whole cluster,
    and that memory as its store.
    The address has the rank of the block plus 1 from bit BLOCK_BITS on, 0 for the own block. Raises
    the fault of an access beyond that block's memory, or to a block that is not live."""
    run, block, address = warp.run, warp.block, lane_access.address
    live, size = live_blocks(run.plan, run.slots), len(block.shared)
    stride = shared_stride(run.program, run.launch)
    offset = cluster_offset(address, request.size, block.rank, live, size, stride)
    if offset >= 0:
        return replace(
            lane_access,
            address=offset,
            store=ByteArea(block.cluster, "the shared memory of the cluster"),
        )
    position = (request.index, block.number, warp.number, lane_access.lane)
    if offset == NO_SUCH_BLOCK:
        rank = (address >> BLOCK_BITS) - 1
        fault = Fault(FaultKind.NO_BLOCK, *position, rank, request.size, Space.SHARED)
    else:
        within = address & ((1 << BLOCK_BITS) - 1)
        fault = Fault(FaultKind.OUT_OF_BOUNDS, *position, within, request.size, Space.SHARED)
    block_memory = ByteArea(block.shared, "the block's shared memory").nearest(0)
    raise fault_error(fault, run.program, run.launch, block_memory)


def _store_of(warp: Warp, space: Space, lane: int, framed: bool) -> ByteStore:
    """Returns the memory that a lane's access to a space addresses: the block's shared memory, the
    thread's local memory or frame (`framed`), the kernel's parameters, else device memory."""
    if space is Space.SHARED:
        return ByteArea(warp.block.shared, "the block's shared memory")
    if space is Space.LOCAL:
        return ByteArea(warp.local[lane], "the thread's local memory")
    if framed:
        return ByteArea(warp.frame[lane], "the parameters of the call")
    if space is Space.PARAM:
        parameters = np.frombuffer(warp.run.launch.parameters, np.uint8)
        return ByteArea(parameters, "the parameters of the kernel")
    return warp.run.memory


def peek(warp: Warp, request: AccessRequest, lane: int, address: int) -> bytes:
    """Returns the bytes that a lane sees at an address, for host callbacks: not counted, at any
    alignment. Raises KernelFault if they are not accessible."""
    space, offset = _locate(request.space, address)
    lane_access = LaneAccess(lane, space, offset, _store_of(warp, space, lane, request.framed))
    allocation = lane_access.store.find(offset)
    if allocation is None or offset + request.size > allocation.address + allocation.size:
        _check(warp, request, lane_access)
    return lane_access.store.read(offset, request.size)


def _check(warp: Warp, request: AccessRequest, lane_access: LaneAccess) -> None:
    """Raises the fault of an access that is not within one allocation, not aligned to its size, or
    a write to constant memory, in this order; else nothing."""
    size = request.size
    allocation = lane_access.store.find(lane_access.address)
    if allocation is None or lane_access.address + size > allocation.address + allocation.size:
        kind = FaultKind.OUT_OF_BOUNDS
    elif lane_access.address % size:
        kind = FaultKind.MISALIGNED
    elif request.op != "load" and lane_access.store.is_constant(lane_access.address):
        kind = FaultKind.READ_ONLY
    else:
        return
    position = (request.index, warp.block.number, warp.number, lane_access.lane)
    fault = Fault(kind, *position, lane_access.address, size, lane_access.space)
    nearest = lane_access.store.nearest(lane_access.address)
    raise fault_error(fault, warp.run.program, warp.run.launch, nearest)


def _count(
    warp: Warp, request: AccessRequest, space: Space, accesses_of_warp: Sequence[LaneAccess]
) -> None:
    """Adds the cost of a warp's accesses to one space to the access record of instruction and
    space: of each request by the device's rules, of stores also what writing costs, of atomics
    their passes, and the hits and misses of simulated caches. Keeps the costliest request as the
    record's example. Parameters and the call stack are not counted."""
    if not accesses_of_warp or space is Space.PARAM or request.index in warp.run.program.private:
        return
    row = warp.run.tally.rows_of_rules[warp.run.rows[request.index, space]]
    rules, instruction = warp.run.rules, warp.run.program.instructions[request.index]
    cost = rules.cost(space.value, request.op, route=route_of(instruction))
    writes = rules.writes(space.value) if request.op == "store" else None
    for lane_request in _lane_requests(warp, accesses_of_warp, space):
        request_addresses, mask = lane_request.addresses_by_lane, lane_request.mask
        # The rule adds to the record; the difference to `before` is this request's cost.
        before = int(row[TRANSACTIONS])
        RULES[cost](request_addresses, mask, request.size, row)
        costliest = int(row[EXAMPLE_COST])
        keep_example(request_addresses, mask, before, row)
        # The example has 32 lanes; shift its mask to the half of the warp that it was taken from.
        if row[EXAMPLE_COST] > costliest:
            row[EXAMPLE_MASK] <<= lane_request.first
        if request.op == "atomic":
            count_passes(request_addresses, mask, request.size, row)
        if writes is not None:
            RULES[writes](request_addresses, mask, request.size, row)
        _count_caches(warp, request, space, request_addresses, mask, row)


def _count_caches(
    warp: Warp,
    request: AccessRequest,
    space: Space,
    request_addresses: Addresses,
    mask: int,
    row: Words,
) -> None:
    """Adds a request's hits and misses in the simulated caches to record `row`; nothing if caches
    are not simulated or the access takes no path through one."""
    run = warp.run
    route = route_of(run.program.instructions[request.index])
    path = run.rules.path(space.value, request.op, route=route)
    if path is not None:
        # Local memory of different warps must not share lines in the cache model.
        local_base = local_address(run.program, run.launch, warp.block.number, warp.number)
        offset = local_base if space is Space.LOCAL else 0
        block = warp.block.number
        count_cached(request_addresses, mask, request.size, row, run.caches, path, block, offset)


def _local_offset(lane_access: LaneAccess, warp_size: int) -> int:
    """Returns the offset of a lane's local byte in the warp's local memory, where word w of all
    lanes is contiguous (128 bytes for 32 lanes; CUDA C++ Programming Guide, "Local Memory")."""
    word, byte = divmod(lane_access.address, 4)
    return (word * warp_size + lane_access.lane) * 4 + byte
