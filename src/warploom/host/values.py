"""Kernel arguments as the command line writes them: numbers and buffers.

    42   -1   0x10   2.5   true                     a number
    f32[1024]=ones                                  a buffer: type, shape, content
    y:i32[64x64]=arange                             a buffer with a name
    in.npy                                          a buffer from a file
    {f32:1.5,i32:3}                                 a structure by value: its members in order
    local:1024                                      bytes of local memory (OpenCL's)

Contents are those of `host.contents`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.core.errors import LaunchError, WarploomError
from warploom.host.buffer import Array
from warploom.host.contents import NUMBER, ContentError, make_content, read_array
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
_STRUCTURE = re.compile(r"\{(?P<members>[^{}]+)\}")
_NAMED_FILE = re.compile(r"(?:(?P<name>\w+):)?(?P<file>.+\.npy)")


@dataclass(frozen=True, slots=True)
class BufferArgument:
    """A buffer: the name that the command line gave it, else its position, and its content."""

    name: str
    content: Array


Argument = int | float | np.void | BufferArgument | LocalMemory


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
            raise WarploomError(f"--arg {text!r}: another buffer already has the name {name}.")
        names.append(name)
    return tuple(names)


_SHORT = re.compile(rf"zeros|ones|arange|{NUMBER}(?:,{NUMBER})*")


def written_out(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns the texts with the numbers of every buffer in them, where a generator or a file gives
    them: for a reader that has neither. Raises WarploomError where one cannot be read."""
    return tuple(_written_out(text, position) for position, text in enumerate(texts))


def _written_out(text: str, position: int) -> str:
    """Returns a text with the numbers of its buffer, if it has one that is not short."""
    found = _BUFFER.fullmatch(text)
    if found and _SHORT.fullmatch(found["content"]):
        return text
    given = _parse(text, position)
    if not isinstance(given, BufferArgument):
        return text
    content = given.content
    name = next((name for name, dtype in DTYPES.items() if content.dtype == dtype), None)
    if name is None or not content.size or not np.isfinite(content).all():
        raise _unreadable(text, "its contents are empty, not finite or of an unsupported type")
    shape = "x".join(map(str, content.shape))
    return f"{given.name}:{name}[{shape}]={','.join(map(str, content.ravel().tolist()))}"


def _parse(text: str, position: int) -> Argument:
    if found := _BUFFER.fullmatch(text):
        content = _content(text, found["type"], found["shape"], found["content"])
        return BufferArgument(found["name"] or str(position), content)
    if found := _LOCAL.fullmatch(text):
        return LocalMemory(int(found[1]))
    if found := _NAMED_FILE.fullmatch(text):
        try:
            return BufferArgument(found["name"] or str(position), read_array(found["file"]))
        except ContentError as error:
            raise _unreadable(text, str(error)) from None
    if found := _STRUCTURE.fullmatch(text):
        return _structure(text, found["members"])
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
            raise _unreadable(text, "it is greater than the largest f64")
        return number
    raise _unreadable(text, "it is neither a number nor a buffer")


def _content(text: str, type: str, shape: str, content: str) -> Array:
    dtype = DTYPES.get(type)
    if dtype is None:
        raise _unreadable(text, f"its type is not one of {', '.join(DTYPES)}")
    try:
        dims = tuple(int(n) for n in re.split("[x,]", shape))
    except ValueError:
        raise _unreadable(text, "its shape must be numbers separated by x") from None
    if min(dims) < 0:
        raise _unreadable(text, "its shape is negative")
    try:
        return make_content(content, dtype, math.prod(dims)).reshape(dims)
    except ContentError as error:
        raise _unreadable(text, str(error)) from None
    except (MemoryError, ValueError, OverflowError):
        size = math.prod(dims) * np.dtype(dtype).itemsize
        raise LaunchError(
            f"--arg {text!r}: the host does not have enough memory for this buffer "
            f"({size:,} bytes). Make it smaller.",
            resource="host memory",
            requested=size,
        ) from None


def _structure(text: str, members: str) -> np.void:
    """Returns a structure with the members that a text lists, aligned as C++ does."""
    fields: list[tuple[str, type[np.number[Any]]]] = []
    values: list[int | float] = []
    for member in members.split(","):
        type, _, number = member.strip().partition(":")
        if type not in DTYPES:
            raise _unreadable(text, f"a member's type is not one of {', '.join(DTYPES)}")
        fields.append((f"member{len(fields)}", DTYPES[type]))
        values.append(_number(number))
    try:
        return np.array([tuple(values)], np.dtype(fields, align=True))[0]
    except (OverflowError, ValueError, TypeError):
        raise _unreadable(text, "the value of a member does not fit its type") from None


def assignment(option: str, text: str) -> tuple[str, Array]:
    """Returns the name and the content of `NAME=TYPE[SHAPE]=CONTENT` or `NAME=FILE`, the value of
    an option. Raises WarploomError for anything else."""
    name, equals, content = text.partition("=")
    found = _parse(content, 0) if equals and name else None
    if not isinstance(found, BufferArgument):
        raise WarploomError(
            f"{option} {text!r} must be NAME=TYPE[SHAPE]=CONTENT or NAME=FILE.npy, such as "
            "table=f32[64]=arange."
        )
    return name, found.content


def _unreadable(text: str, reason: str) -> WarploomError:
    return WarploomError(
        f"--arg {text!r} cannot be read: {reason}. Write a number (42, 2.5) or a buffer"
        f" (f32[1024]=ones, x:i32[64x64]=random:7, in.npy)."
    )
