"""Models the L1 of an SM: its sets, the time that accesses use it, and the time that fills use
it."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import Cache, hash_line, map_line
from warploom.timing.engine.machine import EngineArrays, offset_array
from warploom.timing.records import SmState, TimedPattern
from warploom.timing.work.costs import TICKS, UNITS

SLOWED = sum(1 << UNITS.index(name) for name in ("special", "bits", "convert"))
"""Units whose results may share a path with the fills of L1, as a bit mask."""


@jitable
def l1(arrays: EngineArrays, sm: SmState) -> Cache:
    """Returns the description of an SM's L1: where it is in the SM's state, its sets and ways, and
    the user's replacement policy, if any."""
    replacement = arrays.params.l1_replacement, arrays.params.at_l1_user
    return Cache(
        sm.words,
        arrays.params.at_l1,
        arrays.params.l1_sets,
        arrays.params.l1_ways,
        replacement[0],
        replacement[1],
    )


@jitable
def l1_set(arrays: EngineArrays, sm: SmState, line: int) -> int:
    """Returns the set of L1 to which a line (by its number) belongs: by the model's hash, or by the
    user's function if there is one (`l1_mapping`), whose memory is in `sm`. There must be an L1."""
    if arrays.params.l1_mapping == 0:
        return hash_line(line, arrays.params.l1_sets)
    words = offset_array(sm.words, arrays.params.at_user + w.USER_L1_MAPPING * w.USER_STRIDE)
    return map_line(arrays.params.l1_mapping, line, arrays.params.l1_sets, words)


@jitable
def l1_cycles(arrays: EngineArrays, pattern: TimedPattern) -> int:
    """Returns the cycles for which an access with this pattern occupies L1. For a load with known
    `banks` (wavefronts by banks), on a device with `l1_lines`: the largest of the times for its
    tags (`l1_lines` lines a cycle), its banks and the transfer to registers; else its wavefronts
    times `l1_wavefront_cycles`."""
    if arrays.params.l1_lines == 0 or pattern.banks == 0:
        return int(pattern.wavefronts * arrays.params.l1_wavefront_cycles)
    lines = pattern.lines
    tags = (lines + arrays.params.l1_lines - 1) // arrays.params.l1_lines
    words = pattern.registers * arrays.params.l1_word_cycles
    return int(max(tags, pattern.banks, words))


@jitable
def count_sectors(sm: SmState, sectors: int, missing: int) -> None:
    """Counts the hits and misses of L1: `sectors` masks those that an access touches, `missing`
    those that L1 does not hold."""
    for sector in range(w.SECTORS):
        if (missing >> sector) & 1:
            sm.l1_miss_sectors += 1
        elif (sectors >> sector) & 1:
            sm.l1_hit_sectors += 1


@jitable
def charge_fills(arrays: EngineArrays, sm: SmState, missing: int, start: int) -> None:
    """Charges the time of filling L1 with the sectors in the mask `missing`, `fill_ticks` each.
    Adds it to `fill_debt`, which delays the next access. Adds it as well to the busy time of those
    SLOWED units (special functions, bits, conversions), of any scheduler, that are busy after the
    cycle `start`."""
    ticks = 0
    for sector in range(w.SECTORS):
        ticks += ((missing >> sector) & 1) * arrays.params.fill_ticks
    for scheduler in range(arrays.params.schedulers):
        for unit in range(len(UNITS)):
            unit_free = arrays.params.at_units + scheduler * arrays.params.unit_count + unit
            if (SLOWED >> unit) & 1 and sm.words[unit_free] > start * TICKS:
                sm.words[unit_free] += ticks
    sm.fill_debt += ticks
