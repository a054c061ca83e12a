"""Computes what the functions of `warploom.cost` give for many accesses: an error that changes none
of it is no error."""

from __future__ import annotations

import hashlib
import os
import random
import select
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from warploom.core.errors import WarploomError
from warploom.cost import caches, served
from warploom.cost.address_pattern import AddressPattern
from warploom.cost.atomics import lane_order
from warploom.cost.banks import (
    _count_row_ways_branchless,  # pyright: ignore[reportPrivateUsage]
    count_ways_branchless,
)
from warploom.cost.deferred_atomics import AccessCounts
from warploom.cost.device_rules import RULES, MemoryOptions, access_rules
from warploom.cost.paired_banks import count_return_cycles
from warploom.cost.writes import lasting
from warploom.devices.catalog import catalog
from warploom.simt.schedule_layout import Plan

ACCESSES = 200
SECONDS = 60

Access = tuple[np.ndarray, int, int]
"""Addresses by lane, the active lanes, bytes of a lane."""


def access(rng: random.Random) -> Access:
    """Returns a random aligned access: strided, in pairs, of few addresses, or of any."""
    size = rng.choice((1, 2, 4, 8, 16))
    lanes = range(32)
    base = rng.randrange(64)
    steps = {
        0: [base + rng.choice((0, 1, 2, 3, 8, 32)) * lane for lane in lanes],
        1: [base + (lane // 2) * rng.choice((1, 2)) for lane in lanes],
        2: [base + rng.randrange(4) for _ in lanes],
        3: [rng.randrange(2000) for _ in lanes],
        4: [base + (lane ^ 1) for lane in lanes],
    }[rng.randrange(5)]
    mask = rng.choice((0xFFFFFFFF, 0xFFFF, 1 << rng.randrange(32), rng.getrandbits(32) or 1))
    return np.array([4096 + size * step for step in steps], np.uint64), mask, size


def results() -> Iterator[object]:
    """Yields the results of all rules, in an order that is always the same."""
    rng = random.Random(0)
    records = {name: np.zeros(AccessCounts.WORDS, np.int64) for name in RULES}
    hierarchy = _caches()
    row = np.zeros(caches.CostRecord.WORDS, np.int64)
    for _ in range(ACCESSES):
        addresses, mask, size = access(rng)
        slot = rng.randrange(8)
        for name, rule in RULES.items():
            rule(addresses, mask, slot if name.endswith("_pattern") else size, records[name])
            yield records[name].tobytes()
        for name in served._RULES:  # pyright: ignore[reportPrivateUsage]
            yield served.list_transactions(name, addresses.tolist(), mask, size)
        yield count_return_cycles(addresses, mask, size)
        yield count_ways_branchless(addresses, mask, 2, 32)
        yield _count_row_ways_branchless(addresses, mask)
        yield _patterns(addresses, mask)
        for policy in range(4):
            schedule = np.zeros(Plan.WORDS, np.int64)
            plan = Plan(schedule, 0)
            plan.policy, plan.seed = policy, rng.getrandbits(30)
            yield (
                lasting(addresses, mask, schedule, slot),
                lane_order(addresses, mask, schedule, slot),
            )
        path = rng.randrange(64)
        caches.count_cached(
            addresses, mask, size, row, hierarchy, path, slot, rng.randrange(3) * 64
        )
        yield row.tobytes(), hierarchy.tobytes()
    yield from _deferred(rng)
    yield from _rules()


def _patterns(addresses: np.ndarray, mask: int) -> object:
    """Returns what an address pattern gives."""
    active = [int(a) for lane, a in enumerate(addresses) if mask >> lane & 1]
    pattern, base = AddressPattern.of(mask, active, 128)
    whole = pattern.addresses()
    return (
        base,
        pattern,
        pattern.in_local(128),
        pattern.of_first_lane(),
        whole[0].tobytes(),
        whole[1],
    )


def _caches() -> np.ndarray:
    """Returns the words of small caches."""
    hierarchy = caches.CacheHierarchy(np.zeros(caches.CacheHierarchy.WORDS, np.int64), 0)
    hierarchy.sms, end = 2, caches.CacheHierarchy.WORDS
    levels = (hierarchy.l1, hierarchy.texture, hierarchy.constant, hierarchy.l2)
    for level, sets, ways, copies in zip(
        levels, (2, 3, 1, 4), (2, 2, 1, 2), (2, 2, 2, 1), strict=True
    ):
        level.first_entry, level.sets, level.ways = end, sets, ways
        level.words_per_sm = sets * ways * caches.CacheEntry.WORDS
        end += level.words_per_sm * copies
    return np.concatenate([hierarchy.words, np.zeros(end - hierarchy.words.size, np.int64)])


def _deferred(rng: random.Random) -> Iterator[object]:
    """Yields the counters of lists of deferred accesses."""
    for count in (1, 5, 32):
        row = AccessCounts(np.zeros(AccessCounts.WORDS, np.int64), 0)
        row.window = 384
        for _ in range(2):
            row.deferred = count
            words = np.array(
                [rng.randrange(rng.choice((2, 256))) for _ in range(32 * count)], np.uint8
            )
            row.keys.view(np.uint8)[: words.size] = words
            RULES["count_deferred_access"](np.zeros(32, np.uint64), 0, 0, row.words)
            yield row.words.tobytes()
        row.table.new_patterns = rng.choice((3, 15, 40))
        addresses, mask, _ = access(rng)
        RULES["move_window"](addresses, mask, rng.choice((4500, 20000)), row.words)
        yield row.words.tobytes()


def _rules() -> Iterator[object]:
    """Yields the rules of every device under every option."""
    options = [
        MemoryOptions(l1, bank, simulated)
        for l1 in (None, False, True)
        for bank in (None, 4, 8)
        for simulated in (False, True)
    ]
    for spec in catalog().values():
        for option in options:
            yield _attempt(lambda spec=spec, option=option: _described(access_rules(spec, option)))


def _described(rules: Any) -> object:
    """Returns the answers of a device's rules to every question."""
    routes = ("", "past L1", "read only")
    names = ("unit", "caches", "returns_pairs", "defers_atomics", "shared_by_rows", "name")
    return (
        [getattr(rules, name) for name in names],
        [
            (
                rules.cost(space, op, route=route),
                rules.path(space, op, route=route),
                rules.writes(space),
            )
            for space in ("global", "shared", "local", "const")
            for op in ("load", "store", "atomic")
            for route in routes
        ],
    )


def _attempt(compute: Callable[[], object]) -> object:
    """Returns a value, or the message of the error."""
    try:
        return compute()
    except WarploomError as error:
        return str(error)


def digest_with(plant: Callable[[], None]) -> str:
    """Returns a hash of all results in a process in which an error is planted: another one, too,
    if they end with an exception or do not end."""
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        try:
            plant()
            hashed = hashlib.sha256()
            for result in results():
                hashed.update(repr(result).encode())
            os.write(writer, hashed.hexdigest().encode())
        finally:
            os._exit(0)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], SECONDS)
    found = os.read(reader, 100).decode() if ready else "endless"
    os.close(reader)
    if not ready:
        os.kill(process, 9)
    os.waitpid(process, 0)
    return found
