"""Derives the state in which a launch begins if an equal one ran just before it.

    L2, translated pages, instruction caches   as the earlier launch left them, without requests
    L1, queues, counters, everything else      as before a first launch

Hardware invalidates L1 between launches. Nsight Compute measures such launches with
`--cache-control none`, and those that begin with empty caches with `--cache-control all`."""

from __future__ import annotations

import numpy as np

from warploom.timing import layout as w
from warploom.timing.engine.caches import WAY_BITS, WAY_MASK, initial_order
from warploom.timing.engine.levels import l2
from warploom.timing.engine.state import (
    FOREIGN_LINES,
    EngineSetting,
    Words,
    empty_sms,
    initial_memory,
)
from warploom.timing.engine.translation import TRANSLATIONS
from warploom.timing.records import MemorySystem, Translation


def warm_sms(setting: EngineSetting, earlier: Words) -> Words:
    """Returns the state of the SMs before a launch that follows one that ended in the state
    `earlier`, shape (SMs, words)."""
    sms, params = empty_sms(setting), setting.parameters
    lines = int(params.schedulers * params.fetch_lines)
    fetch = slice(int(params.at_fetch), int(params.at_fetch) + lines)
    sms[:, fetch] = earlier[:, fetch]
    return sms


def warm_memory(setting: EngineSetting, earlier: Words, left: float) -> Words:
    """Returns the state of the memory system before a launch that follows one that ended in the
    state `earlier`: L2 with its lines and their order, and what a user's replacement policy stores;
    all translated pages. For each block that `earlier` replayed, `left` blocks were not replayed:
    these are taken to bring as many new lines each."""
    memory, params = initial_memory(setting), setting.parameters
    # The order of each set and the tag of each entry; the times at which sectors arrive stay 0.
    size = int(params.l2_sets * (1 + params.l2_ways))
    parts = [slice(int(params.at_l2), int(params.at_l2) + size)]
    if params.l2_replacement:
        first = int(params.at_l2_user)
        parts.append(slice(first, first + int(params.l2_sets) * w.SET_STRIDE))
    for part in parts:
        memory[part] = earlier[part]
    memory[MemorySystem.l2_dirty] = earlier[MemorySystem.l2_dirty]
    if left > 0 and params.l2_sets:
        _evict_oldest(setting, memory, left)
    if params.translation_sms:
        groups = -(-int(params.sms) // int(params.translation_sms))
        first = int(params.at_translations) + Translation.page
        pages = slice(first, first + groups * TRANSLATIONS * Translation.WORDS, Translation.WORDS)
        memory[pages] = earlier[pages]
    return memory


def _evict_oldest(setting: EngineSetting, memory: Words, left: float) -> None:
    """Replaces the least recently used lines of each set of L2 by clean lines of other data, `left`
    for each line in L2 and evenly distributed over the sets: an estimate of what blocks that were
    not replayed leave."""
    params, cache = setting.parameters, l2(setting.parameters, MemorySystem(memory, 0))
    sets, ways = int(params.l2_sets), int(params.l2_ways)
    first = int(params.at_l2) + sets
    tags = memory[first : first + sets * ways].reshape(sets, ways)
    count = min(ways, round(left * np.count_nonzero(tags) / sets))
    orders = memory[first - sets : first] ^ initial_order(cache)
    for age in range(ways - count, ways):
        way = orders >> WAY_BITS * age & WAY_MASK
        dirty = tags[np.arange(sets), way] >> w.DIRTY_BITS & w.SECTOR_MASK
        memory[MemorySystem.l2_dirty] -= w.SECTOR_BYTES * int(np.bitwise_count(dirty).sum())
        lines = FOREIGN_LINES + age * sets + np.arange(sets)
        tags[np.arange(sets), way] = (lines + 1) << w.TAG_BITS | w.SECTOR_MASK
