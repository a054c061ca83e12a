"""Stores in the disk cache how long a kernel has run in baseline code.

A program of less than a second ends before its kernels are worth optimizing, however often it runs;
the sum over its runs states that they are.
"""

from __future__ import annotations

import struct

from warploom.llvm import disk_cache

KIND = "seconds"
"""The kind under which the disk cache holds the seconds of a kernel."""

_CONTENT = struct.Struct("<d")

LEAST = 0.01
"""Fewer seconds of one process are not written."""


class BaselineSeconds:
    """Stores the seconds of one kernel in the cache on disk. They are to be written once they are
    `due` or more: whenever those of this process have grown by a quarter, so that nothing has to be
    done at the end of a process, and short processes count however many there were before. If two
    processes write at once, one of them counts."""

    def __init__(self, key: str) -> None:
        """Reads the seconds of earlier processes, 0 if the cache has none; `key` is that of the
        kernel's baseline code."""
        self._key = key
        content = disk_cache.find(KIND, key)
        self.before: float = 0.0 if content is None else _CONTENT.unpack(content)[0]
        self.due = self.before + LEAST

    def write(self, seconds: float) -> None:
        """Writes the seconds of all processes so far, and sets `due` to the sum at which they are
        to be written next."""
        self.due = self.before + 1.25 * (seconds - self.before)
        disk_cache.store(KIND, self._key, _CONTENT.pack(seconds))
