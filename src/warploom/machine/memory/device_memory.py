"""The memory of a device: one reserved range of addresses, and what is live in it.

Device addresses are host addresses inside that range, so compiled code uses them as they are. The
range is reserved, not filled: pages come into being when they are first touched, as zeros. Memory
of the host can be lent to kernels; it keeps its own addresses. Which address an allocation gets is
for `machine.memory.allocator`; what goes in it for `machine.memory.module_globals` and the host
API.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from bisect import bisect_right
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from warploom.core.errors import Allocation, LaunchError, WarploomError
from warploom.core.forked import forget_in_child
from warploom.machine.memory.allocator import ALIGNMENT, Allocator
from warploom.machine.memory.finalizers import FinalizerLock
from warploom.machine.memory.heap import Heap
from warploom.machine.memory.reservation import Reservation
from warploom.machine.memory.textures import TextureTable
from warploom.simt.allocations import Allocations

Bytes = npt.NDArray[np.uint8]

CAPACITY = 64 << 30
"""Bytes reserved for a device, unless said otherwise."""

SMALLEST = 256 << 20
"""Where a system refuses to reserve even this many bytes, there is no device."""

RETURNED_BYTES = 32 << 20
"""Freed memory of at least so many bytes goes back to the system; less is set to zero in place: for
1 MiB that takes 22 microseconds, and fresh pages 450 when they are next used."""


@dataclass(frozen=True)
class AllocationTable:
    """Live allocations for compiled code: `rows` of `simt.allocations`, one after the other.

    A table never changes: the next allocation or release makes another, so a running kernel keeps
    the one that it began with.
    """

    rows: Allocations
    count: int

    @cached_property
    def address(self) -> int:
        """Returns where the rows are."""
        return int(self.rows.ctypes.data)


@dataclass(frozen=True)
class MemoryState:
    """Records what was allocated at one point of a launch, for `DeviceMemory.restore`: allocations
    by address, free ranges, the kernels' heap. `constants` are the addresses of what kernels cannot
    write."""

    live: dict[int, Allocation]
    gaps: tuple[tuple[int, int], ...]
    heap: dict[int, int]
    constants: frozenset[int] = frozenset()


class DeviceMemory:
    """Memory of `capacity` bytes, or as much of it as the system will reserve; at the address
    `base`, where one is given."""

    def __init__(self, capacity: int = CAPACITY, base: int | None = None) -> None:
        self._map: mmap.mmap | Reservation
        self._bytes: Bytes
        if base is None:
            self._map = _reserve(capacity)
            self._bytes = np.frombuffer(self._map, np.uint8)
        else:
            self._map = Reservation(base, capacity)
            self._bytes = self._map.bytes
        self._base = int(self._bytes.ctypes.data)
        self.capacity = len(self._bytes)
        self._allocator = Allocator(self._base, self._base + self.capacity)
        self._addresses: list[int] = []
        self._live: dict[int, Allocation] = {}
        self._constants: set[int] = set()
        self._lent: dict[int, object] = {}
        self._used = 0
        self._table: AllocationTable | None = None
        self._launches: set[int] = set()
        self._begun = 0
        self.unwritten: dict[int, npt.NDArray[np.int64]] = {}
        self.on_copy: Callable[[int, int], None] | None = None
        """Told of the address and the bytes of what the host copies, if anybody asks."""
        """Which bytes are written of allocations that have not been written as a whole, by address:
        32 bits in a word. They are for sanitizers."""
        self._retained: dict[int, int] = {}
        """Freed allocations that launches still use, with the last launch that can."""
        self.heap = Heap()
        self.textures = TextureTable(self._base, self.capacity)
        self._lock = FinalizerLock()
        forget_in_child(self)

    def forget(self) -> None:
        """Drops the launches of the process that this one was forked from."""
        self._lock = FinalizerLock()
        self._launches.clear()

    @property
    def base(self) -> int:
        """Return the first address of its range."""
        return self._base

    @property
    def free_bytes(self) -> int:
        """Bytes of the range that no allocation has."""
        return self.capacity - self._used

    @property
    def bytes(self) -> Bytes:
        """Return the whole range, for rules that check their own addresses."""
        return self._bytes

    def allocate(
        self,
        size: int,
        name: str = "allocation",
        constant: bool = False,
        alignment: int = ALIGNMENT,
    ) -> Allocation:
        """Returns a new allocation of exactly `size` bytes, all zero; kernels cannot write a
        constant one. Its address is a multiple of `alignment`, a power of 2.

        Raises LaunchError where no free stretch is long enough.
        """
        if size < 0:
            raise LaunchError(f"{name}: an allocation cannot have {size} bytes")
        with self._lock:
            address = self._allocator.take(size, max(alignment, ALIGNMENT))
            if address is None:
                raise self._out_of_memory(size, name)
            made = Allocation(address, size, name)
            self._register(made)
            self._used += size
            if constant:
                self._constants.add(address)
        return made

    def lend(self, address: int, size: int, owner: object, name: str = "host memory") -> Allocation:
        """Let kernels reach `size` bytes of the host at `address` until `free(address)`; `owner` is
        kept alive for so long. Raises WarploomError where they are reachable already."""
        made = Allocation(address, size, name)
        with self._lock:
            index = bisect_right(self._addresses, address)
            around = (self._live[a] for a in self._addresses[max(0, index - 1) : index + 1])
            inside = self._base < address + size and address < self._base + self.capacity
            if inside or any(
                a.address < address + size and address < a.address + a.size for a in around
            ):
                raise WarploomError(f"kernels can reach {name} at {address:#x} already")
            self._register(made)
            self._lent[address] = owner
        return made

    def _register(self, made: Allocation) -> None:
        self._addresses.insert(bisect_right(self._addresses, made.address), made.address)
        self._live[made.address] = made
        self.unwritten.pop(made.address, None)
        self._table = None

    def free(self, address: int, *, in_kernel: bool = False) -> None:
        """Ends the allocation that starts at `address`; its memory is zero when it is next used.

        Launches that have begun can use it to their end, unless it is freed in the kernel itself.
        """
        with self._lock:
            if not self._free_or_retain(address, in_kernel=in_kernel):
                raise WarploomError(f"{address:#x} is not the start of a live allocation")

    def drop(self, address: int) -> None:
        """Frees an allocation in a finalizer, which may come in the midst of another call; harmless
        where it is gone already."""
        self._lock.run_locked(partial(self._free_or_retain, address))

    def begin_launch(self) -> int:
        """Returns the number of a launch that may use any allocation until `end_launch`."""
        self._begun += 1
        self._launches.add(self._begun)
        return self._begun

    def end_launch(self, number: int) -> None:
        """Gives back what was freed meanwhile and no other launch can use."""
        self._launches.discard(number)
        if self._retained:
            with self._lock:
                first = min(self._launches, default=self._begun + 1)
                for address in [a for a, last in self._retained.items() if last < first]:
                    del self._retained[address]
                    self._release(address)

    def _free_or_retain(self, address: int, *, in_kernel: bool = False) -> bool:
        """Ends an allocation, with the lock held, now or when no launch can use it any more;
        returns False where there is none."""
        if address in self._retained:
            return False
        if in_kernel or not self._launches or address not in self._live:
            return self._release(address)
        self._retained[address] = self._begun
        self._table = None
        return True

    def _release(self, address: int) -> bool:
        """Ends an allocation now, with the lock held; returns False where there is none."""
        gone = self._live.pop(address, None)
        if gone is None:
            return False
        del self._addresses[bisect_right(self._addresses, address) - 1]
        self._constants.discard(address)
        self._table = None
        if address in self._lent:
            del self._lent[address]
            return True
        self._used -= gone.size
        self._clear(gone)
        self._allocator.give_back(address, gone.size)
        return True

    def live(self) -> tuple[Allocation, ...]:
        """Returns what is live now, in order of address."""
        with self._lock:
            return tuple(self._live[a] for a in self._addresses if a not in self._retained)

    def find(self, address: int) -> Allocation | None:
        """Return the live allocation that the byte at `address` belongs to."""
        found = self._at_or_below(address)
        return found if found and address < found.address + found.size else None

    def nearest(self, address: int) -> Allocation | None:
        """Return the live allocation closest to `address`; None where none is live."""
        with self._lock:
            index = bisect_right(self._addresses, address)
            around = [self._live[a] for a in self._addresses[max(0, index - 1) : index + 1]]
        return min(around, key=lambda a: _distance(a, address), default=None)

    def is_constant(self, address: int) -> bool:
        """Returns whether the byte at `address` is memory that kernels cannot write."""
        found = self.find(address)
        return found is not None and found.address in self._constants

    def view(self, address: int, size: int) -> Bytes:
        """Return the bytes from `address` on, themselves and not a copy.

        Raises WarploomError unless they all lie in one live allocation.
        """
        found = self._at_or_below(address)
        if found is None or size < 0 or address + size > found.address + found.size:
            raise WarploomError(f"{size} bytes at {address:#x} are not in one live allocation")
        if found.address in self._lent:
            return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
        start = address - self._base
        return self._bytes[start : start + size]

    def read(self, address: int, size: int) -> bytes:
        """Return a copy of the bytes from `address` on."""
        return self.view(address, size).tobytes()

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Copy `data` to `address`, constant memory included."""
        self.view(address, len(data))[:] = np.frombuffer(data, np.uint8)

    def state(self) -> MemoryState:
        """Returns what is allocated now."""
        with self._lock:
            constants = frozenset(self._constants)
            return MemoryState(dict(self._live), self._allocator.gaps, self.heap.sizes, constants)

    def restore(self, state: MemoryState) -> None:
        """Allocates again what was allocated when a launch had come to some point, and nothing
        else; contents are for the caller. Only allocations of kernels may differ."""
        with self._lock:
            self._live = dict(state.live)
            self._addresses = sorted(self._live)
            self._used = sum(a.size for a in self._live.values() if a.address not in self._lent)
            self._allocator.gaps = state.gaps
            self._constants = set(state.constants)
            self.heap.sizes = state.heap
            self._table = None

    def table(self) -> AllocationTable:
        """Returns the live allocations as compiled code reads them."""
        made = self._table
        if made is not None:
            return made
        with self._lock:
            self._table = made = self._build_table(self._retained)
            return made

    def table_in_launch(self) -> AllocationTable:
        """Returns the allocations that a launch can use which has begun: freed ones as well."""
        if not self._retained:
            return self.table()
        with self._lock:
            return self._build_table(())

    def _build_table(self, without: Container[int]) -> AllocationTable:
        live = [self._live[a] for a in self._addresses if a not in without]
        rows = [(a.address, a.address + a.size, a.address in self._constants) for a in live]
        return AllocationTable(np.array(rows, np.uint64).reshape(-1), len(live))

    def close(self) -> None:
        """Give everything back; the range itself goes with the last view of it."""
        if _DONT_NEED is not None:
            self._map.madvise(_DONT_NEED)
        self._addresses.clear()
        self._live.clear()
        self._constants.clear()
        self._lent.clear()
        self._retained.clear()
        self._table = None
        self._bytes = np.empty(0, np.uint8)
        try:
            self._map.close()
        except BufferError:
            return

    def _at_or_below(self, address: int) -> Allocation | None:
        with self._lock:
            index = bisect_right(self._addresses, address)
            return self._live[self._addresses[index - 1]] if index else None

    def _out_of_memory(self, size: int, name: str) -> LaunchError:
        largest = self._allocator.largest
        return LaunchError(
            f"out of device memory: {name} wants {size:,} bytes, the largest free stretch has"
            f" {largest:,} ({self._used:,} of {self.capacity:,} bytes are in use by"
            f" {len(self._live)} allocations). Free buffers that are no longer needed.",
            resource="device memory",
            requested=size,
            limit=largest,
        )

    def _clear(self, gone: Allocation) -> None:
        """Make the bytes of a released allocation zero, by giving whole pages back if they are
        many."""
        start, end = gone.address - self._base, gone.address + gone.size - self._base
        if _DONT_NEED is None or gone.size < RETURNED_BYTES:
            self._bytes[start:end] = 0
            return
        first, last = -(-start // mmap.PAGESIZE), end // mmap.PAGESIZE
        self._bytes[start : first * mmap.PAGESIZE] = 0
        self._map.madvise(_DONT_NEED, first * mmap.PAGESIZE, (last - first) * mmap.PAGESIZE)
        self._bytes[last * mmap.PAGESIZE : end] = 0


WRITTEN_BITS = 32
"""Bits of written bytes in a word of `DeviceMemory.unwritten`."""


def unwritten_bits(size: int) -> npt.NDArray[np.int64]:
    """Returns the bits of so many bytes, none of them written."""
    return np.zeros(-(-size // WRITTEN_BITS), np.int64)


_DONT_NEED: int | None = getattr(mmap, "MADV_DONTNEED", None) if sys.platform == "linux" else None
"""The advice that turns pages back to zeros; only Linux promises that it does."""

_NO_RESERVE = {"linux": 0x4000, "darwin": 0x40}.get(sys.platform, 0)
"""MAP_NORESERVE, which Python names from 3.13 on."""


def _reserve(size: int) -> mmap.mmap:
    """Reserve `size` bytes, or half as often as needed where the system does not allow it."""
    try:
        reserved = _map(size)
    except OSError as refusal:
        if size // 2 >= SMALLEST:
            return _reserve(size // 2)
        raise LaunchError(
            f"the system does not let this process reserve {size:,} bytes of addresses for a"
            f" device ({refusal}); raise its limit on virtual memory (`ulimit -v`)",
            resource="host memory",
            requested=size,
        ) from None
    huge = getattr(mmap, "MADV_HUGEPAGE", None)
    if huge is not None:
        _advise(reserved, huge)
    return reserved


def _map(size: int) -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    return mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)


def _advise(reserved: mmap.mmap, advice: int) -> None:
    """Large pages are a wish: a kernel built without them says no."""
    try:
        reserved.madvise(advice)
    except OSError:
        return


def _distance(allocation: Allocation, address: int) -> int:
    if address < allocation.address:
        return allocation.address - address
    return max(0, address - (allocation.address + allocation.size) + 1)
