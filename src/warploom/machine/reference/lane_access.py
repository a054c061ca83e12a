"""Describes the accesses of a warp's lanes on the reference machine, and the memories that they
address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from warploom.core.errors import Allocation
from warploom.machine.reference.state import Bytes
from warploom.ptx.ir import Space


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
