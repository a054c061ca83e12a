"""Reads JSON and zip archives that anybody may have written: limits come before memory.

`reading` turns whatever a damaged file raises into one `InputFileError`; `decode_json` and
`Archive` refuse what is too large, too deep, encrypted, or packed in another way than deflate.
What a file means, and the checks of its values, are left to its reader.
"""

from __future__ import annotations

import json
import lzma
import struct
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import msgspec

from warploom.core.errors import WarploomError
from warploom.core.unpacking import UnpackError

MOST_BYTES = 64 << 20
"""Bytes of a JSON file, and of all texts of an archive together, unpacked."""

PART = 1 << 20
"""Bytes of a member of an archive that are unpacked at a time."""

MOST_DEPTH = 64
"""Levels of nested arrays and objects in JSON."""

ENCRYPTED = 1
"""The flag of an encrypted member (APPNOTE.TXT of PKWARE, 4.4.4)."""

FAILURES = (
    ArithmeticError,
    BadZipFile,
    EOFError,
    KeyError,
    lzma.LZMAError,
    MemoryError,
    msgspec.MsgspecError,
    NotImplementedError,
    OSError,
    RecursionError,
    RuntimeError,
    struct.error,
    SyntaxError,
    TokenError,
    TypeError,
    UnpackError,
    ValueError,
    zlib.error,
)
"""Exceptions that json, msgspec, zipfile, lzma and NumPy raise for damaged files."""


class InputFileError(WarploomError):
    """A file is damaged, too large, or of another kind than its reader expects."""


@contextmanager
def reading(file: str | Path, verdict: str, remedy: str = "") -> Generator[None]:
    """Raises InputFileError, "FILE VERDICT: reason. REMEDY", for what a damaged file raises in the
    block; `verdict` is such as "is not a trace". Errors of Warploom in the block pass unchanged."""
    try:
        yield
    except WarploomError:
        raise
    except OSError as error:
        raise InputFileError(f"{file} cannot be read: {reason_of(error)}") from None
    except FAILURES as error:
        after = f". {remedy}" if remedy else ""
        raise InputFileError(f"{file} {verdict}: {reason_of(error)}{after}") from None


def reason_of(error: BaseException) -> str:
    """Returns the reason for a failure as a part of a sentence."""
    if isinstance(error, RecursionError):
        return f"it is nested more than {MOST_DEPTH} levels deep"
    if isinstance(error, MemoryError):
        return "the host does not have enough memory for it"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, KeyError):
        return f"it has no {error.args[0] if error.args else 'such part'}".rstrip(".")
    return (str(error) or type(error).__name__).rstrip(".")


def read_limited(file: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Returns the bytes of a file. Raises OSError, and ValueError where there are more than
    `most_bytes`; a device or a pipe is read no further."""
    with file.open("rb") as source:
        data = source.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"it has more than {most_bytes:,} bytes")
    return data


def read_text(file: Path, most_bytes: int = MOST_BYTES) -> str:
    """Returns the text of a UTF-8 file, without a byte order mark. Raises InputFileError."""
    with reading(file, "cannot be read"):
        try:
            return read_limited(file, most_bytes).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"the byte at offset {error.start} is not valid UTF-8; save the file as UTF-8"
            ) from None


def decode_json(text: str | bytes) -> Any:
    """Returns the value of a JSON text; NaN and Infinity are numbers, as Python writes them. Raises
    ValueError for what is no JSON or is nested too deep."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(f"it is nested more than {MOST_DEPTH} levels deep") from None
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    """Raises ValueError for a value with more than MOST_DEPTH levels of lists and dictionaries."""
    level = _containers([value])
    for _ in range(MOST_DEPTH):
        level = [part for each in level for part in _containers(_parts(each))]
        if not level:
            return
    raise ValueError(f"it is nested more than {MOST_DEPTH} levels deep")


def _containers(values: Iterable[Any]) -> list[Any]:
    """Returns the lists and dictionaries among some values."""
    return [value for value in values if isinstance(value, (dict, list))]


def _parts(container: Any) -> Iterable[Any]:
    """Returns the values in a list or a dictionary."""
    if isinstance(container, dict):
        return cast(dict[str, Any], container).values()
    return cast(list[Any], container)


@dataclass
class Archive:
    """An open zip archive. The members that `read` returns have at most `most_bytes` together; the
    caller of `parts` limits a member."""

    archive: ZipFile
    most_bytes: int = MOST_BYTES
    _total: int = 0

    def __contains__(self, name: str) -> bool:
        """Returns true if there is a member of that name."""
        return name in self.archive.NameToInfo

    def read(self, name: str) -> bytes:
        """Returns the bytes of a member. Raises KeyError where there is none, ValueError where it
        is too large or is packed in another way than deflate."""
        self._total += self._member(name).file_size
        if self._total > self.most_bytes:
            raise ValueError(
                f"it unpacks to {self._total:,} bytes or more, but the limit is {self.most_bytes:,}"
            )
        return b"".join(self.parts(name, self.most_bytes))

    def text(self, name: str) -> str:
        """Returns the text of a member, which is UTF-8. Raises as `read` does."""
        return self.read(name).decode()

    def parts(self, name: str, most_bytes: int) -> Iterator[bytes]:
        """Yields the bytes of a member, PART at a time: read as a whole, it could unpack to more
        than it states before `ZipFile` cuts it off. Raises as `read` does."""
        member = self._member(name)
        if member.file_size > most_bytes:
            raise ValueError(
                f"{name} unpacks to {member.file_size:,} bytes, but the limit is {most_bytes:,}"
            )
        with self.archive.open(member) as stream:
            while part := stream.read(PART):
                yield part

    def _member(self, name: str) -> ZipInfo:
        """Returns the entry of a member. Raises KeyError where there is none, ValueError where it
        is encrypted or packed in another way than deflate."""
        member = self.archive.NameToInfo.get(name)
        if member is None:
            raise KeyError(name)
        if member.flag_bits & ENCRYPTED:
            raise ValueError(f"{name} is encrypted")
        if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            method = member.compress_type
            raise ValueError(
                f"{name} uses compression method {method}, but only deflate is supported"
            )
        return member
