"""Loads, stores and atomics: where lanes reach, what that may do wrong, what it costs.

Every lane is checked before any takes effect; then lanes go one by one in rising order, so of
several stores to one address the highest lane's lasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from warploom.analysis.accesses import GENERIC_SPACES, OPS, space_of
from warploom.core.errors import Allocation
from warploom.machine.faults import Fault, FaultKind, fault_error
from warploom.machine.launch import WARP_SIZE
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lanes import Values, collect, dtype, lanes_of
from warploom.machine.reference.operands import WINDOWS, addresses, read, write
from warploom.machine.reference.state import Bytes, Warp
from warploom.ptx.ir import Address, Instruction, Operand, Space, Symbol, Vector
from warploom.rules.atomics import count_passes
from warploom.rules.banks import count_shared
from warploom.rules.coalescing import count_global, count_local
from warploom.rules.constant import count_constant
from warploom.rules.scheduling import CHANGES
from warploom.rules.windows import WINDOW_SIZE

COSTS = {
    Space.GLOBAL: count_global,
    Space.SHARED: count_shared,
    Space.LOCAL: count_local,
    Space.CONST: count_constant,
}


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
class Reach:
    """One lane's access: the space that it falls into, and the address there."""

    lane: int
    space: Space
    address: int
    store: Store


def load(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`ld` and `ldu`."""
    destination, address = instruction.operands[:2]
    type = instruction.operation.modifiers.scalar()
    elements = _elements(destination)
    size = type.bytes * len(elements)
    reached = _reach(warp, index, instruction, address, mask, size)
    data = np.zeros((WARP_SIZE, size), np.uint8)
    for reach in reached:
        data[reach.lane] = np.frombuffer(reach.store.read(reach.address, size), np.uint8)
    for place, element in enumerate(elements):
        part = data[:, place * type.bytes : (place + 1) * type.bytes]
        write(warp, element, np.ascontiguousarray(part).view(dtype(type.bits)).ravel(), type, on)


def store(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`st`."""
    address, source = instruction.operands[:2]
    type = instruction.operation.modifiers.scalar()
    values = [read(warp, element, type) for element in _elements(source)]
    size = type.bytes * len(values)
    data = np.stack(values, axis=1).view(np.uint8)
    for reach in _reach(warp, index, instruction, address, mask, size):
        reach.store.write(reach.address, data[reach.lane].tobytes())
    warp.run.plan[CHANGES] += 1


def atomic(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`atom` and `red`: each lane reads, combines and writes in its turn."""
    operation = instruction.operation
    type = operation.modifiers.scalar()
    count = len(operation.spec.destinations)
    address, *sources = instruction.operands[count:]
    needed = sum(not source.optional for source in operation.spec.sources) - 1
    operands = [read(warp, source, type) for source in sources[:needed]]
    olds = [0] * WARP_SIZE
    for reach in _reach(warp, index, instruction, address, mask, type.bytes):
        lane, old = reach.lane, reach.store.read(reach.address, type.bytes)
        olds[lane] = int.from_bytes(old, "little")
        values = [collect([olds[lane]], type), *(o[lane : lane + 1] for o in operands)]
        new = evaluate(operation.combine, values, 1).tobytes()
        reach.store.write(reach.address, new)
        warp.run.plan[CHANGES] += new != old
    if count:
        write(warp, instruction.operands[0], collect(olds, type), type, on)


def _elements(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _reach(
    warp: Warp, index: int, instruction: Instruction, address: Operand, mask: int, size: int
) -> list[Reach]:
    """The accesses of the lanes of `mask`, checked and counted."""
    assert isinstance(address, Address)
    space, where = space_of(instruction), addresses(warp, address)
    framed = isinstance(address.base, Symbol) and warp.run.program.places[address.base.name].frame
    reached: list[Reach] = []
    for lane in lanes_of(mask):
        inside, offset = _locate(space, where[lane])
        reached.append(Reach(lane, inside, offset, _store(warp, inside, lane, framed)))
    writes = OPS[instruction.operation.name] != "load"
    for reach in reached:
        _check(warp, index, reach, size, writes)
    for each in GENERIC_SPACES if space is Space.GENERIC else (space,):
        _count(warp, index, instruction, each, [r for r in reached if r.space is each], size)
    return reached


def _locate(space: Space, address: int) -> tuple[Space, int]:
    """The space that an address leads to, and the address there."""
    if space is not Space.GENERIC:
        return space, address
    for inside, start in WINDOWS.items():
        if start <= address < start + WINDOW_SIZE:
            return inside, address - start
    return Space.GLOBAL, address


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


def _check(warp: Warp, index: int, reach: Reach, size: int, writes: bool) -> None:
    """Raise the fault of an access that must not be."""
    found = reach.store.find(reach.address)
    if found is None or reach.address + size > found.address + found.size:
        kind = FaultKind.OUT_OF_BOUNDS
    elif reach.address % size:
        kind = FaultKind.MISALIGNED
    elif writes and reach.store.is_constant(reach.address):
        kind = FaultKind.READ_ONLY
    else:
        return
    place = (index, warp.block.number, warp.number, reach.lane)
    fault = Fault(kind, *place, reach.address, size, reach.space)
    nearest = reach.store.nearest(reach.address)
    raise fault_error(fault, warp.run.program, warp.run.launch, nearest)


def _count(
    warp: Warp,
    index: int,
    instruction: Instruction,
    space: Space,
    reached: Sequence[Reach],
    size: int,
) -> None:
    """Count the request that some lanes make of a space; parameters are not counted."""
    if not reached or space is Space.PARAM:
        return
    row = warp.run.tally.accesses[warp.run.rows[index, space]]
    where = np.zeros(WARP_SIZE, np.uint64)
    mask = 0
    for reach in reached:
        mask |= 1 << reach.lane
        where[reach.lane] = _physical(reach) if space is Space.LOCAL else reach.address
    COSTS[space](where, mask, size, row)
    if OPS[instruction.operation.name] == "atomic":
        count_passes(where, mask, size, row)


def _physical(reach: Reach) -> int:
    """Where a thread's local byte lies: the same word of all lanes is one stretch of 128 bytes
    (CUDA C++ Programming Guide, "Local Memory")."""
    word, byte = divmod(reach.address, 4)
    return (word * WARP_SIZE + reach.lane) * 4 + byte
