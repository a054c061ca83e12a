"""Files that anybody may have written: one kind of error, and no memory for what is refused."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZipFile

import pytest

from warploom.core.input_files import (
    MOST_BYTES,
    MOST_DEPTH,
    Archive,
    InputFileError,
    decode_json,
    read_limited,
    read_text,
    reading,
)
from warploom.core.printable import printable

MIB = 1 << 20


def archive(content: bytes, method: int = ZIP_DEFLATED) -> bytearray:
    """An archive with one member, `a`."""
    made = io.BytesIO()
    with ZipFile(made, "w", method) as file:
        file.writestr("a", content)
    return bytearray(made.getvalue())


def patched(data: bytearray, local: int, central: int, form: str, value: int) -> bytearray:
    """An archive with another value in its two headers (APPNOTE.TXT, 4.3.7 and 4.3.12)."""
    struct.pack_into(form, data, local, value)
    struct.pack_into(form, data, data.index(b"PK\1\2") + central, value)
    return data


def corrupt(data: bytearray) -> bytearray:
    """An archive with another byte in the packed data, which begin behind 30 bytes and a name."""
    data[33:37] = b"\xff\xff\xff\xff"
    return data


DAMAGED: dict[str, tuple[Callable[[], bytearray], str]] = {
    "no archive": (lambda: bytearray(b"nothing"), "not a zip file"),
    "encrypted": (lambda: patched(archive(b"x"), 6, 8, "<H", 1), "a is encrypted"),
    "method 99": (lambda: patched(archive(b"x"), 8, 10, "<H", 99), "uses compression method 99"),
    "another method": (lambda: archive(b"x", ZIP_BZIP2), "uses compression method 12"),
    "corrupt": (lambda: corrupt(archive(bytes(range(256)) * 9)), "Error -3"),
    "too large": (lambda: archive(bytes(MOST_BYTES + 1)), "but the limit is 67,108,864"),
    "another size": (lambda: patched(archive(bytes(64 * MIB)), 22, 24, "<I", 9), "Bad CRC-32"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_archives_are_refused_before_they_take_memory(kind: str, tmp_path: Path) -> None:
    make, reason = DAMAGED[kind]
    file = tmp_path / "a.zip"
    file.write_bytes(make())
    tracemalloc.start()
    try:
        with (
            pytest.raises(InputFileError, match=rf"a\.zip is no file of ours: .*{reason}"),
            reading(file, "is no file of ours"),
            ZipFile(file) as opened,
        ):
            Archive(opened).read("a")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * MIB


def test_members_are_limited_together() -> None:
    members = Archive(ZipFile(io.BytesIO(archive(bytes(60)))), 100)
    assert members.read("a") == bytes(60)
    with pytest.raises(ValueError, match="120 bytes or more, but the limit is 100"):
        members.read("a")
    with pytest.raises(KeyError):
        members.read("b")
    with pytest.raises(ValueError, match="a unpacks to 60 bytes, but the limit is 59"):
        next(members.parts("a", 59))


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[" * 65 + "]" * 65, '{"a":' * 65 + "1" + "}" * 65]
)
def test_deep_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"nested more than {MOST_DEPTH} levels deep"):
        decode_json(text)


def test_json_as_deep_as_is_read() -> None:
    value = decode_json("[" * 64 + "]" * 64)
    for _ in range(63):
        [value] = value
    assert value == []


def test_files_are_read_up_to_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes(b"\xef\xbb\xbfabc")
    assert read_text(file) == "abc"
    with pytest.raises(InputFileError, match="more than 5 bytes"):
        read_text(file, 5)
    with pytest.raises(ValueError, match="more than 1,000 bytes"):
        read_limited(Path("/dev/zero"), 1000)
    file.write_bytes(b"ab\xff")
    with pytest.raises(InputFileError, match="the byte at offset 2 is not valid UTF-8"):
        read_text(file)
    with pytest.raises(InputFileError, match="none cannot be read: No such file"):
        read_text(tmp_path / "none")
    with (
        pytest.raises(InputFileError, match=r"f is not a trace: Error\. Record it again"),
        reading("f", "is not a trace", "Record it again"),
    ):
        raise zlib.error("Error")


def test_control_characters_are_escaped() -> None:
    assert printable("a\x1b[2J\x07\x9b\u202e\x7f\r") == r"a\x1b[2J\x07\x9b\u202e\x7f\r"
    assert printable("tab\tline\nµ€") == "tab\tline\nµ€"
