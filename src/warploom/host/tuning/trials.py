"""The file that keeps the trials of tunings: a line of JSON for each, added as soon as it is known.

A trial is found again by a digest of all that it depends on: the source, the arguments, the launch,
the compiler's options, the configuration, the figures of its device. What the source includes is
not part of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np

from warploom.core.input_files import read_limited, reading
from warploom.core.output_files import writing
from warploom.devices.catalog import find_device
from warploom.devices.timing import find_timing
from warploom.host.buffer import Array
from warploom.host.programs.ptxas import find_tool, identity
from warploom.tuning.space import Configuration
from warploom.tuning.trial import Trial

if TYPE_CHECKING:
    from warploom.host.tuning.trial import TuneJob


MOST_BYTES = 1 << 30
"""Bytes of a file that is read."""


class Line(msgspec.Struct):
    """A line of the file."""

    key: str
    trial: Trial


class TrialFile:
    """The trials in a file that are of a job. Raises WarploomError where it cannot be used."""

    def __init__(self, path: str | Path, job: TuneJob) -> None:
        self._path, self._job = Path(path), job
        self._base = _digest(replace(job, values=()), *job.values)
        self._known: dict[str, Trial] = {}
        with reading(path, "is not a valid trial cache"):
            data = read_limited(self._path, MOST_BYTES) if self._path.exists() else b""
        # A line that was cut off when a tuning was stopped must not swallow the next.
        self._append(b"" if not data or data.endswith(b"\n") else b"\n")
        for text in data.splitlines():
            try:
                line = msgspec.json.decode(text, type=Line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            self._known[line.key] = line.trial

    def find(self, configuration: Configuration) -> Trial | None:
        """Returns the trial of a configuration, if it is known."""
        return self._known.get(self._key(configuration))

    def keep(self, trial: Trial) -> None:
        """Writes a trial down, if it ran: what was refused is tried again."""
        if trial.costs is not None:
            line = Line(self._key(trial.configuration), trial)
            self._append(msgspec.json.encode(line) + b"\n")

    def _append(self, data: bytes) -> None:
        with writing(self._path), self._path.open("ab") as file:
            file.write(data)

    def _key(self, configuration: Configuration) -> str:
        spec = find_device(str((self._job.fixed | configuration)["device"]))
        tools = [identity(tool) for name in ("ptxas", "nvdisasm") if (tool := find_tool(name))]
        figures = spec, find_timing(spec), tools
        return _digest(self._base, version("warploom"), *figures, sorted(configuration.items()))


def _digest(*parts: Any) -> str:
    """Returns a digest of values by what they hold: of arrays all, of others their text."""
    made = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            array = cast(Array, part)
            made.update(f"{array.dtype}{array.shape}".encode())
            made.update(np.ascontiguousarray(array).tobytes())
        else:
            made.update(repr(part).encode())
        made.update(b"\0")
    return made.hexdigest()
