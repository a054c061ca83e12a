"""Stores copies of memory pages: a limited amount in memory, the rest in a temporary file.

The system may drop a file's pages from memory and read them again, so copies of much device memory
do not exhaust the host's.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from typing import IO

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

PAGE_BYTES = 1 << 16
"""The size of a page in bytes."""

MEMORY_BYTES = 128 << 20
"""The bytes of pages that are held in memory."""

CHUNK_PAGES = 1 << 10
"""The number of pages by which the file grows."""


class PageStore:
    """Stores copies of pages of at most PAGE_BYTES, each for as long as it is referenced (memory
    snapshots hold them). `in_memory` and `in_file` are the bytes of the live copies."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        """`memory_bytes`: the most bytes of copies that are held in memory; further ones go to the
        file."""
        self._limit = memory_bytes
        self.in_memory = self.in_file = 0
        self._free: list[Bytes] = []
        self._file: IO[bytes] | None = None

    def retain(self, page: Bytes) -> Bytes:
        """Returns a copy of a page: in memory if the copies there stay within the limit or the file
        cannot grow, else in the file. Its space is free again when no reference to it is left."""
        size = len(page)
        file_page = None if self.in_memory + size <= self._limit else self._reuse_free_page()
        if file_page is None:
            copied = page.copy()
            self.in_memory += size
            # The caller owns the copy; its space is accounted for until the last reference is gone.
            weakref.finalize(copied, self._drop, size)
            return copied
        copied = file_page[:size]
        copied[:] = page
        self.in_file += size
        weakref.finalize(copied, self._give_back, file_page, size)
        return copied

    def _drop(self, size: int) -> None:
        """Subtracts from `in_memory` the `size` bytes of a copy that is no longer referenced."""
        self.in_memory -= size

    def _give_back(self, slot: Bytes, size: int) -> None:
        """Makes `slot`, a page of the file, free again, and subtracts from `in_file` the `size`
        bytes of the copy that it held."""
        self.in_file -= size
        self._free.append(slot)

    def _reuse_free_page(self) -> Bytes | None:
        """Returns a free page of the mapped file, of PAGE_BYTES, and removes it from the free ones;
        grows the file if there is none, and returns None if it cannot grow."""
        if not self._free:
            try:
                self._grow()
            except OSError:
                return None
        return self._free.pop()

    def _grow(self) -> None:
        """Appends CHUNK_PAGES free pages to the file, created on first use, and allocates disk
        space for them: a write to a mapped page without disk space would kill the process (SIGBUS).
        Raises OSError if that fails."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="warploom-pages-")  # noqa: SIM115
        start, size = self._file.seek(0, os.SEEK_END), CHUNK_PAGES * PAGE_BYTES
        if not hasattr(os, "posix_fallocate"):
            raise OSError("this system cannot reserve disk space for a file")
        os.posix_fallocate(self._file.fileno(), start, size)
        chunk = np.frombuffer(mmap.mmap(self._file.fileno(), size, offset=start), np.uint8)
        self._free += [chunk[offset : offset + PAGE_BYTES] for offset in range(0, size, PAGE_BYTES)]
