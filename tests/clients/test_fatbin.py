"""What is found in an image: PTX as it is, in fat binaries, compressed; and what cannot be run."""

from __future__ import annotations

import ctypes
import struct

import lz4.block
import pytest

from tests.clients.images import fat_binary
from warploom.clients.fatbin import NoPtx, has_ptx, machine_code_at, ptx_at, ptx_of
from warploom.core import zstd

OLD, NEW = ".version 7.0\n.target sm_70\n", ".version 8.0\n.target sm_90\n"
PLAIN, LZ4, ZSTD = 0x11, 0x2011, 0x8011


def test_text_is_taken_as_it_is() -> None:
    assert ptx_of(OLD.encode() + b"\0\0", (8, 0)) == OLD


@pytest.mark.parametrize("flags", [PLAIN, LZ4, ZSTD])
def test_entries_plain_and_compressed(flags: int) -> None:
    text = (OLD * 20).encode() + b"\0"
    stored = {
        PLAIN: text,
        LZ4: lz4.block.compress(text, store_size=False),
        ZSTD: zstd.compress(text),
    }[flags]
    assert ptx_of(fat_binary((1, 70, flags, stored, len(text))), (8, 0)) == OLD * 20


def test_the_newest_that_the_device_has_is_chosen() -> None:
    image = fat_binary(
        (2, 80, PLAIN, b"machine code", 0),
        (1, 70, PLAIN, OLD.encode(), 0),
        (1, 90, PLAIN, NEW.encode(), 0),
    )
    assert ptx_of(image, (9, 0)) == NEW
    assert ptx_of(image, (8, 6)) == OLD
    assert ptx_of(image, (6, 1)) == OLD  # too new for it; its instructions decide


def test_a_wrapper_leads_to_its_fat_binary() -> None:
    image = ctypes.create_string_buffer(fat_binary((1, 70, PLAIN, OLD.encode(), 0)))
    packed = struct.pack("<IIQQ", 0x466243B1, 1, ctypes.addressof(image), 0)
    wrapper = ctypes.create_string_buffer(packed)
    assert ptx_at(ctypes.addressof(wrapper), (8, 0)) == [OLD]


@pytest.mark.parametrize(("capability", "texts"), [((8, 0), [OLD]), ((9, 0), [OLD, NEW])])
def test_a_wrapper_of_linked_objects_leads_to_the_ptx_of_each(
    capability: tuple[int, int], texts: list[str]
) -> None:
    """The second version of a wrapper has a list of fat binaries, which a null pointer ends. The
    one for newer devices alone is left out where the device has another."""
    linked = ctypes.create_string_buffer(fat_binary((2, 80, PLAIN, b"machine code", 0)))
    objects = [
        ctypes.create_string_buffer(fat_binary((1, 70, PLAIN, OLD.encode(), 0))),
        ctypes.create_string_buffer(
            fat_binary((2, 70, PLAIN, b"machine code", 0), (1, 90, PLAIN, NEW.encode(), 0))
        ),
    ]
    pointers = (ctypes.c_uint64 * 3)(*(ctypes.addressof(one) for one in objects), 0)
    packed = struct.pack(
        "<IIQQ", 0x466243B1, 2, ctypes.addressof(linked), ctypes.addressof(pointers)
    )
    wrapper = ctypes.create_string_buffer(packed)
    assert ptx_at(ctypes.addressof(wrapper), capability) == texts


def test_machine_code_alone_is_refused() -> None:
    only = fat_binary((2, 80, PLAIN, b"machine code", 0))
    assert not has_ptx(b"before" + only)
    for image in (only, b"\x7fELF" + bytes(64)):
        with pytest.raises(NoPtx, match="include PTX"):
            ptx_of(image, (8, 0))


HEADER, ENTRY = struct.Struct("<IHHQ"), struct.Struct("<HHIQIIHHIIIQQQ")


def entry(payload: bytes, *, offset: int = 64, flags: int = PLAIN, size: int = 0) -> bytes:
    """An entry of PTX for sm_80 whose fields can lie."""
    fields = (1, 0, offset, len(payload), len(payload), 0, 0, 0, 80, 0, 0, flags, 0, size)
    return ENTRY.pack(*fields) + payload


@pytest.mark.parametrize(
    "image",
    [
        HEADER.pack(0xBA55ED50, 1, 0, 0) + bytes(100),
        HEADER.pack(0xBA55ED50, 1, 16, 200) + entry(b"", offset=0) + bytes(200),
        HEADER.pack(0xBA55ED50, 1, 16, 1000)[:10],
        HEADER.pack(0xBA55ED50, 1, 16, 64) + entry(b"x" * 64)[:-10],
        HEADER.pack(0xBA55ED50, 1, 16, 2**64 - 1) + entry(b"", offset=2**32 - 1),
    ],
    ids=["no header", "entries of 0 bytes", "cut header", "cut entry", "sizes that lie"],
)
def test_damaged_fat_binaries_are_refused(image: bytes) -> None:
    assert not has_ptx(image)
    with pytest.raises(NoPtx, match="damaged"):
        ptx_of(image, (8, 0))


@pytest.mark.parametrize(
    ("flags", "payload", "size"),
    [
        (ZSTD, zstd.compress(bytes(1 << 24)), 10),
        (ZSTD, b"z" * 64, 100),
        (ZSTD, zstd.compress(b"x"), 1 << 62),
        (LZ4, lz4.block.compress(b"x" * 100, store_size=False), 1 << 62),
        (LZ4, lz4.block.compress(b"x" * 100, store_size=False), (1 << 31) - 1),
        (LZ4, lz4.block.compress(b"x" * 100, store_size=False), 99),
        (LZ4, b"\xff" * 20, 100),
    ],
)
def test_damaged_or_huge_ptx_is_refused(flags: int, payload: bytes, size: int) -> None:
    stored = entry(payload, flags=flags, size=size)
    with pytest.raises(NoPtx, match="PTX"):
        ptx_of(HEADER.pack(0xBA55ED50, 1, 16, len(stored)) + stored, (8, 0))


def test_the_machine_code_of_an_image() -> None:
    """An ELF file ends with its table of sections: here two entries of 64 bytes from byte 64 on."""
    elf = struct.pack("<4s36xQ10xHHH", b"\x7fELF", 64, 64, 2, 0).ljust(64 + 2 * 64, b"x")
    for image in (elf, fat_binary((1, 80, PLAIN, b"text", 0), (2, 80, PLAIN, elf, 0))):
        buffer = ctypes.create_string_buffer(image)
        assert machine_code_at(ctypes.addressof(buffer)) == [elf]
    assert machine_code_at(ctypes.addressof(ctypes.create_string_buffer(b"// PTX"))) == []
