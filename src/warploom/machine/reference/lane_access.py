"""Describes the accesses of a warp's lanes on the reference machine and the memories that they
address, and counts what they cost by the device's rules (`cost`), request by request: one for
each 32 lanes of a warp that has more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from warploom.core.errors import Allocation
from warploom.cost.address_pattern import interleaved
from warploom.cost.atomics import count_passes
from warploom.cost.caches import count_cached
from warploom.cost.costliest_access import store_example
from warploom.cost.device_rules import RULES
from warploom.cost.fields import CostRecord
from warploom.isa.instruction import Space
from warploom.machine.caches import local_address
from warploom.machine.reference.state import Bytes, Warp, Words
from warploom.program.accesses import route_of
from warploom.simt.lane_counts import Addresses

LANES = 32
"""The most lanes whose accesses memory serves in one request (CUDA C++ Programming Guide, "Compute
Capabilities")."""


class ByteStore(Protocol):
    """Bytes that are accessed by address: device memory, or a `ByteArea`. `find` returns the
    allocation that contains an address, None if none does; `nearest` the closest, for messages."""

    def read(self, address: int, size: int) -> bytes:
        """Returns a copy of `size` bytes from `address` on."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Copies `data` to `address`."""
        ...

    def nearest(self, address: int) -> Allocation | None:
        """Returns the allocation closest to an address, for messages; None if there is none."""
        ...

    def find(self, address: int) -> Allocation | None:
        """Returns the allocation that contains the byte at an address; None if there is none."""
        ...

    def is_constant(self, address: int) -> bool:
        """Returns true if the byte at an address is in an allocation that kernels cannot write."""
        ...


@dataclass(frozen=True, slots=True)
class ByteArea:
    """Shared memory, or one thread's local memory or parameters: bytes that start at address 0 and
    are one writable allocation; `name` stands for it in messages."""

    data: Bytes
    name: str

    def read(self, address: int, size: int) -> bytes:
        """Returns a copy of `size` bytes from offset `address` on; the caller checks that they are
        there."""
        return self.data[address : address + size].tobytes()

    def write(self, address: int, data: bytes) -> None:
        """Copies `data` to offset `address`; the caller checks that it fits."""
        self.data[address : address + len(data)] = np.frombuffer(data, np.uint8)

    def nearest(self, address: int) -> Allocation:
        """Returns the area as one allocation, for any address."""
        return _area(len(self.data), self.name)

    def find(self, address: int) -> Allocation | None:
        """Returns the area as one allocation, from 0 on; None if `address` is past its end."""
        return self.nearest(address) if address < len(self.data) else None

    def is_constant(self, address: int) -> bool:
        """Returns false: an area is writable."""
        return False


@lru_cache(maxsize=64)
def _area(size: int, name: str) -> Allocation:
    return Allocation(0, size, name)


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """Describes a warp's access by instruction `index`: `op` (load, store, atomic) of `size` bytes
    per lane in `space`, which may be generic. `of_call_parameters` is true if the addresses are
    those of the parameters or results of a call, offsets in the thread's frame."""

    index: int
    space: Space
    op: str
    size: int
    of_call_parameters: bool = False


@dataclass(frozen=True, slots=True)
class LaneAccess:
    """One lane's access: the space of its address (not generic), the address in that space, and the
    memory that it addresses."""

    lane: int
    space: Space
    address: int
    store: ByteStore


@dataclass(frozen=True, slots=True)
class LaneRequest:
    """The accesses of a warp that memory serves in one request: up to 32 lanes, numbered from 0.

    `addresses_by_lane` has 0 for lanes that are not in `mask` (of the request's lanes);
    `first_lane` is the warp's lane that is lane 0 of the request.
    """

    first_lane: int
    lanes: dict[int, LaneAccess]
    addresses_by_lane: Addresses
    mask: int


def lane_requests(
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
                    interleaved(lane_access.address, lane_access.lane, warp.size)
                    if local
                    else lane_access.address
                )
            yield LaneRequest(
                first_lane, lanes, addresses_by_lane, sum(1 << lane for lane in lanes)
            )


def count_accesses(
    warp: Warp, request: AccessRequest, space: Space, accesses_of_warp: Sequence[LaneAccess]
) -> None:
    """Adds the cost of a warp's accesses to one space to the access record of instruction and
    space: of each request by the device's rules, of stores also what writing costs, of atomics
    their passes, and the hits and misses of simulated caches. Stores the costliest request as the
    record's example. Parameters and the call stack are not counted."""
    if not accesses_of_warp or space is Space.PARAM or request.index in warp.run.program.private:
        return
    words = warp.run.tally.records[warp.run.record_numbers[request.index, space]]
    record = CostRecord(words, 0)
    rules, instruction = warp.run.rules, warp.run.program.instructions[request.index]
    cost = rules.cost(space.value, request.op, route=route_of(instruction))
    writes = rules.writes(space.value) if request.op == "store" else None
    for lane_request in lane_requests(warp, accesses_of_warp, space):
        request_addresses, mask = lane_request.addresses_by_lane, lane_request.mask
        # The rule adds to the record; the difference to `before` is this request's cost.
        before, costliest = record.transactions, record.example_cost
        RULES[cost](request_addresses, mask, request.size, words)
        store_example(request_addresses, mask, before, words)
        # The example has 32 lanes; shift its mask to the half of the warp that it was taken from.
        if record.example_cost > costliest:
            words[CostRecord.example_mask] <<= lane_request.first_lane
        if request.op == "atomic":
            count_passes(request_addresses, mask, request.size, words)
        if writes is not None:
            RULES[writes](request_addresses, mask, request.size, words)
        _count_caches(warp, request, space, request_addresses, mask, words)


def _count_caches(
    warp: Warp,
    request: AccessRequest,
    space: Space,
    request_addresses: Addresses,
    mask: int,
    record: Words,
) -> None:
    """Adds a request's hits and misses in the simulated caches to record `record`; nothing if
    caches are not simulated or the access has no path through one."""
    run = warp.run
    route = route_of(run.program.instructions[request.index])
    path = run.rules.path(space.value, request.op, route=route)
    if path is not None:
        # Local memory of different warps must not share lines in the cache model.
        local_base = local_address(run.program, run.launch, warp.block.number, warp.number)
        offset = local_base if space is Space.LOCAL else 0
        block = warp.block.number
        count_cached(request_addresses, mask, request.size, record, run.caches, path, block, offset)
