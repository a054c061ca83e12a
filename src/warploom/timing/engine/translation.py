"""Models the translation of addresses: a group of SMs (`translation_sms`) shares a TLB (translation
lookaside buffer) of pages of 2 MiB. The first request to a page, and those that follow before it is
translated, are answered later.

    SM 0 requests a line of page 7 at 100     answered 500 cycles later than without translation
    SM 1 requests another one at 400          answered 200 cycles later
    SM 2 requests another one at 650          as without translation"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import hash_line
from warploom.timing.records import EngineParameters, MemoryRequest, MemorySystem, Translation
from warploom.timing.work.costs import TICKS

TRANSLATIONS = 512
"""Entries of a TLB, each for pages of one hash: 1 GiB in all."""

PAGE_BITS = 21 - w.LINE_BITS
"""The base-2 logarithm of the lines of a page of 2 MiB, the size of pages of `cudaMalloc`."""


@jitable
def translation_cycles(
    params: EngineParameters, memory: MemorySystem, request: MemoryRequest, sm: int
) -> int:
    """Returns by how many cycles translation delays the answer to a request of SM number `sm`, and
    stores its page in the TLB of the SM's group."""
    if params.translation_sms == 0:
        return 0
    page = request.line >> PAGE_BITS
    first = sm // params.translation_sms * TRANSLATIONS
    number = first + hash_line(page, TRANSLATIONS)
    entry = Translation(memory, params.at_translations, number)
    if entry.page != page + 1:
        entry.page = page + 1
        entry.ready = walk_tables(params, memory, request.time) + params.latency_translation
    return int(max(0, entry.ready - request.time))


@jitable
def walk_tables(params: EngineParameters, memory: MemorySystem, now: int) -> int:
    """Returns the cycle, `now` or later, in which the unit that walks the page tables for all TLBs
    begins with a page: `translation_ticks` after it began with the one before."""
    if params.translation_ticks == 0:
        return now
    # One entry more than the TLBs have, whose `ready` is the tick from which the unit is free.
    groups = (params.sms + params.translation_sms - 1) // params.translation_sms
    walker = Translation(memory, params.at_translations, groups * TRANSLATIONS)
    begins = max(walker.ready, now * TICKS)
    walker.ready = begins + params.translation_ticks
    return int(begins // TICKS)
