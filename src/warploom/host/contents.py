"""Contents of buffers as the command line writes them, after `TYPE[SHAPE]=`:

    zeros   ones   arange                       0, 1, or the index
    7   -2.5                                    this number everywhere
    1,2,3,4                                     these numbers
    random   random:SEED                        floats from 0 to 1, integers of the whole range
    uniform:LOW:HIGH   uniform:LOW:HIGH:SEED    from LOW on, below HIGH
    normal:MEAN:DEVIATION[:SEED]                normally distributed
    FILE.npy   FILE.csv   FILE.txt   FILE.bin   the numbers of a file (.bin: its bytes)

The seed is 0 by default, so that one command gives one content.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import numpy as np

from warploom.core.byte_order import in_device_order
from warploom.host.buffer import Array

Element = type[np.number[Any]]

SUFFIXES = (".npy", ".csv", ".txt", ".bin")
"""The files that hold contents."""

KINDS = (
    "zeros, ones, arange, a number, comma-separated numbers, random, uniform:LOW:HIGH, "
    "normal:MEAN:SD"
)

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
"""A pattern of a number in a content."""
_NUMBERS = re.compile(rf"{NUMBER}(?:,{NUMBER})*")
_RANDOM = re.compile(r"random(?::(?P<seed>\d{1,19}))?")
_DISTRIBUTION = re.compile(
    rf"(?P<kind>uniform|normal):(?P<first>{NUMBER}):(?P<second>{NUMBER})(?::(?P<seed>\d{{1,19}}))?"
)


class ContentError(ValueError):
    """A content that cannot be made, with the reason."""


def make_content(content: str, element: Element, count: int) -> Array:
    """Returns `count` elements of a content. Raises ContentError for one that is not understood,
    MemoryError for one that is too large."""
    if content in ("zeros", "ones"):
        return np.zeros(count, element) if content == "zeros" else np.ones(count, element)
    if content == "arange":
        return np.arange(count).astype(element)
    if content.endswith(SUFFIXES):
        return _fitted(read_array(content, element), element, count, content)
    if _NUMBERS.fullmatch(content):
        return _written(content, element, count)
    if found := _RANDOM.fullmatch(content):
        return _random(np.random.default_rng(int(found["seed"] or 0)), element, count)
    if found := _DISTRIBUTION.fullmatch(content):
        generator = np.random.default_rng(int(found["seed"] or 0))
        draw = generator.uniform if found["kind"] == "uniform" else generator.normal
        drawn = draw(float(found["first"]), float(found["second"]), count)
        whole = np.floor(drawn) if issubclass(element, np.integer) else drawn
        return _converted(whole, element)
    raise ContentError(f"{content!r} is neither one of {KINDS} nor a file ({', '.join(SUFFIXES)})")


def read_array(file: str, element: Element | None = None) -> Array:
    """Returns the array of a file; `element` is the type of numbers in text and of bytes. Raises
    ContentError where it cannot be read."""
    try:
        return in_device_order(_loaded(Path(file), element))
    except ContentError:
        raise
    except Exception as error:  # of a damaged file NumPy raises whatever it stumbles over
        reason = str(error) or type(error).__name__
        raise ContentError(f"{file} cannot be loaded ({reason})") from None


def _loaded(file: Path, element: Element | None) -> Array:
    if file.suffix == ".bin":
        return np.fromfile(file, element or np.uint8)
    if file.suffix != ".npy":
        separator = "," if file.suffix == ".csv" else None
        numbers: Any = np.loadtxt(file, delimiter=separator, encoding="utf-8", ndmin=1)
        return _converted(numbers, element) if element is not None else numbers
    # Opened here: NumPy leaves what it opens open where an archive is damaged.
    with file.open("rb") as opened:
        loaded: Any = np.load(opened, allow_pickle=False)
    if not isinstance(loaded, np.ndarray):
        raise ContentError(f"{file} contains several arrays; save a single array (np.save)")
    return cast(Array, loaded)


def _fitted(loaded: Array, element: Element, count: int, file: str) -> Array:
    """Returns a loaded array, of the type and number of elements that are asked for."""
    if loaded.dtype != element or loaded.size != count:
        raise ContentError(
            f"the file contains an array of shape {loaded.shape} and type {loaded.dtype}: {file}"
        )
    return loaded.reshape(-1)


def _written(content: str, element: Element, count: int) -> Array:
    """Returns one number everywhere, or all elements as they are written."""
    try:
        numbers = [_number(number, element) for number in content.split(",")]
    except (ValueError, OverflowError):
        raise ContentError(
            f"{content!r} contains a number that does not fit in {np.dtype(element)}"
        ) from None
    if len(numbers) == 1:
        return np.full(count, numbers[0], element)
    if len(numbers) != count:
        raise ContentError(
            f"it contains {len(numbers)} numbers, but the buffer has {count} elements"
        )
    return np.array(numbers, element)


def _number(text: str, element: Element) -> np.number[Any]:
    """Returns a number of a type. Raises ValueError or OverflowError for one that it does not
    have."""
    made: Any = element  # the constructors of NumPy's types refuse numbers beyond their range
    return made(int(text) if issubclass(element, np.integer) else float(text))


def _converted(numbers: Array, element: Element) -> Array:
    """Returns numbers in another type. Raises ContentError for integers beyond its range."""
    if issubclass(element, np.integer):
        limits = np.iinfo(element)
        if numbers.size and (numbers.min() < limits.min or numbers.max() > limits.max):
            raise ContentError(f"it contains numbers outside the range of {np.dtype(element)}")
    return numbers.astype(element)


def _random(generator: np.random.Generator, element: Element, count: int) -> Array:
    if issubclass(element, np.floating):
        return generator.random(count).astype(element)
    return np.frombuffer(generator.bytes(count * np.dtype(element).itemsize), element)
