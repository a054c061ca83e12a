"""Checks the text that each printf conversion prints, by the rules of C and CUDA's limits."""

from __future__ import annotations

import struct

import pytest

from warploom.machine import printf
from warploom.machine.printf import MAX_ARGUMENTS, PrintfArguments, format_printf, read_string

BASE = 1000


def show(format: str, *given: int | float | str, words: int = 8) -> str:
    """Returns the text of a call; integers have 4 bytes where that is the type's own width."""
    data, strings = bytearray(), bytearray()
    for value in given:
        if isinstance(value, int) and words == 4:
            data += struct.pack("<I", value & 0xFFFFFFFF)
            continue
        data += bytes(-len(data) % 8)
        if isinstance(value, str):
            data += struct.pack("<Q", 2 * BASE + len(strings))
            strings += value.encode() + b"\0"
        elif isinstance(value, float):
            data += struct.pack("<d", value)
        else:
            data += struct.pack("<Q", value & ((1 << 64) - 1))

    def read(address: int, size: int) -> bytes:
        where, start = (data, BASE) if address < 2 * BASE else (strings, 2 * BASE)
        return bytes(where[address - start : address - start + size])

    return format_printf(format.encode(), PrintfArguments(read, BASE))


@pytest.mark.parametrize(
    ("format", "value", "text"),
    [
        ("%d", -5, "-5"),
        ("%u", -1, "4294967295"),
        ("%5d|", 42, "   42|"),
        ("%-5d|", 42, "42   |"),
        ("%05d", -42, "-0042"),
        ("%+d", 3, "+3"),
        ("% d", 3, " 3"),
        ("%.3d", 7, "007"),
        ("%.0d|", 0, "|"),
        ("%x", 255, "ff"),
        ("%#X", 255, "0XFF"),
        ("%#o", 8, "010"),
        ("%#x", 0, "0"),
        ("%08.3d|", 7, "     007|"),
        ("%hhd", 200, "-56"),
        ("%hu", 65537, "1"),
        ("%c%%", 65, "A%"),
    ],
)
def test_integers(format: str, value: int, text: str) -> None:
    assert show(format, value, words=4) == text


@pytest.mark.parametrize(
    ("format", "value", "text"),
    [
        ("%f", 1.5, "1.500000"),
        ("%.0f", 2.5, "2"),
        ("%8.2e|", 12345.678, "1.23e+04|"),
        ("%g", 0.0001, "0.0001"),
        ("%G", 1e-10, "1E-10"),
        ("%f", float("inf"), "inf"),
        ("%lld", -(1 << 40), "-1099511627776"),
        ("%lu", -1, "18446744073709551615"),
        ("%p", 0x7F00, "0x7f00"),
        ("%s!", "text", "text!"),
        ("%.2s", "text", "te"),
        ("%-6s|", "text", "text  |"),
        ("%a", 1.0, "0x1p+0"),
        ("%a", 0.15625, "0x1.4p-3"),
    ],
)
def test_wide_arguments(format: str, value: int | float | str, text: str) -> None:
    assert show(format, value) == text


def test_arguments_are_aligned_to_their_size() -> None:
    data = struct.pack("<I4xdI4xQ", 7, 0.5, 8, 9)
    read = lambda at, size: data[at : at + size]  # noqa: E731
    assert format_printf(b"%d %.1f %u %llu", PrintfArguments(read, 0)) == "7 0.5 8 9"


def test_width_and_precision_from_arguments() -> None:
    assert show("%*d|", 5, 42, words=4) == "   42|"
    assert show("%-*d|%.*d", 4, 1, 3, 2, words=4) == "1   |002"


def test_a_format_takes_32_arguments_at_most() -> None:
    text = show("%d" * (MAX_ARGUMENTS + 1), *range(MAX_ARGUMENTS + 1), words=4)
    assert text == "".join(str(n) for n in range(MAX_ARGUMENTS)) + "%d"


def test_invalid_conversions_are_printed_unchanged() -> None:
    assert show("a %y b %") == "a %y b %"


def test_a_string_ends_at_its_zero() -> None:
    assert read_string(lambda at, size: b"abc\0def"[at : at + size], 0) == b"abc"


@pytest.mark.parametrize(
    ("format", "given"),
    [
        ("%*d", (500_000_000, 1)),
        ("%*d", (-500_000_000, 1)),
        ("%99999999999d", (1,)),
        ("%.2147483648d", (1,)),
        (f"%{'9' * 5000}d", (1,)),
        ("%99999999x%99999999x", (1, 1)),
    ],
)
def test_the_text_of_a_call_is_limited_to_a_mebibyte(format: str, given: tuple[int, ...]) -> None:
    assert len(show(format, *given, words=4)) == 1 << 20


def test_long_conversions_of_other_types_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printf, "MOST_BYTES", 100)
    assert show("%.2147483648f", 1.0) == ("1." + "0" * 98)
    assert show("%2147483647s|", "x") == " " * 99 + "x"
    assert show("%s", "x" * 1000) == "x" * 100
    assert show("%d" + "y" * 200, 7, words=4) == "7" + "y" * 99
    assert show("%2147483648c", 65, words=4) == " " * 99 + "A"
    assert show("%-2147483648p|", 1) == "0x1" + " " * 97


def test_leading_zeros_of_a_width_or_precision_are_ignored() -> None:
    assert show("%.00000000003d|%000000000000005d", 7, 7, words=4) == "007|00007"


VECTORS = [
    ("%v2d", struct.pack("<2i", 1, -2), "1,-2"),
    ("%v3hhu", bytes([1, 2, 255, 0]), "1,2,255"),
    ("%v4hd", struct.pack("<4h", 1, -2, 3, -4), "1,-2,3,-4"),
    ("%v2ld", struct.pack("<2q", 1, -(1 << 40)), f"1,{-(1 << 40)}"),
    ("%.1v4hlf", struct.pack("<4f", 0, 1, -2, 0.5), "0.0,1.0,-2.0,0.5"),
    ("%.1v2hf", struct.pack("<2e", 1, 0.5), "1.0,0.5"),
    ("%.1v2lf", struct.pack("<2d", 1, 0.5), "1.0,0.5"),
    ("%v2s", bytes(16), "%v2s"),
    ("%v2hhf", bytes(16), "%v2hhf"),
]


@pytest.mark.parametrize(("format", "data", "text"), VECTORS)
def test_vectors_of_opencl(format: str, data: bytes, text: str) -> None:
    """OpenCL C 3.0, 6.15.14: elements of 1, 2, 4 and 8 bytes by `hh`, `h`, `hl` and `l`, each
    converted by itself, with commas between."""
    arguments = PrintfArguments(lambda address, size: data[address : address + size], 0)
    assert format_printf(format.encode(), arguments) == text
