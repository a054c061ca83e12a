"""Fat binaries, made by hand: a header of 16 bytes, then entries with headers of 64 bytes."""

from __future__ import annotations

import struct

Entry = tuple[int, int, int, bytes, int]
"""Kind, architecture, flags, payload as stored, size when it is plain."""


def fat_binary(*entries: Entry) -> bytes:
    """A fat binary of these entries."""
    made = b"".join(_entry(entry) for entry in entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(made)) + made


def _entry(entry: Entry) -> bytes:
    kind, architecture, flags, payload, plain = entry
    stored = payload.ljust(-(-len(payload) // 8) * 8, b"\0")
    header = struct.pack(
        "<HHIQIIHHIIIQQQ",
        *(kind, 0x101, 64, len(stored), len(payload), 0, 0, 0, architecture),
        *(0, 0, flags, 0, plain),
    )
    return header + stored
