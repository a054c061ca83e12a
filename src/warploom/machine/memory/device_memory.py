"""Implements the memory of a device: one reserved range of addresses, and the allocations in it.

Device addresses are host addresses inside that range, so compiled code dereferences them directly.
The range is reserved, not committed: the system creates pages, filled with zeros, when they are
first touched. Host memory can be lent to kernels and retains its own addresses. Choosing addresses
is left to `machine.memory.allocator`; contents to `machine.memory.module_globals` and the host API.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from bisect import bisect_right
from collections.abc import Callable, Container
from functools import partial

import numpy as np
import numpy.typing as npt

from warploom.core.errors import Allocation, LaunchError, WarploomError
from warploom.core.forked import forget_in_child
from warploom.core.mutex import FinalizerLock
from warploom.machine.memory.allocation_table import AllocationTable, MemoryState
from warploom.machine.memory.allocator import ALIGNMENT, Allocator
from warploom.machine.memory.heap import Heap
from warploom.machine.memory.reservation import Reservation, reserve
from warploom.machine.memory.textures import TextureTable
from warploom.simt.allocations import AllocationRow

Bytes = npt.NDArray[np.uint8]

CAPACITY = 64 << 30
"""The bytes that are reserved for a device by default."""

RETURNED_BYTES = 32 << 20
"""The size from which freed memory is returned to the system; less is cleared in place: clearing 1
MiB costs 22 microseconds, fresh pages cost 450 when they are next touched."""


class DeviceMemory:
    """A device's memory of `capacity` bytes, or as much as the system will reserve; at the address
    `base` if one is given."""

    def __init__(self, capacity: int = CAPACITY, base: int | None = None) -> None:
        """Reserves a range of `capacity` bytes, with no allocation in it: at `base`, else wherever
        the system chooses, and then with fewer bytes if it refuses that size (`reserve`). Raises
        LaunchError if it refuses those too, WarploomError if addresses from `base` on are in use.
        """
        self._map: mmap.mmap | Reservation
        self._bytes: Bytes
        if base is None:
            self._map = reserve(capacity)
            self._bytes = np.frombuffer(self._map, np.uint8)
        else:
            self._map = Reservation(base, capacity)
            self._bytes = self._map.bytes
        self._base = int(self._bytes.ctypes.data)
        self.capacity = len(self._bytes)
        self._allocator = Allocator(self._base, self._base + self.capacity)
        self._live: dict[int, Allocation] = {}
        self._constants: set[int] = set()
        self._lent: dict[int, object] = {}
        self._used = 0
        self._table: AllocationTable | None = None
        self._sorted: tuple[tuple[int, ...], tuple[Allocation, ...]] | None = None
        """The addresses of `_live`, rising, and its allocations; None after a change."""
        self._launches: set[int] = set()  # the numbers of the launches that run
        self._begun = 0
        self.unwritten: dict[int, npt.NDArray[np.int64]] = {}
        """Bitmaps of the bytes that were never written (a bit is 1 once its byte is), WRITTEN_BITS
        in a word, by the address of an allocation; absent for allocations whose bytes are all
        written. For sanitizers."""
        self.copy_listeners: list[Callable[[int, int, bool], None]] = []
        """Called when the host copies an array: with the address and the size in this memory, and
        whether it is written."""
        self._retained: dict[int, int] = {}
        """Freed allocations that running launches may still access, with the number of the last
        launch that can."""
        self.heap = Heap()
        self.textures = TextureTable(self._base, self.capacity)
        self._lock = FinalizerLock("use device memory")
        forget_in_child(self)

    def check_owner(self, owner: DeviceMemory | None, *description: object) -> None:
        """Raises LaunchError where an object of the device with memory `owner` is used with the
        device of this one; `description` are texts and objects that name it. None stands for an
        object of no device."""
        if owner is not None and owner is not self:
            named = ": ".join(map(str, description))
            raise LaunchError(f"{named} belongs to another device; create it on this device")

    def forget(self) -> None:
        """Drops the parent's running launches in a forked child process."""
        self._launches.clear()

    @property
    def base(self) -> int:
        """Returns the first address of the range."""
        return self._base

    @property
    def free_bytes(self) -> int:
        """Returns the bytes of the range that are not allocated."""
        return self.capacity - self._used

    @property
    def bytes(self) -> Bytes:
        """Returns the whole range, for functions that check addresses themselves (textures)."""
        return self._bytes

    def allocate(
        self,
        size: int,
        name: str = "allocation",
        constant: bool = False,
        alignment: int = ALIGNMENT,
    ) -> Allocation:
        """Returns a new allocation of exactly `size` bytes, all zero, which errors call `name`;
        kernels cannot write a `constant` one. The address is a multiple of `alignment`, a power
        of 2. Raises LaunchError if no free range is long enough, or if `size` is negative."""
        if size < 0:
            raise LaunchError(f"{name}: the size of an allocation cannot be {size} bytes")
        with self._lock:
            address = self._allocator.allocate(size, max(alignment, ALIGNMENT))
            if address is None:
                raise self._out_of_memory(size, name)
            allocation = Allocation(address, size, name)
            self._register(allocation)
            self._used += size
            if constant:
                self._constants.add(address)
        return allocation

    def lend(self, address: int, size: int, owner: object, name: str = "host memory") -> Allocation:
        """Makes `size` bytes of host memory at `address`, which errors call `name`, accessible to
        kernels until `free(address)`; `owner` is held alive until then. Raises WarploomError if
        some of them are in the device's range or in a live allocation."""
        allocation = Allocation(address, size, name)
        with self._lock:
            # Only the allocation that begins at or below the address and the next one can overlap.
            neighbours = self._neighbours(address)
            overlaps_device = self._base < address + size and address < self._base + self.capacity
            if overlaps_device or any(
                neighbour.address < address + size and address < neighbour.address + neighbour.size
                for neighbour in neighbours
            ):
                raise WarploomError(f"kernels can already access {name} at {address:#x}")
            self._register(allocation)
            self._lent[address] = owner
        return allocation

    def _register(self, allocation: Allocation) -> None:
        """Adds an allocation to the live ones, and drops the bitmap of written bytes of an earlier
        allocation at its address; the caller holds the lock."""
        self._forget_tables()
        self.unwritten.pop(allocation.address, None)
        self._live[allocation.address] = allocation

    def _forget_tables(self) -> None:
        """Drops what is derived from the allocations, before they change: a signal handler may
        raise an exception after each step. The caller holds the lock."""
        self._table = self._sorted = None

    def free(self, address: int, *, in_kernel: bool = False) -> None:
        """Ends the allocation that starts at `address`; its memory is zero when it is next
        allocated (lent memory stays as it is).

        Launches that have begun can access it to their end, unless the kernel itself frees it
        (`in_kernel`). Raises WarploomError if no live allocation starts there.
        """
        with self._lock:
            if not self._free_or_retain(address, in_kernel=in_kernel):
                raise WarploomError(f"{address:#x} is not the start of a live allocation")

    def drop(self, address: int) -> None:
        """Frees an allocation from a finalizer, which may run in the middle of another call: now,
        or as soon as the lock is released. Does nothing if it is freed already."""
        self._lock.run_locked(partial(self._free_or_retain, address))

    def begin_launch(self) -> int:
        """Returns the number (from 1) of a new launch. Memory that exists now is not released until
        `end_launch(number)`, even if the host frees it. The caller serializes launches: this
        acquires no lock."""
        self._begun += 1
        self._launches.add(self._begun)
        return self._begun

    def end_launch(self, number: int) -> None:
        """Ends launch `number`: releases the allocations that the host has freed and that no
        running launch can access any more."""
        self._launches.discard(number)
        if self._retained:
            with self._lock:
                # An allocation was freed when launch `last` was the newest: only launches up to it
                # can access the memory.
                oldest = min(self._launches, default=self._begun + 1)
                for address in [a for a, last in self._retained.items() if last < oldest]:
                    del self._retained[address]
                    self._release(address)

    def _free_or_retain(self, address: int, *, in_kernel: bool = False) -> bool:
        """Frees an allocation: releases it now if no launch is running or a kernel frees it, else
        retains it until the launches that have begun are over. Returns False if no live allocation
        starts at `address` or it is retained already; the caller holds the lock."""
        # Freed already, though still in memory for a running launch.
        if address in self._retained:
            return False
        if in_kernel or not self._launches or address not in self._live:
            return self._release(address)
        self._forget_tables()
        self._retained[address] = self._begun
        return True

    def _release(self, address: int) -> bool:
        """Removes the allocation that starts at `address` from all tables, zeroes its bytes and
        frees its range of addresses; lent memory is only removed. Returns False if there is none.
        The caller holds the lock."""
        self._forget_tables()
        allocation = self._live.pop(address, None)
        if allocation is None:
            return False
        self._constants.discard(address)
        # Lent memory is the host's: it is neither cleared nor counted.
        if address in self._lent:
            del self._lent[address]
            return True
        self._used -= allocation.size
        self._clear(allocation)
        self._allocator.give_back(address, allocation.size)
        return True

    def rename(self, address: int, name: str) -> None:
        """Changes the name of the allocation that starts at `address`, for messages; does nothing
        where there is none. In place: detectors know an allocation by its identity."""
        with self._lock:
            if allocation := self._live.get(address):
                object.__setattr__(allocation, "name", name)

    def live(self) -> tuple[Allocation, ...]:
        """Returns the live allocations, lent ones included, in order of address, without those that
        are freed but retained."""
        with self._lock:
            _, allocations = self._by_address()
            return tuple(a for a in allocations if a.address not in self._retained)

    def find(self, address: int) -> Allocation | None:
        """Returns the allocation that contains the byte at `address`, freed ones that are retained
        for a launch included; None if there is none."""
        allocation = self._at_or_below(address)
        return allocation if allocation and address < allocation.address + allocation.size else None

    def nearest(self, address: int) -> Allocation | None:
        """Returns the allocation that contains `address`, else the one with the byte closest to it
        (the lower of two), for messages of faults; None if there is none. Freed allocations that
        are retained for a launch count."""
        with self._lock:
            neighbours = self._neighbours(address)
        return min(neighbours, key=lambda allocation: _distance(allocation, address), default=None)

    def is_constant(self, address: int) -> bool:
        """Returns true if the byte at `address` is in an allocation that kernels cannot write."""
        allocation = self.find(address)
        return allocation is not None and allocation.address in self._constants

    def view(self, address: int, size: int) -> Bytes:
        """Returns a writable view of `size` bytes from `address` on. Raises WarploomError unless
        all are in one allocation, live (lent ones too) or retained."""
        allocation = self._at_or_below(address)
        if allocation is None or size < 0 or address + size > allocation.address + allocation.size:
            raise WarploomError(
                f"the {size:,} bytes at {address:#x} are not within a single live allocation"
            )
        if allocation.address in self._lent:
            return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
        start = address - self._base
        return self._bytes[start : start + size]

    def read(self, address: int, size: int) -> bytes:
        """Returns a copy of the `size` bytes from `address` on. Raises WarploomError unless all are
        in one allocation, live or retained."""
        return self.view(address, size).tobytes()

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Copies `data` to `address`, which may be in a constant allocation. Raises WarploomError
        unless all of it is in one allocation, live or retained."""
        self.view(address, len(data))[:] = np.frombuffer(data, np.uint8)

    def note_copy(self, address: int, size: int, *, writes: bool) -> None:
        """Reports a copy by the host to those that listen; `writes`: to this memory."""
        if size:
            for listener in self.copy_listeners:
                listener(address, size, writes)

    def mark_written(self, address: int, size: int) -> None:
        """Records that `size` bytes from `address` on were written, for sanitizers; does nothing
        where they are not in an allocation with bytes that were never written."""
        allocation = self.find(address) if self.unwritten else None
        bits = None if allocation is None else self.unwritten.get(allocation.address)
        if allocation is None or bits is None:
            return
        start, end = address - allocation.address, address - allocation.address + size
        whole = -(-start // WRITTEN_BITS), end // WRITTEN_BITS
        bits[whole[0] : whole[1]] = ALL_WRITTEN
        for byte in (*range(start, min(end, whole[0] * WRITTEN_BITS)),
                     *range(max(start, whole[1] * WRITTEN_BITS), end)):  # fmt: skip
            bits[byte // WRITTEN_BITS] |= 1 << byte % WRITTEN_BITS

    def state(self) -> MemoryState:
        """Returns a copy of the current allocations, free ranges and heap, not of the contents, for
        `restore`."""
        with self._lock:
            constants = frozenset(self._constants)
            return MemoryState(dict(self._live), self._allocator.gaps, self.heap.sizes, constants)

    def restore(self, state: MemoryState) -> None:
        """Restores the allocations of an earlier point of a launch; the caller restores the
        contents. Only kernels' own allocations may differ between the two points."""
        with self._lock:
            self._forget_tables()
            self._live = dict(state.live)
            self._used = sum(a.size for a in self._live.values() if a.address not in self._lent)
            self._allocator.gaps = state.gaps
            self._constants = set(state.constants)
            self.heap.sizes = state.heap

    def table(self) -> AllocationTable:
        """Returns the live allocations, without retained ones, as compiled code reads them when a
        launch begins; cached until the next allocation, free or release."""
        table = self._table
        # Without the lock: tables are immutable, and the attribute is read once.
        if table is not None:
            return table
        with self._lock:
            self._table = table = self._build_table(self._retained)
            return table

    def table_in_launch(self) -> AllocationTable:
        """Returns the allocations that a launch in progress can access: the live ones and all freed
        ones that are retained; without retained ones the cached table."""
        if not self._retained:
            return self.table()
        with self._lock:
            return self._build_table(())

    def _build_table(self, excluded: Container[int]) -> AllocationTable:
        """Returns a table of the allocations but those at the addresses `excluded`, an
        `AllocationRow` for each. The caller holds the lock."""
        live = [a for a in self._by_address()[1] if a.address not in excluded]
        rows = np.zeros((len(live), AllocationRow.WORDS), np.uint64)
        rows[:, AllocationRow.start] = [a.address for a in live]
        rows[:, AllocationRow.end] = [a.address + a.size for a in live]
        rows[:, AllocationRow.constant] = [a.address in self._constants for a in live]
        return AllocationTable(rows.reshape(-1), len(live))

    def close(self) -> None:
        """Ends all allocations and returns their pages to the system; the range itself is unmapped
        now, or when its last view is deleted. The memory must not be used any more."""
        if _DONT_NEED is not None:
            self._map.madvise(_DONT_NEED)
        self._forget_tables()
        self._live.clear()
        self._constants.clear()
        self._lent.clear()
        self._retained.clear()
        # This view of the mapping would keep it open.
        self._bytes = np.empty(0, np.uint8)
        try:
            self._map.close()
        # NumPy views of the range still exist; the mapping ends with the last of them.
        except BufferError:
            return

    def _at_or_below(self, address: int) -> Allocation | None:
        """Returns the allocation with the highest start that is not above `address`, live or
        retained; it need not contain the address. None if there is none."""
        index = self._sorted
        # Without the lock, as for `table`.
        if index is None:
            with self._lock:
                index = self._by_address()
        position = bisect_right(index[0], address)
        return index[1][position - 1] if position else None

    def _by_address(self) -> tuple[tuple[int, ...], tuple[Allocation, ...]]:
        """Returns the addresses of the allocations, live or retained, rising, and the allocations;
        cached until they change. The caller holds the lock."""
        if self._sorted is None:
            addresses = tuple(sorted(self._live))
            self._sorted = addresses, tuple(self._live[address] for address in addresses)
        return self._sorted

    def _neighbours(self, address: int) -> tuple[Allocation, ...]:
        """Returns the allocation that begins at or below an address, and the next one. The caller
        holds the lock."""
        addresses, allocations = self._by_address()
        index = bisect_right(addresses, address)
        return allocations[max(0, index - 1) : index + 1]

    def _out_of_memory(self, size: int, name: str) -> LaunchError:
        """Returns the error of an allocation for which no free range is long enough: it states how
        many bytes it needs, how long the largest free range is (`limit`), and how much is in
        use."""
        largest = self._allocator.largest
        return LaunchError(
            f"out of device memory: {name} needs {size:,} bytes, but the largest free range has "
            f"{largest:,} ({self._used:,} of {self.capacity:,} bytes are in use by "
            f"{len(self._live)} allocations). Free buffers that are no longer needed.",
            resource="device memory",
            requested=size,
            limit=largest,
        )

    def _clear(self, allocation: Allocation) -> None:
        """Zeroes the bytes of a released allocation; from RETURNED_BYTES on by returning its whole
        pages to the system, which maps zero pages at the next access."""
        start, end = (
            allocation.address - self._base,
            allocation.address + allocation.size - self._base,
        )
        if _DONT_NEED is None or allocation.size < RETURNED_BYTES:
            self._bytes[start:end] = 0
            return
        first_page, last_page = -(-start // mmap.PAGESIZE), end // mmap.PAGESIZE
        self._bytes[start : first_page * mmap.PAGESIZE] = 0
        self._map.madvise(
            _DONT_NEED, first_page * mmap.PAGESIZE, (last_page - first_page) * mmap.PAGESIZE
        )
        self._bytes[last_page * mmap.PAGESIZE : end] = 0


WRITTEN_BITS = 32
"""Bits in a word of `DeviceMemory.unwritten`, one for each byte."""

ALL_WRITTEN = (1 << WRITTEN_BITS) - 1


def unwritten_bits(size: int) -> npt.NDArray[np.int64]:
    """Returns the bitmap of `size` bytes, none of them written."""
    return np.zeros(-(-size // WRITTEN_BITS), np.int64)


_DONT_NEED: int | None = getattr(mmap, "MADV_DONTNEED", None) if sys.platform == "linux" else None
"""The madvise value that turns pages back into zeros; only Linux guarantees that."""


def _distance(allocation: Allocation, address: int) -> int:
    """Returns the distance in bytes from an address to the nearest byte of an allocation, 0 inside
    of it."""
    if address < allocation.address:
        return allocation.address - address
    return max(0, address - (allocation.address + allocation.size) + 1)
