"""Reserves host memory for a device: anywhere, or at a chosen address for device memory that has to
be where an earlier process had it."""

from __future__ import annotations

import ctypes
import mmap
import sys
import weakref
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.core.errors import LaunchError, WarploomError

_FIXED_NOREPLACE = 0x100000 if sys.platform == "linux" else 0
"""MAP_FIXED_NOREPLACE; on other systems the address is only a hint, which is checked afterwards."""

_NO_RESERVE = {"linux": 0x4000, "darwin": 0x40}.get(sys.platform, 0)
"""MAP_NORESERVE, which Python's mmap module defines only from 3.13 on."""

_FAILED = (1 << 64) - 1

SMALLEST = 256 << 20
"""The smallest range that is worth reserving; a system that refuses even this many bytes cannot
have a device."""


class Reservation:
    """A mapping of `size` zero bytes at `address`, a multiple of the page size; `bytes` is a view
    of them. It lives as long as that view, or one of the view's own, does. `DeviceMemory` uses it
    instead of an `mmap`."""

    def __init__(self, address: int, size: int) -> None:
        """Maps the bytes. Raises WarploomError if the addresses are in use, or on Windows."""
        if sys.platform == "win32":
            raise WarploomError(
                "memory can be restored at its original addresses only on Linux and macOS"
            )
        self._libc: Any = ctypes.CDLL(None)
        self._libc.mmap.restype = ctypes.c_uint64
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE | _FIXED_NOREPLACE
        request = ctypes.c_uint64(address), ctypes.c_uint64(size)
        mapped_address = self._libc.mmap(*request, protection, flags, -1, ctypes.c_int64(0))
        if mapped_address != address:
            if mapped_address != _FAILED:
                self._libc.munmap(ctypes.c_uint64(mapped_address), ctypes.c_uint64(size))
            raise WarploomError(
                f"the {size:,} bytes at {address:#x} are already in use in this process: run "
                "the command again"
            )
        self.address = address
        mapped = (ctypes.c_uint8 * size).from_address(address)
        # All views refer to `mapped`; at the end of the process they may still be in use.
        weakref.finalize(mapped, self._libc.munmap, *request).atexit = False
        self.bytes: npt.NDArray[np.uint8] = np.ctypeslib.as_array(mapped)
        _advise_large_pages(self)

    def madvise(self, advice: int, start: int = 0, length: int | None = None) -> None:
        """Advises the system about `length` bytes from offset `start` (None: to the end), as
        `mmap.madvise` does, but ignores errors."""
        count = len(self.bytes) - start if length is None else length
        start_address = ctypes.c_uint64(self.address + start)
        self._libc.madvise(start_address, ctypes.c_uint64(count), advice)

    def close(self) -> None:
        """Deletes the view that is the reservation's own; the pages go with the last one."""
        self.bytes = np.empty(0, np.uint8)


def reserve(size: int) -> mmap.mmap:
    """Returns a mapping that reserves `size` bytes of addresses, or half of that, and so on, if the
    system refuses; in large pages where the system has them. Raises LaunchError if half of a
    refused size is below SMALLEST."""
    try:
        reserved = _map(size)
    except OSError as refusal:
        if size // 2 >= SMALLEST:
            return reserve(size // 2)
        raise LaunchError(
            f"the system does not let this process reserve {size:,} bytes of address space for a "
            f"device ({refusal}); raise its virtual memory limit (`ulimit -v`)",
            resource="host memory",
            requested=size,
        ) from None
    _advise_large_pages(reserved)
    return reserved


def _map(size: int) -> mmap.mmap:
    """Returns an anonymous mapping of `size` bytes, without reserving swap space for it where the
    system has that choice. Raises OSError if the system refuses."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    return mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)


def _advise_large_pages(reserved: mmap.mmap | Reservation) -> None:
    """Advises the system to use large pages, which make first touches and TLB misses of large
    buffers cheaper; does nothing if it rejects that, as a Linux kernel without them does."""
    huge = getattr(mmap, "MADV_HUGEPAGE", None)
    if huge is not None:
        with suppress(OSError):
            reserved.madvise(huge)
