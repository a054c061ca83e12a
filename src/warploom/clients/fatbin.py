"""Fat binaries: finds the PTX in what compilers hand over as an image.

An image is PTX text, a fat binary (entries for several devices, PTX or machine code, plain or
compressed), the small structure that points to one, or machine code alone, which cannot be run.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from dataclasses import dataclass

FATBIN, WRAPPER, ELF = 0xBA55ED50, 0x466243B1, 0x464C457F
PTX = 1
LZ4, ZSTD = 0x2000, 0x8000

MACHINE_CODE = (
    "this is machine code for a GPU (a cubin), which cannot be run here: have the compiler keep"
    " PTX (nvcc -arch=compute_80 or -gencode arch=compute_80,code=compute_80; NVRTC with"
    " --gpu-architecture=compute_80), or load the PTX itself"
)

_HEADER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")


class NoPtx(Exception):
    """An image has no PTX; says what it has, and what to do."""


@dataclass(frozen=True)
class _Entry:
    kind: int
    architecture: int
    flags: int
    size: int
    payload: bytes


def ptx_at(address: int, compute_capability: tuple[int, int]) -> str:
    """The PTX of the image at an address, for a device. Raises NoPtx."""
    (magic,) = struct.unpack("<I", ctypes.string_at(address, 4))
    if magic == WRAPPER:
        address = int.from_bytes(ctypes.string_at(address + 8, 8), "little")
        (magic,) = struct.unpack("<I", ctypes.string_at(address, 4))
    if magic == FATBIN:
        _, _, header, size = _HEADER.unpack(ctypes.string_at(address, _HEADER.size))
        return ptx_of(ctypes.string_at(address, header + size), compute_capability)
    if magic == ELF:
        raise NoPtx(MACHINE_CODE)
    return ctypes.string_at(address).decode(errors="replace")


def ptx_of(data: bytes, compute_capability: tuple[int, int]) -> str:
    """The PTX of an image. Of a fat binary, the newest that the device has; else the oldest."""
    if data[:4] == ELF.to_bytes(4, "little"):
        raise NoPtx(MACHINE_CODE)
    if data[:4] != FATBIN.to_bytes(4, "little"):
        return data.rstrip(b"\0").decode(errors="replace")
    entries = [entry for entry in _entries(data) if entry.kind == PTX]
    if not entries:
        raise NoPtx(MACHINE_CODE)
    here = compute_capability[0] * 10 + compute_capability[1]
    fitting = [entry for entry in entries if entry.architecture <= here]
    chosen = (
        max(fitting, key=lambda entry: entry.architecture)
        if fitting
        else min(entries, key=lambda entry: entry.architecture)
    )
    return _plain(chosen).rstrip(b"\0").decode(errors="replace")


def has_ptx(data: bytes) -> bool:
    """Whether any fat binary inside of a file has PTX."""
    magic, at = FATBIN.to_bytes(4, "little"), -1
    while (at := data.find(magic, at + 1)) >= 0:
        if any(entry.kind == PTX for entry in _entries(data[at:])):
            return True
    return False


def _entries(data: bytes) -> Iterator[_Entry]:
    """The entries of all fat binaries in the data, one after the other."""
    at = 0
    while data[at : at + 4] == FATBIN.to_bytes(4, "little"):
        _, _, header, size = _HEADER.unpack_from(data, at)
        at, end = at + header, at + header + size
        while at + _ENTRY.size <= min(end, len(data)):
            found = _ENTRY.unpack_from(data, at)
            kind, _, offset, length, compressed, _, _, _, architecture = found[:9]
            flags, plain = found[11], found[13]
            stored = compressed if flags & (LZ4 | ZSTD) else length
            payload = data[at + offset : at + offset + stored]
            yield _Entry(kind, architecture, flags, plain, payload)
            at += offset + length
        at = end


def _plain(entry: _Entry) -> bytes:
    if entry.flags & ZSTD:
        import zstandard

        return zstandard.ZstdDecompressor().decompress(entry.payload, max_output_size=entry.size)
    if entry.flags & LZ4:
        import lz4.block

        return lz4.block.decompress(entry.payload, uncompressed_size=entry.size)
    return entry.payload
