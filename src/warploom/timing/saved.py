"""Saves the state of a replay to a file, and loads it."""

from __future__ import annotations

import struct
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile, ZipFile

import numpy as np

from warploom.core.errors import WarploomError
from warploom.core.output_files import writing
from warploom.timing.engine.state import Words

MOST_BYTES = 1 << 30
"""Files that unpack to more bytes are refused."""

FAILURES = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    SyntaxError,
    MemoryError,
    RecursionError,
    NotImplementedError,
    RuntimeError,
    TokenError,
    BadZipFile,
    zlib.error,
    struct.error,
)
"""Exceptions that zipfile and NumPy raise for damaged files."""

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
        try:
            with ZipFile(path) as file:
                size = sum(part.file_size for part in file.infolist())
            if size > MOST_BYTES:
                raise ValueError(
                    f"it unpacks to {size:,} bytes, and at most {MOST_BYTES:,} are read"
                )
            with np.load(path, allow_pickle=False) as arrays:
                parts = {
                    name: arrays[name if name in arrays else OLD_NAMES.get(name, name)]
                    for name in cls.__dataclass_fields__
                }
            if not all(isinstance(part, np.ndarray) for part in parts.values()):
                raise ValueError("a part of it is no array")
            if any(part.dtype != np.int64 for part in parts.values()):
                raise ValueError("its words are not integers of 64 bits")
            return cls(int(parts.pop("now")), **parts)
        except FAILURES as error:
            reason = str(error) or type(error).__name__
            raise WarploomError(f"{path} is no state of a replay: {reason}") from None
