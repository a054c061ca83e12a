"""The state of a replay, in memory and as a file."""

from __future__ import annotations

import struct
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile, ZipFile

import numpy as np

from warploom.core.errors import WarploomError
from warploom.timing.engine.state import Words

MOST_BYTES = 1 << 30
"""Files that unpack to more are refused."""

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
"""Exceptions of zipfile and NumPy for damaged files."""


@dataclass(frozen=True)
class ReplayState:
    """A replay at the cycle `now`: its SMs and the memory behind them (`timing.layout` says what
    stands where), what was counted, when blocks ended, which were dealt. `parameters` and sums over
    the record (`of_what`) say which replay it is of. All of it is 64-bit words."""

    now: int
    parameters: Words
    of_what: Words
    sms: Words
    memory: Words
    totals: Words
    ends: Words
    dealt: Words

    def save(self, path: str | Path) -> None:
        """Write it to a file (NumPy's .npz)."""
        with Path(path).open("wb") as file:
            np.savez_compressed(file, **asdict(self))

    @classmethod
    def load(cls, path: str | Path) -> ReplayState:
        """Read it back. Raises WarploomError for what is no such file, or unpacks to more than
        MOST_BYTES."""
        try:
            with ZipFile(path) as file:
                size = sum(part.file_size for part in file.infolist())
            if size > MOST_BYTES:
                raise ValueError(
                    f"it unpacks to {size:,} bytes, and at most {MOST_BYTES:,} are read"
                )
            with np.load(path, allow_pickle=False) as arrays:
                parts = {name: arrays[name] for name in cls.__dataclass_fields__}
            if not all(isinstance(part, np.ndarray) for part in parts.values()):
                raise ValueError("a part of it is no array")
            if any(part.dtype != np.int64 for part in parts.values()):
                raise ValueError("its words are not integers of 64 bits")
            return cls(int(parts.pop("now")), **parts)
        except FAILURES as error:
            reason = str(error) or type(error).__name__
            raise WarploomError(f"{path} is no state of a replay: {reason}") from None
