"""L1 of an SM: its sets, what of a line is there or on its way, and what sectors that come take."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import Cache, mapped, place_of
from warploom.timing.engine.machine import Machine, Words, behind
from warploom.timing.work.costs import TICKS, UNITS

SLOWED = sum(1 << UNITS.index(name) for name in ("special", "bits", "convert"))
"""Units whose results may come by the way that fills of L1 take."""


@jitable
def l1(g: Machine, m: Words) -> Cache:
    """Return the L1 of an SM."""
    own = g.p[w.L1_REPLACES], g.p[w.AT_L1_OWN]
    return Cache(m, g.p[w.AT_L1], g.p[w.L1_SETS], g.p[w.L1_WAYS], own[0], own[1])


@jitable
def l1_set(g: Machine, m: Words, line: int) -> int:
    """Return the set of L1 to which a line belongs."""
    if g.p[w.L1_MAPS] == 0:
        return place_of(line, g.p[w.L1_SETS])
    own = behind(m, g.p[w.AT_OWN] + 2 * w.OWN_STRIDE)
    return mapped(g.p[w.L1_MAPS], line, g.p[w.L1_SETS], own)


@jitable
def l1_cycles(g: Machine, pattern: int) -> int:
    """Returns how long an access takes L1: its wavefronts, or of a load where banks are known the
    most of what its tags, its banks and its way to the registers take."""
    if g.p[w.L1_LINES] == 0 or g.patterns[pattern + w.P_BANKS] == 0:
        return int(g.patterns[pattern + w.P_WAVEFRONTS] * g.p[w.L1_WAVEFRONT_CYCLES])
    lines = g.patterns[pattern + w.P_LINES]
    tags = (lines + g.p[w.L1_LINES] - 1) // g.p[w.L1_LINES]
    words = g.patterns[pattern + w.P_SIZE] * g.p[w.L1_WORD_CYCLES]
    return int(max(tags, g.patterns[pattern + w.P_BANKS], words))


@jitable
def count_sectors(m: Words, sectors: int, missing: int) -> None:
    """Count the hits and misses of L1."""
    for sector in range(w.SECTORS):
        if (missing >> sector) & 1:
            m[w.L1_MISS_SECTORS] += 1
        elif (sectors >> sector) & 1:
            m[w.L1_HIT_SECTORS] += 1


@jitable
def charge_fills(g: Machine, m: Words, missing: int, start: int) -> None:
    """Let the bytes of sectors that L1 gets take its time, and the way of the results of special
    functions: L1 serves the access for longer, and units that have something to do are busy for
    longer."""
    ticks = 0
    for sector in range(w.SECTORS):
        ticks += ((missing >> sector) & 1) * g.p[w.FILL_TICKS]
    for s in range(g.p[w.SCHEDULERS]):
        for unit in range(len(UNITS)):
            at = g.p[w.AT_UNITS] + s * g.p[w.UNIT_COUNT] + unit
            if (SLOWED >> unit) & 1 and m[at] > start * TICKS:
                m[at] += ticks
    m[w.FILL_DEBT] += ticks
