"""Unpacking stops at the size that is allowed, and reports data that is damaged."""

from __future__ import annotations

import gzip
import os
import tracemalloc

import lz4.block
import pytest

from warploom.core import zstd
from warploom.core.unpacking import UnpackError, gunzip, unpack_lz4, unpack_zstd

TEXT = b"threads " * 1000 + os.urandom(1 << 18)


def test_gzip_comes_back() -> None:
    packed = gzip.compress(TEXT)
    assert gunzip(packed, len(TEXT)) == TEXT
    assert gunzip(gzip.compress(b""), 0) == b""
    with pytest.raises(UnpackError, match="more than"):
        gunzip(packed, len(TEXT) - 1)


def test_a_bomb_takes_no_memory() -> None:
    """64 MiB of zeros, in 64 KiB."""
    bomb = gzip.compress(bytes(1 << 26), 9)
    frame = zstd.compress(bytes(1 << 26))
    tracemalloc.start()
    with pytest.raises(UnpackError, match="more than 1,048,576 bytes"):
        gunzip(bomb, 1 << 20)
    with pytest.raises(UnpackError, match="more than the 1,048,576"):
        unpack_zstd(frame, 1 << 20)
    with pytest.raises(UnpackError, match="cannot unpack to"):
        unpack_lz4(lz4.block.compress(b"x" * 100, store_size=False), 1 << 62)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("packed", [gzip.compress(TEXT)[:-9], b"", b"PK\3\4", b"\x1f\x8b\x08"])
def test_what_is_no_gzip_or_is_cut_off_is_refused(packed: bytes) -> None:
    with pytest.raises(UnpackError):
        gunzip(packed, 1 << 30)


@pytest.mark.parametrize("at", [3, 200, -3])
def test_changed_bits_are_noticed(at: int) -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[at] ^= 4
    with pytest.raises(UnpackError):
        gunzip(bytes(packed), 1 << 30)


def test_blocks_have_the_size_that_they_say() -> None:
    frame, block = (
        zstd.compress(TEXT),
        lz4.block.compress(TEXT, store_size=False),
    )
    for unpack, packed in ((unpack_zstd, frame), (unpack_lz4, block)):
        assert unpack(packed, len(TEXT)) == TEXT
        for size in (len(TEXT) - 1, len(TEXT) + 1):
            with pytest.raises(UnpackError):
                unpack(packed, size)
        with pytest.raises(UnpackError):
            unpack(packed[::-1], len(TEXT))
