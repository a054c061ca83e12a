"""Fat binaries: finds the PTX in what compilers hand over as an image.

An image is PTX text, a fat binary (entries for several devices, PTX or machine code, plain or
compressed), the small structure (a wrapper) that points to one, or machine code alone, which cannot
be run. The wrapper of a program with separate compilation (`nvcc -rdc=true`) also points to the fat
binaries of its object files: what the device linker made of them is machine code, and their PTX is
linked here.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from warploom.core.unpacking import UnpackError, unpack_lz4, unpack_zstd

FATBIN, WRAPPER, ELF = 0xBA55ED50, 0x466243B1, 0x464C457F
PTX, MACHINE = 1, 2
LZ4, ZSTD = 0x2000, 0x8000

MACHINE_CODE = (
    "this is GPU machine code (a cubin), which Warploom cannot run. Load PTX instead, or make the "
    "compiler include PTX: for nvcc, -arch=compute_80 or -gencode "
    "arch=compute_80,code=compute_80; for NVRTC, --gpu-architecture=compute_80"
)

MOST_BYTES = 1 << 28
"""PTX is not unpacked to more: 256 MiB, a hundred times the largest modules."""

LINKED = 2
"""The version of a wrapper that points to the fat binaries of object files."""

_WRAPPER = struct.Struct("<IIQQ")
_HEADER = struct.Struct("<IHHQ")
_ELF_SECTIONS = struct.Struct("<40xQ10xHH")
"""Of an ELF header: where the table of sections is, the size of an entry, and how many."""

_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_MAGIC = FATBIN.to_bytes(4, "little")


class Damaged(Exception):
    """A fat binary contradicts itself."""


class NoPtx(Exception):
    """An image has no PTX; says what it has, and what to do."""


@dataclass(frozen=True)
class _Entry:
    kind: int
    architecture: int
    flags: int
    size: int
    payload: memoryview


def ptx_at(address: int, compute_capability: tuple[int, int]) -> list[str]:
    """Returns the PTX of the image at an address, for a device: one text, or those of all object
    files of a program with separate compilation, to be linked. Raises NoPtx."""
    (magic,) = struct.unpack("<I", ctypes.string_at(address, 4))
    if magic == ELF:
        raise NoPtx(MACHINE_CODE)
    if magic == FATBIN:
        return _chosen([_fat_binary_at(address)], compute_capability)
    if magic == WRAPPER:
        _, version, data, linked = _WRAPPER.unpack(ctypes.string_at(address, _WRAPPER.size))
        images = list(_pointers(linked)) if version == LINKED else [data]
        return _chosen([_fat_binary_at(image) for image in images], compute_capability)
    return [ctypes.string_at(address).decode(errors="replace")]


def machine_code_at(address: int) -> list[bytes]:
    """Returns the machine code in the image at an address: an ELF file, or those in a fat binary;
    nothing where there is none that can be read."""
    (magic,) = struct.unpack("<I", ctypes.string_at(address, 4))
    if magic == ELF:
        start, size, count = _ELF_SECTIONS.unpack(ctypes.string_at(address, _ELF_SECTIONS.size))
        return [ctypes.string_at(address, start + size * count)]
    if magic != FATBIN:
        return []
    with suppress(Damaged, NoPtx):
        entries = [e for e in _entries(_fat_binary_at(address), 0) if e.kind == MACHINE]
        return [_plain(entry) for entry in entries]
    return []


def _pointers(address: int) -> Iterator[int]:
    """Yields the pointers of a list that ends with a null pointer."""
    while found := int.from_bytes(ctypes.string_at(address, 8), "little"):
        yield found
        address += 8


def _fat_binary_at(address: int) -> bytes:
    _, _, header, size = _HEADER.unpack(ctypes.string_at(address, _HEADER.size))
    if header + size >= 1 << 31:
        raise NoPtx(
            f"the fat binary is damaged: the size in its header, {size:,} bytes, is too large"
        )
    return ctypes.string_at(address, header + size)


def ptx_of(data: bytes, compute_capability: tuple[int, int]) -> str:
    """Returns the PTX of an image. Of a fat binary, the newest that the device has; else the
    oldest."""
    if data[:4] == ELF.to_bytes(4, "little"):
        raise NoPtx(MACHINE_CODE)
    if data[:4] != FATBIN.to_bytes(4, "little"):
        return data.rstrip(b"\0").decode(errors="replace")
    [text] = _chosen([data], compute_capability)
    return text


def _chosen(images: Sequence[bytes], compute_capability: tuple[int, int]) -> list[str]:
    """Returns the PTX of fat binaries that make one program: of each the newest that the device
    has. Where none has any for the device, the oldest architecture of all decides. An image without
    PTX for it is left out, as NVIDIA's device runtime is, which has PTX for the newest devices
    alone.
    """
    try:
        found = [[e for e in _entries(image, 0) if e.kind == PTX] for image in images]
    except Damaged as damaged:
        raise NoPtx(f"the fat binary is damaged: {damaged}") from None
    architectures = [entry.architecture for entries in found for entry in entries]
    if not architectures:
        raise NoPtx(MACHINE_CODE)
    newest = max(compute_capability[0] * 10 + compute_capability[1], min(architectures))
    fitting = [[e for e in entries if e.architecture <= newest] for entries in found]
    chosen = [max(entries, key=lambda e: e.architecture) for entries in fitting if entries]
    return [_plain(entry).rstrip(b"\0").decode(errors="replace") for entry in chosen]


def has_ptx(data: bytes) -> bool:
    """Returns whether any fat binary inside of a file has PTX."""
    at = -1
    while (at := data.find(_MAGIC, at + 1)) >= 0:
        with suppress(Damaged):  # the magic number can stand in other data, too
            if any(entry.kind == PTX for entry in _entries(data, at)):
                return True
    return False


def _entries(data: bytes, at: int) -> Iterator[_Entry]:
    """Yields the entries of all fat binaries that follow each other from there on. Raises
    Damaged."""
    while data.startswith(_MAGIC, at):
        if at + _HEADER.size > len(data):
            raise Damaged("its header is truncated")
        _, _, header, size = _HEADER.unpack_from(data, at)
        if header < _HEADER.size:
            raise Damaged(f"its header size is {header} bytes, which is too small")
        at, end = at + header, at + header + size
        while at + _ENTRY.size <= min(end, len(data)):
            entry, at = _entry(data, at)
            yield entry
        at = end


def _entry(data: bytes, at: int) -> tuple[_Entry, int]:
    """Returns the entry that begins there, and where the next one does. Raises Damaged."""
    found = _ENTRY.unpack_from(data, at)
    kind, _, offset, length, compressed, _, _, _, architecture = found[:9]
    flags, plain = found[11], found[13]
    if offset < _ENTRY.size:
        raise Damaged(f"the header size of an entry is {offset} bytes, which is too small")
    stored = compressed if flags & (LZ4 | ZSTD) else length
    start = at + offset
    if start + stored > len(data):
        raise Damaged(f"an entry of {stored:,} bytes is truncated")
    payload = memoryview(data)[start : start + stored]
    return _Entry(kind, architecture, flags, plain, payload), start + length


def _plain(entry: _Entry) -> bytes:
    """Returns what an entry holds, unpacked. Raises NoPtx where that is damaged or too large."""
    stored = bytes(entry.payload)
    if not entry.flags & (LZ4 | ZSTD):
        return stored
    if entry.size > MOST_BYTES:
        raise NoPtx(f"its PTX has {entry.size:,} bytes, but at most {MOST_BYTES:,} are supported")
    unpack = unpack_zstd if entry.flags & ZSTD else unpack_lz4
    try:
        return unpack(stored, entry.size)
    except UnpackError as error:
        raise NoPtx(f"the compressed PTX in the fat binary is damaged: {error}") from None
