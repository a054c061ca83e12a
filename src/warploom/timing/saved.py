"""Saves the state of a replay to a file, and loads it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, cast
from zipfile import ZipFile

import numpy as np

from warploom.core.input_files import Archive, reading
from warploom.core.output_files import writing
from warploom.timing.engine.state import Words

MOST_BYTES = 1 << 30
"""Files that unpack to more bytes are refused."""

OLD_NAMES = {"fingerprint": "of_what", "dispatcher_state": "dealt"}
"""The names of arrays in older files, by the field of `ReplayState` that they hold."""


@dataclass(frozen=True)
class ReplayState:
    """Holds a replay at the cycle `now`: the state of its SMs and of the memory system
    (`timing.records` has the fields), counters (`totals`), how many blocks had ended when (`ends`),
    and the state of the block dispatcher (`dispatcher_state`).

    `parameters` and checksums of the record (`fingerprint`) identify the launch and the options
    that the state belongs to. All are 64-bit words; the names of the fields are those of the arrays
    in the file; older files have the names of OLD_NAMES.
    """

    now: int
    parameters: Words
    fingerprint: Words
    sms: Words
    memory: Words
    totals: Words
    ends: Words
    dispatcher_state: Words

    def save(self, path: str | Path) -> None:
        """Writes the state to a file (NumPy's .npz, compressed), replacing one there. Raises
        WarploomError."""
        with writing(path), Path(path).open("wb") as file:
            np.savez_compressed(file, **asdict(self))

    @classmethod
    def load(cls, path: str | Path) -> ReplayState:
        """Returns the state that a file holds. Raises WarploomError for any other file, or one that
        unpacks to more than MOST_BYTES."""
        with reading(path, "is not a valid replay state"):
            with ZipFile(path) as file:
                archive = Archive(file, MOST_BYTES)
                parts = {name: _words(archive, name) for name in cls.__dataclass_fields__}
            return cls(int(parts.pop("now")), **parts)


def _words(archive: Archive, name: str) -> Words:
    """Returns the array of a field. Raises ValueError for one of other values, and what
    `Archive.read` and NumPy raise."""
    file, old = f"{name}.npy", f"{OLD_NAMES.get(name)}.npy"
    data = archive.read(old if old in archive else file)
    words: Any = np.load(BytesIO(data), allow_pickle=False)
    if getattr(words, "dtype", None) != np.int64:
        raise ValueError(f"{file} does not contain 64-bit integers")
    return cast(Words, words)
