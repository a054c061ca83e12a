"""Models the L1 of an SM: its sets, the time that accesses take of it, and the time that fills
take."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import Cache, hash_line, map_line
from warploom.timing.engine.machine import EngineArrays, Words, offset_array
from warploom.timing.work.costs import TICKS, UNITS

SLOWED = sum(1 << UNITS.index(name) for name in ("special", "bits", "convert"))
"""Units whose results may share a path with the fills of L1, as a bit mask."""


@jitable
def l1(arrays: EngineArrays, sm: Words) -> Cache:
    """Returns the description of the L1 of an SM, whose entries are in the SM's state."""
    replacement = arrays.params[w.L1_REPLACEMENT], arrays.params[w.AT_L1_USER]
    return Cache(
        sm,
        arrays.params[w.AT_L1],
        arrays.params[w.L1_SETS],
        arrays.params[w.L1_WAYS],
        replacement[0],
        replacement[1],
    )


@jitable
def l1_set(arrays: EngineArrays, sm: Words, line: int) -> int:
    """Returns the set of L1 to which a line belongs: by the model's hash, or by the user's mapping
    if there is one."""
    if arrays.params[w.L1_MAPPING] == 0:
        return hash_line(line, arrays.params[w.L1_SETS])
    words = offset_array(sm, arrays.params[w.AT_USER] + w.USER_L1_MAPPING * w.USER_STRIDE)
    return map_line(arrays.params[w.L1_MAPPING], line, arrays.params[w.L1_SETS], words)


@jitable
def l1_cycles(arrays: EngineArrays, pattern: int) -> int:
    """Returns the cycles of L1 that an access with the pattern at offset `pattern` takes: its
    wavefronts or, for a load whose bank conflicts are known, the largest of the times for its tags,
    its banks and the transfer to registers."""
    if arrays.params[w.L1_LINES] == 0 or arrays.patterns[pattern + w.P_BANKS] == 0:
        return int(arrays.patterns[pattern + w.P_WAVEFRONTS] * arrays.params[w.L1_WAVEFRONT_CYCLES])
    lines = arrays.patterns[pattern + w.P_LINES]
    tags = (lines + arrays.params[w.L1_LINES] - 1) // arrays.params[w.L1_LINES]
    words = arrays.patterns[pattern + w.P_REGISTERS] * arrays.params[w.L1_WORD_CYCLES]
    return int(max(tags, arrays.patterns[pattern + w.P_BANKS], words))


@jitable
def count_sectors(sm: Words, sectors: int, missing: int) -> None:
    """Counts the hits and misses of L1: `sectors` masks those that an access touches, `missing`
    those that L1 does not hold."""
    for sector in range(w.SECTORS):
        if (missing >> sector) & 1:
            sm[w.L1_MISS_SECTORS] += 1
        elif (sectors >> sector) & 1:
            sm[w.L1_HIT_SECTORS] += 1


@jitable
def charge_fills(arrays: EngineArrays, sm: Words, missing: int, start: int) -> None:
    """Charges the time of filling the sectors `missing`: L1 serves later accesses later
    (FILL_DEBT), and units that share their path and are busy after cycle `start` stay busy for as
    long."""
    ticks = 0
    for sector in range(w.SECTORS):
        ticks += ((missing >> sector) & 1) * arrays.params[w.FILL_TICKS]
    for scheduler in range(arrays.params[w.SCHEDULERS]):
        for unit in range(len(UNITS)):
            unit_free = arrays.params[w.AT_UNITS] + scheduler * arrays.params[w.UNIT_COUNT] + unit
            if (SLOWED >> unit) & 1 and sm[unit_free] > start * TICKS:
                sm[unit_free] += ticks
    sm[w.FILL_DEBT] += ticks
