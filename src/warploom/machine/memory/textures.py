"""The textures and surfaces of a device: which handles there are, and what stands behind each.

The rules that read texels get a table of words (`texture.descriptors`); who owns the texels, and
what users can choose, is for the host API.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from warploom.machine.memory.finalizers import FinalizerLock
from warploom.texture import descriptors as d

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TextureDescription:
    """One texture or surface: sizes in texels, where its levels begin in device memory.

    `geometry` and `format` are of `descriptors.GEOMETRIES` and `FORMATS`; the faces of cubes count
    as layers. `border` are the words of the texels around it.
    """

    kind: int
    geometry: str
    format: str
    components: int
    extents: tuple[int, int, int]
    levels: tuple[int, ...]
    layers: int = 1
    as_float: bool = False
    sampler: int = d.SAMPLER_TAG
    border: tuple[int, ...] = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class LocatedTable:
    """The words of a table, and where they are."""

    words: Words
    address: int


class TextureTable:
    """The descriptions of a device whose memory is at `base`, `size` bytes long.

    A handle is never given twice, so that one that was released stays without meaning.
    """

    def __init__(self, base: int, size: int) -> None:
        self._base, self._size = base, size
        self._rows: list[Words] = []
        self._table: LocatedTable | None = None
        self._lock = FinalizerLock()

    def add(self, description: TextureDescription) -> int:
        """Return a new handle."""
        with self._lock:
            self._rows.append(_row(description, self._base))
            self._table = None
            return d.HANDLE_TAG + len(self._rows) - 1

    def remove(self, handle: int) -> None:
        """Take a handle's meaning away."""
        with self._lock:
            self._forget(handle)

    def drop(self, handle: int) -> None:
        """Do the same for finalizers, which may come in the midst of another call."""
        self._lock.run_locked(partial(self._forget, handle))

    def _forget(self, handle: int) -> None:
        self._rows[handle - d.HANDLE_TAG] = np.zeros(d.ROW_WORDS, np.int64)
        self._table = None

    @property
    def rows(self) -> list[list[int]]:
        """Return the words of each handle's description, in the order of the handles."""
        with self._lock:
            return [row.tolist() for row in self._rows]

    @rows.setter
    def rows(self, rows: list[list[int]]) -> None:
        with self._lock:
            self._rows = [np.array(row, np.int64) for row in rows]
            self._table = None

    def table(self) -> LocatedTable:
        """Return all rows as the rules read them; it never changes, the next change makes
        another."""
        made = self._table
        if made is not None:
            return made
        with self._lock:
            header = np.zeros(d.HEADER_WORDS, np.int64)
            header[d.COUNT], header[d.BASE] = len(self._rows), self._base
            header[d.SIZE] = self._size
            words = np.concatenate([header, *self._rows])
            self._table = made = LocatedTable(words, int(words.ctypes.data))
            return made


def _row(made: TextureDescription, base: int) -> Words:
    row = np.zeros(d.ROW_WORDS, np.int64)
    row[d.KIND], row[d.GEOMETRY] = made.kind, d.GEOMETRIES.index(made.geometry)
    row[d.FORMAT], row[d.COMPONENTS] = d.FORMATS.index(made.format), made.components
    row[d.WIDTH], row[d.HEIGHT], row[d.DEPTH] = made.extents
    row[d.LAYERS], row[d.LEVELS] = made.layers, len(made.levels)
    row[d.AS_FLOAT], row[d.SAMPLER] = made.as_float, made.sampler
    row[d.BORDER : d.BORDER + 4] = made.border
    row[d.LEVEL_AT : d.LEVEL_AT + len(made.levels)] = [at - base for at in made.levels]
    return row
