"""Keeps copies of pages: some in memory, those beyond a limit in a temporary file.

A file's pages are the system's to drop from memory and to read again; so copies of much device
memory do not take the host's.
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
"""Bytes of a page."""

MEMORY_BYTES = 128 << 20
"""Bytes of pages that are kept in memory."""

CHUNK_PAGES = 1 << 10
"""Pages by which the file grows."""


class PageStore:
    """Keeps copies of pages of at most PAGE_BYTES, each as long as somebody holds it. `in_memory`
    and `in_file` are the bytes of those that are held."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._limit = memory_bytes
        self.in_memory = self.in_file = 0
        self._free: list[Bytes] = []
        self._file: IO[bytes] | None = None

    def keep(self, part: Bytes) -> Bytes:
        """Return a copy of a page."""
        size = len(part)
        slot = None if self.in_memory + size <= self._limit else self._slot()
        if slot is None:
            kept = part.copy()
            self.in_memory += size
            weakref.finalize(kept, self._drop, size)
            return kept
        kept = slot[:size]
        kept[:] = part
        self.in_file += size
        weakref.finalize(kept, self._give_back, slot, size)
        return kept

    def _drop(self, size: int) -> None:
        self.in_memory -= size

    def _give_back(self, slot: Bytes, size: int) -> None:
        self.in_file -= size
        self._free.append(slot)

    def _slot(self) -> Bytes | None:
        """Return a free page of the file, None where it cannot grow."""
        if not self._free:
            try:
                self._grow()
            except OSError:
                return None
        return self._free.pop()

    def _grow(self) -> None:
        """Append pages to the file, for which there is room: a page that the disk had no room for
        would end the process when it is written."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="warploom-pages-")  # noqa: SIM115
        start, size = self._file.seek(0, os.SEEK_END), CHUNK_PAGES * PAGE_BYTES
        if not hasattr(os, "posix_fallocate"):
            raise OSError("this system does not promise room on the disk")
        os.posix_fallocate(self._file.fileno(), start, size)
        chunk = np.frombuffer(mmap.mmap(self._file.fileno(), size, offset=start), np.uint8)
        self._free += [chunk[at : at + PAGE_BYTES] for at in range(0, size, PAGE_BYTES)]
