"""What moves give, and what is made of addresses and opaque words, whose layouts are Warploom's."""

from __future__ import annotations

from manual_floats import Bits, Result

from warploom.isa.spec import Operation


def mapa(operation: Operation, values: Bits) -> list[int]:
    """In a window of 2^32 bytes, the offset in the block's memory in 24 bits; above it the block's
    rank plus one (`simt.address_windows`)."""
    address, rank = values
    kept = address & ~0xFF00_0000
    found = kept | ((rank + 1) << 24) & ((1 << 64) - 1)
    return [found & ((1 << (64 if operation.modifiers["type"] == "u64" else 32)) - 1)]


def response(operation: Operation, values: Bits) -> list[int]:
    """The index of the first block in three words; the highest word is 1 for a success."""
    words = [values[0] >> 32 * i & 0xFFFFFFFF for i in range(4)]
    m = operation.modifiers
    if "query_cancel.is_canceled" in operation.text:
        return [int(words[3] != 0)]
    axis = m["axis"]
    return [words["xyz".index(axis[-1])]] if axis else words


def isspacep(operation: Operation, values: Bits) -> list[int]:
    """Shared memory is the window from 2^32 on, of which the block's own is the first 2^24 bytes;
    local memory the window after it; the rest is global (`simt.address_windows`)."""
    window = values[0] >> 32
    space = operation.modifiers.text("space", "")
    own = window == 1 and values[0] & 0xFFFFFFFF < 1 << 24
    found = {
        "global": window not in (1, 2),
        "local": window == 2,
        "shared": own,
        "shared::cta": own,
        "shared::cluster": window == 1,
    }
    return [int(found[space])]


RESULTS: dict[str, Result] = {
    "mov": lambda o, v: list(v),
    "mapa": mapa,
    "clusterlaunchcontrol": response,
}
LOGIC: dict[str, Result] = {"isspacep": isspacep}
