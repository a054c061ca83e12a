"""Unpacks compressed data into at most as many bytes as the caller allows."""

from __future__ import annotations

import zlib

GZIP_OR_ZLIB = 47
"""zlib's number for a header of gzip or of zlib, and a window of any size."""

PART = 1 << 16
"""Bytes that are read, and unpacked, at a time."""

LZ4_RATIO = 255
"""A byte of LZ4 stands for at most so many (LZ4 Block Format Description, "Compressed block
format")."""


class UnpackError(Exception):
    """Compressed data is damaged, or it has another size than it says or than is allowed."""


def gunzip(data: bytes, most_bytes: int) -> bytes:
    """Returns what a gzip file, or data with a header of zlib, holds. Raises UnpackError.

    It is unpacked twice, the first time only to learn its size, so that what is too large takes no
    memory and what is not is copied nowhere.
    """
    try:
        size = _size_of(data, most_bytes)
        return zlib.decompress(data, GZIP_OR_ZLIB, max(1, size))
    except (zlib.error, MemoryError) as error:
        raise UnpackError(str(error) or "the host does not have enough memory for it") from None


def _size_of(data: bytes, most_bytes: int) -> int:
    """Return the bytes that a gzip file unpacks to. Raises UnpackError where they are too many."""
    unpacker, size = zlib.decompressobj(GZIP_OR_ZLIB), 0
    for start in range(0, len(data), PART):
        rest = data[start : start + PART]
        while rest and not unpacker.eof:
            size += len(unpacker.decompress(rest, PART))
            rest = unpacker.unconsumed_tail
            if size > most_bytes:
                raise UnpackError(f"it unpacks to more than {most_bytes:,} bytes")
    if not unpacker.eof:
        raise UnpackError("it is cut off")
    return size


def unpack_zstd(data: bytes, size: int) -> bytes:
    """Returns the `size` bytes that a zstd frame holds. Raises UnpackError."""
    from warploom.core import zstd

    try:
        plain = zstd.ZstdDecompressor().decompress(data, size + 1)
    except (zstd.ZstdError, MemoryError) as error:
        raise UnpackError(str(error)) from None
    return _of_size(plain, size)


def unpack_lz4(data: bytes, size: int) -> bytes:
    """Returns the `size` bytes that an LZ4 block holds. Raises UnpackError."""
    import lz4.block

    if size > LZ4_RATIO * len(data):
        raise UnpackError(f"{len(data):,} bytes of LZ4 data cannot unpack to {size:,} bytes")
    try:
        return _of_size(lz4.block.decompress(data, uncompressed_size=size), size)
    except (lz4.block.LZ4BlockError, MemoryError) as error:
        raise UnpackError(str(error)) from None


def _of_size(plain: bytes, size: int) -> bytes:
    if len(plain) != size:
        relation = "more" if len(plain) > size else "less"
        raise UnpackError(f"it contains {relation} than the {size:,} bytes stated in its header")
    return plain
