"""Kernel arguments on the command line: numbers, buffers, files, and what cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from warploom.core.errors import WarploomError
from warploom.host.values import DTYPES, BufferArgument, parse_arguments


def buffer(text: str) -> BufferArgument:
    [argument] = parse_arguments([text])
    assert isinstance(argument, BufferArgument)
    return argument


@pytest.mark.parametrize(
    ("text", "value"),
    [("42", 42), ("-1", -1), ("0x10", 16), ("2.5", 2.5), ("1e3", 1000.0), ("true", 1)],
)
def test_numbers(text: str, value: float) -> None:
    [argument] = parse_arguments([text])
    assert argument == value
    assert type(argument) is type(value)


@pytest.mark.parametrize("name", DTYPES)
def test_every_type_has_the_width_in_its_name(name: str) -> None:
    content = buffer(f"{name}[3]=arange").content
    assert content.dtype.itemsize * 8 == int(name[1:])
    assert content.dtype.kind == name[0]
    assert content.tolist() == [0, 1, 2]


def test_contents() -> None:
    assert buffer("i32[2,3]=ones").content.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert buffer("f64[0]=zeros").content.size == 0
    floats = buffer("f32[1000]=random:7").content
    assert 0 <= floats.min() < 0.1 < 0.9 < floats.max() < 1
    assert (floats == buffer("f32[1000]=random:7").content).all()
    assert (floats != buffer("f32[1000]=random:8").content).any()
    bytes_ = buffer("i8[5000]=random:7").content
    assert (bytes_.min(), bytes_.max()) == (-128, 127)


def test_names_are_given_or_positions() -> None:
    texts = ["1", "y:f32[4]=ones", "f32[4]=zeros"]
    names = [a.name for a in parse_arguments(texts) if isinstance(a, BufferArgument)]
    assert names == ["y", "2"]


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "in.npy"
    np.save(file, np.arange(6, dtype=np.int64).reshape(2, 3))
    assert buffer(f"x:{file}").content.shape == (2, 3)
    assert buffer(f"{file}").name == "0"
    assert buffer(f"i64[6]={file}").content.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(WarploomError, match=r"array of shape \(2, 3\) and type int64"):
        parse_arguments([f"i64[7]={file}"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("abc", "neither a number nor a buffer"),
        ("f31[4]=ones", "its type is not one of f16"),
        ("f32[x]=ones", "its shape must be numbers"),
        ("f32[-4]=ones", "its shape is negative"),
        ("f32[4]=twos", "neither one of zeros, ones, arange"),
        ("f32[4]=randm", "neither one of zeros, ones, arange"),
        ("f32[4]=gone.npy", "gone.npy cannot be loaded"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, reason: str) -> None:
    with pytest.raises(WarploomError, match=reason):
        parse_arguments([text])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        b"PK\3\4",
        b"\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (1"
        + b"0" * 30
        + b",)}",
        b"\x93NUMPY\1\0\x10\0" + b"(" * 16,
        b"\x80\4\x95.",  # a pickle
    ],
)
@pytest.mark.parametrize("text", ["{}", "f32[4]={}"])
def test_damaged_files_are_refused(content: bytes, text: str, tmp_path: Path) -> None:
    file = tmp_path / "in.npy"
    file.write_bytes(content)
    with pytest.raises(WarploomError, match="cannot be loaded"):
        parse_arguments([text.format(file)])


def test_a_file_of_several_arrays_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "in.npy"
    with file.open("wb") as opened:
        np.savez(opened, a=np.zeros(3), b=np.zeros(3))
    with pytest.raises(WarploomError, match="several arrays"):
        parse_arguments([str(file)])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"f32[{2**62}]=ones", "not have enough memory"),
        (f"f32[{2**40},{2**40}]=arange", "not have enough memory"),
        ("f32[4]=random:²", "neither one of zeros"),
        (f"f32[4]=random:{'9' * 5000}", "neither one of zeros"),
        ("9" * 5000 + "x", "neither a number nor a buffer"),
    ],
)
def test_texts_beyond_all_bounds_are_refused(text: str, reason: str) -> None:
    with pytest.raises(WarploomError, match=reason):
        parse_arguments([text])


def test_damaged_files_are_refused_or_read(tmp_path: Path) -> None:
    """Bits flipped all over a file, other lengths, and more elements than any memory holds."""
    file = tmp_path / "in.npy"
    np.save(file, np.arange(16, dtype=np.float32))
    data, refused = file.read_bytes(), 0
    header = data.replace(b"(16,)", b"(1%s,)" % (b"0" * 14))
    flipped = (data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :] for at in range(128))
    for content in (*flipped, data[:60], data[:140], b"", header[:128] + data[128:]):
        file.write_bytes(content)
        try:
            buffer(str(file))
        except WarploomError:
            refused += 1
    assert refused > 60
