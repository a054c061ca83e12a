"""Holds the textures and surfaces of a device: their handles, and a table with a row for each
handle that describes it, from which kernels read texels (`texture.descriptors`).

Owning the texels, and the options that users have, are left to the host API.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from warploom.core.mutex import FinalizerLock
from warploom.texture import descriptors as d
from warploom.texture.descriptors import TextureHeader, TextureRow

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TextureDescription:
    """One texture or surface, as the host API makes it: sizes in texels, and the addresses of its
    mipmap levels in device memory.

    `kind`, `geometry`, `format`: of `texture.descriptors`. The faces of cubes count as layers.
    `as_float`: integer texels are normalized floats (`texture.descriptors`). `sampler`: packed
    options of filtering and addressing. `border`: the words of the border color. `selects` and
    `order`: which component of a texel each of a result is, and the code of that; those of the
    first components if left out.
    """

    kind: int
    geometry: str
    format: str
    components: int
    extents: tuple[int, int, int]
    levels: tuple[int, ...]
    layers: int = 1
    as_float: int = 0
    sampler: int = d.SAMPLER_TAG
    border: tuple[int, ...] = (0, 0, 0, 0)
    selects: d.Selects | None = None
    order: int = 0


@dataclass(frozen=True, slots=True)
class LocatedTable:
    """An immutable table of descriptions, and the address of its first word."""

    words: Words
    address: int


class TextureTable:
    """The descriptions of a device whose memory is `size` bytes at `base`, one row for each handle.
    Handles are never reused, so a released handle stays invalid."""

    def __init__(self, base: int, size: int) -> None:
        """Starts without handles; the table for kernels is built when it is first needed. `base`
        and `size` are the start and the bytes of device memory."""
        self._base, self._size = base, size
        self._rows: list[Words] = []
        self._table: LocatedTable | None = None
        self._lock = FinalizerLock("use device memory")

    def add(self, description: TextureDescription) -> int:
        """Appends the row of a description, drops the cached table, and returns the new handle:
        HANDLE_TAG plus the row's number."""
        with self._lock:
            self._rows.append(_row(description, self._base))
            self._table = None
            return d.HANDLE_TAG + len(self._rows) - 1

    def remove(self, handle: int) -> None:
        """Invalidates a handle that `add` returned: instructions that use it fault."""
        with self._lock:
            self._forget(handle)

    def drop(self, handle: int) -> None:
        """Invalidates a handle from a finalizer, which may run in the middle of another call: now,
        or as soon as the lock is released."""
        self._lock.run_locked(partial(self._forget, handle))

    def _forget(self, handle: int) -> None:
        """Overwrites a handle's row with zeros, a row of no kind, which texture instructions reject
        as an invalid handle, and drops the cached table; the caller holds the lock."""
        self._rows[handle - d.HANDLE_TAG] = np.zeros(TextureRow.WORDS, np.int64)
        self._table = None

    @property
    def rows(self) -> list[list[int]]:
        """Returns the words of each handle's row, in the order of the handles; can be set, to open
        a core file."""
        with self._lock:
            return [row.tolist() for row in self._rows]

    @rows.setter
    def rows(self, rows: list[list[int]]) -> None:
        """Replaces all rows, and drops the cached table."""
        with self._lock:
            self._rows = [np.array(row, np.int64) for row in rows]
            self._table = None

    def table(self) -> LocatedTable:
        """Returns all descriptions, after a header, as texture instructions read them. The table is
        immutable and cached: the next change creates another one."""
        table = self._table
        if table is not None:
            return table
        with self._lock:
            words = np.concatenate([np.zeros(TextureHeader.WORDS, np.int64), *self._rows])
            header = TextureHeader(words, 0)
            header.count, header.base, header.size = len(self._rows), self._base, self._size
            self._table = table = LocatedTable(words, int(words.ctypes.data))
            return table


def _row(description: TextureDescription, base: int) -> Words:
    """Returns the row of a description in the table (`texture.descriptors`); level addresses are
    relative to `base`."""
    words = np.zeros(TextureRow.WORDS, np.int64)
    row = TextureRow(words, 0)
    row.kind, row.geometry = description.kind, d.GEOMETRIES.index(description.geometry)
    row.format, row.components = d.FORMATS.index(description.format), description.components
    row.width, row.height, row.depth = description.extents
    row.layers, row.levels = description.layers, len(description.levels)
    row.as_float, row.sampler = description.as_float, description.sampler
    row.border[:] = description.border
    components = description.components
    row.selects = d.selects_word(description.selects or d.default_selects(components))
    row.order = description.order or d.default_order(components)
    row.level_at[: row.levels] = [address - base for address in description.levels]
    return words
