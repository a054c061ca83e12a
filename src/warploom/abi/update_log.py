"""Lays out the log of updates whose order shows, such as floating-point additions to one sum, which
workers that share a launch do not perform at once: they are performed in the order of blocks.

    red.global.add.f32 [%rd1], %f1;     lanes 0 and 1, of block 700

    apply     address   operand
    0x7f12..  0x7f88..  0x3f800000      lane 0
    0x7f12..  0x7f88..  0x40000000      lane 1

A worker appends an entry for each element. The function `apply(first entry, end)` performs the
entries up to the end: its own, and by calls those of other functions.
"""

from __future__ import annotations

from warploom.simt.records import WordRecord


class LoggedUpdate(WordRecord):
    """Holds the update of one element of memory."""

    apply: int  # the address of the function that performs it
    address: int  # the host address of the element
    operand: int  # its bits, in the low ones


class UpdateLog(WordRecord):
    """Heads the log of one part of a launch."""

    entries_at: int  # the host address of the first `LoggedUpdate`
    count: int  # of entries
    pausing: int  # from this count on, code returns to the host as soon as it can
    capacity: int
    has_overflown: int  # 1 if an access had no space, and is lost
