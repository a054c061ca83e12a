"""The state of a replay, in memory and as a file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from warploom.core.errors import WarploomError
from warploom.timing.state import Words


@dataclass(frozen=True)
class State:
    """A replay at the cycle `now`: its SMs and the memory behind them (`timing.words` says what
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
    def load(cls, path: str | Path) -> State:
        """Read it back. Raises WarploomError for what is no such file."""
        try:
            with np.load(path) as found:
                parts = {name: found[name] for name in cls.__dataclass_fields__}
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise WarploomError(f"{path} is no state of a replay: {error}") from None
        return cls(int(parts.pop("now")), **parts)
