"""Times of configurations that were measured on hardware: given by the user, or read from the
result files of tuners.

Read are Kernel Tuner's cache files (also while it still writes them) and results in the T4 format
(https://github.com/odgaard/TuningSchema, version 1.0.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from warploom.core.errors import WarploomError
from warploom.core.input_files import InputFileError, decode_json, read_limited, reading
from warploom.tuning.space import Configuration, Value, plain

MeasuredTimes = Mapping[Any, float] | str | Path
"""Seconds by configuration, or a file. A key has the values of the space's parameters in their
order, as a tuple, or as a text with commas; a single parameter needs no tuple."""

Row = tuple[dict[str, Any], float]
"""A configuration, and the seconds that it took."""

_UNITS = {"s": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6, "ns": 1e-9}
_NEVER = 1e9
"""Seconds. Older cache files have such a time for what did not run."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The seconds that a configuration took on hardware."""

    configuration: Configuration
    seconds: float


def read_measured(given: MeasuredTimes, space: Mapping[str, Sequence[Any]]) -> list[Measurement]:
    """Returns what was measured of the configurations of a space. Raises WarploomError for a file
    that cannot be read, a key that is no configuration, and times that are no positive numbers."""
    if isinstance(given, str | Path):
        return _of_file(Path(given), tuple(space))
    return [Measurement(_keyed(key, space), _positive(key, time)) for key, time in given.items()]


def _keyed(key: Any, space: Mapping[str, Sequence[Any]]) -> Configuration:
    if isinstance(key, str):
        parts: list[Any] = list(key.split(","))
    else:
        parts = [*cast(tuple[Any, ...], key)] if isinstance(key, tuple) else [key]
    if len(parts) != len(space):
        raise WarploomError(
            f"measured: the key {key!r} has {len(parts)} values, but the space has {len(space)} "
            f"parameters: {', '.join(space)}"
        )
    return {
        name: _value_of(key, name, part, space[name])
        for name, part in zip(space, parts, strict=True)
    }


def _value_of(key: Any, name: str, part: Any, values: Sequence[Any]) -> Value:
    for value in values:
        if str(plain(name, value)) == str(plain(name, part)):
            return plain(name, value)
    raise WarploomError(f"measured: in the key {key!r}, {part!r} is not a value of {name}")


def _positive(key: Any, time: Any) -> float:
    if isinstance(time, bool) or not isinstance(time, int | float) or not 0 < time < _NEVER:
        raise WarploomError(
            f"measured: the time of {key!r}, {time!r} seconds, is not a positive number"
        )
    return float(time)


# ---- files --------------------------------------------------------------------------------------


def _of_file(path: Path, names: tuple[str, ...]) -> list[Measurement]:
    content = read_json(path)
    if "cache" in content:
        rows = _rows(path, _of_cache(content["cache"]))
    elif "results" in content:
        rows = _rows(path, _of_results(content))
    else:
        raise WarploomError(
            f"{path} is neither a Kernel Tuner cache file nor a results file in the T4 format"
        )
    wanted = [name for name in names if name != "device"]
    found: list[Measurement] = []
    for configuration, seconds in rows:
        missing = [name for name in wanted if name not in configuration]
        if missing:
            raise WarploomError(
                f"{path} has configurations without these parameters of the search space: "
                f"{', '.join(missing)}"
            )
        kept = {name: plain(name, configuration[name]) for name in names if name in configuration}
        found.append(Measurement(kept, seconds))
    return found


def _rows(path: Path, rows: Iterator[Row]) -> list[Row]:
    """Returns the rows of a file. Raises InputFileError where its values have other types."""
    try:
        return msgspec.convert([*rows], list[Row])
    except (AttributeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise InputFileError(
            f"{path} does not have the fields of a Kernel Tuner cache file or of a results file in "
            f"the T4 format: {error}"
        ) from None


def read_json(path: Path) -> dict[str, Any]:
    """Returns the object in a file; braces that end it may be missing, as in a cache file that is
    still written."""
    with reading(path, "cannot be read"):
        text = read_limited(path).decode().rstrip().removesuffix(",")
    reason = "it has another type"
    for end in ("", "}}"):
        try:
            content = decode_json(text + end)
        except ValueError as error:
            reason = str(error)
            continue
        if isinstance(content, dict):
            return cast(dict[str, Any], content)
    raise WarploomError(f"{path} is not a JSON object: {reason}")


def _of_cache(cache: dict[str, dict[str, Any]]) -> Iterator[tuple[dict[str, Any], float]]:
    """Yields what ran; times of cache files are milliseconds."""
    for row in cache.values():
        time = row.get("time")
        if isinstance(time, int | float) and 0 < time * 1e-3 < _NEVER:
            yield row, time * 1e-3


def _of_results(content: dict[str, Any]) -> Iterator[tuple[dict[str, Any], float]]:
    unit: str = content.get("metadata", {}).get("timeunit", "seconds")
    for row in content["results"]:
        objective: str = (row.get("objectives") or ["time"])[0]
        for one in row.get("measurements", ()):
            value = one.get("value")
            if one.get("name") != objective or not isinstance(value, int | float):
                continue
            if row.get("invalidity", "correct") == "correct":
                yield row["configuration"], value * _unit(one.get("unit") or unit)


def _unit(name: str) -> float:
    if name not in _UNITS:
        raise WarploomError(
            f"results have times in {name!r}; supported units are {', '.join(_UNITS)}"
        )
    return _UNITS[name]
