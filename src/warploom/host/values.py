"""Kernel arguments as the command line writes them: numbers and buffers.

    42   -1   0x10   2.5   true                     a number
    f32[1024]=ones                                  a buffer: type, shape, content
    y:i32[64x64]=arange                             a buffer with a name
    in.npy                                          a buffer from a file
    local:1024                                      so many bytes of local memory (OpenCL's)

Contents are zeros, ones, arange, random:SEED (floats from 0 to 1, integers of the whole range) or
a .npy file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from warploom.core.byte_order import in_device_order
from warploom.core.errors import LaunchError, WarploomError
from warploom.host.buffer import Array
from warploom.host.local_memory import LocalMemory

DTYPES: dict[str, type[np.number[Any]]] = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
}

_BUFFER = re.compile(r"(?:(?P<name>\w+):)?(?P<type>\w+)\[(?P<shape>[^\]]*)\]=(?P<content>.+)")
_LOCAL = re.compile(r"local:(\d+)")
_NAMED_FILE = re.compile(r"(?:(?P<name>\w+):)?(?P<file>.+\.npy)")


@dataclass(frozen=True, slots=True)
class BufferArgument:
    """A buffer: the name that the command line gave it, else its position, and its content."""

    name: str
    content: Array


Argument = int | float | BufferArgument | LocalMemory


def parse_arguments(texts: Sequence[str]) -> list[Argument]:
    """Returns the arguments that the texts describe. Raises WarploomError where one cannot be read,
    and where two buffers have one name."""
    buffer_names(texts)
    return [_parse(text, position) for position, text in enumerate(texts)]


def buffer_names(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of the buffers that the texts describe, without making them. Raises
    WarploomError where two have one name."""
    names: list[str] = []
    for position, text in enumerate(texts):
        found = _BUFFER.fullmatch(text) or _NAMED_FILE.fullmatch(text)
        if not found:
            continue
        name = found["name"] or str(position)
        if name in names:
            raise WarploomError(f"--arg {text!r}: another buffer is called {name} already.")
        names.append(name)
    return tuple(names)


def _parse(text: str, position: int) -> Argument:
    if found := _BUFFER.fullmatch(text):
        content = _content(text, found["type"], found["shape"], found["content"])
        return BufferArgument(found["name"] or str(position), content)
    if found := _LOCAL.fullmatch(text):
        return LocalMemory(int(found[1]))
    if found := _NAMED_FILE.fullmatch(text):
        return BufferArgument(found["name"] or str(position), _load(text, found["file"]))
    return _number(text)


def _number(text: str) -> int | float:
    if text in ("true", "false"):
        return int(text == "true")
    for convert in (lambda: int(text, 0), lambda: float(text)):
        try:
            number = convert()
        except ValueError:
            continue
        if isinstance(number, float) and math.isinf(number) and "inf" not in text.lower():
            raise _unreadable(text, "it is beyond the largest f64")
        return number
    raise _unreadable(text, "it is neither a number nor a buffer")


def _content(text: str, type: str, shape: str, content: str) -> Array:
    dtype = DTYPES.get(type)
    if dtype is None:
        raise _unreadable(text, f"its type is none of {', '.join(DTYPES)}")
    try:
        dims = tuple(int(n) for n in re.split("[x,]", shape))
    except ValueError:
        raise _unreadable(text, "its shape is not numbers with x between them") from None
    if min(dims) < 0:
        raise _unreadable(text, "its shape is negative")
    if content.endswith(".npy"):
        return _fitted(text, _load(text, content), dtype, dims)
    try:
        return _made(text, content, dtype, math.prod(dims)).reshape(dims)
    except (MemoryError, ValueError, OverflowError):
        size = math.prod(dims) * np.dtype(dtype).itemsize
        raise LaunchError(
            f"--arg {text!r}: the host has no memory for its {size:,} bytes. Make it smaller.",
            resource="host memory",
            requested=size,
        ) from None


def _made(text: str, content: str, dtype: type[np.number[Any]], count: int) -> Array:
    kind, _, seed = content.partition(":")
    if content == "zeros":
        return np.zeros(count, dtype)
    if content == "ones":
        return np.ones(count, dtype)
    if content == "arange":
        return np.arange(count).astype(dtype)
    if kind == "random" and seed.isdecimal() and len(seed) < 20:
        return _random(np.random.default_rng(int(seed)), dtype, count)
    raise _unreadable(text, f"{content!r} is none of zeros, ones, arange, random:SEED, a .npy file")


def _random(generator: np.random.Generator, dtype: type[np.number[Any]], count: int) -> Array:
    if issubclass(dtype, np.floating):
        return generator.random(count).astype(dtype)
    return np.frombuffer(generator.bytes(count * np.dtype(dtype).itemsize), dtype)


def _load(text: str, file: str) -> Array:
    try:
        # Opened here: NumPy leaves what it opens open where an archive is damaged.
        with Path(file).open("rb") as opened:
            loaded: Any = np.load(opened, allow_pickle=False)
    except Exception as error:  # of a damaged file NumPy raises whatever it stumbles over
        reason = str(error) or type(error).__name__
        raise _unreadable(text, f"{file} cannot be loaded ({reason})") from None
    if not isinstance(loaded, np.ndarray):
        raise _unreadable(text, f"{file} holds several arrays, and one is needed (np.save)")
    return in_device_order(cast(Array, loaded))


def _fitted(text: str, loaded: Array, dtype: type[np.number[Any]], dims: tuple[int, ...]) -> Array:
    """Returns a loaded array, of the type and shape that the command line says that it has."""
    if loaded.dtype != dtype or loaded.size != math.prod(dims):
        raise _unreadable(text, f"the file holds {loaded.dtype} of shape {loaded.shape}")
    return loaded.reshape(dims)


def _unreadable(text: str, reason: str) -> WarploomError:
    return WarploomError(
        f"--arg {text!r} cannot be read: {reason}. Write a number (42, 2.5) or a buffer"
        f" (f32[1024]=ones, x:i32[64x64]=random:7, in.npy)."
    )
