"""Chooses the rules that a device goes by.

A `DeviceSpec` names its memory's families ("in order", "banks of 8 bytes"); here the families
become the functions that both machines call, by their names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from warploom.core.errors import WarploomError
from warploom.cost import (
    atomics,
    banks,
    caches,
    coalescing,
    constant,
    costliest_access,
    deferred_atomics,
    half_warp_banks,
    paired_banks,
    pattern_table,
    segments,
    writes,
)
from warploom.devices.spec import DeviceSpec
from warploom.simt.lane_counts import Addresses, Row

Rule = Callable[[Addresses, int, int, Row], None]

RULES = MappingProxyType(
    {
        rule.__name__: rule
        for rule in (
            *(coalescing.global_by_sectors, coalescing.global_by_segments),
            *(coalescing.global_by_lines, coalescing.local_by_sectors, coalescing.local_by_lines),
            *(segments.global_in_order, segments.global_by_halves),
            *(segments.local_in_order, segments.local_by_halves),
            *(banks.shared_32_banks, banks.shared_32_banks_quarters),
            paired_banks.shared_32_banks_read,
            *(banks.shared_wide_banks, banks.shared_wide_banks_of_words),
            *(half_warp_banks.shared_16_banks_read, half_warp_banks.shared_16_banks_write),
            *(constant.constant_by_warp, constant.constant_by_halves),
            *(writes.write_by_address, writes.write_by_halves, writes.write_by_lane),
            *(atomics.count_passes, costliest_access.keep_example),
            *(pattern_table.settle_pattern, pattern_table.keep_pattern),
            *(deferred_atomics.count_deferred_access, deferred_atomics.place_window),
        )
    }
)
"""Every rule by its name."""


@dataclass(frozen=True, slots=True)
class AccessRules:
    """The names of the rules that a device goes by.

    `global_bypass` is for loads that go past L1 (`ld.cg`, `ld.cv`, `ld.volatile`); global stores
    and atomics never go through it.
    """

    global_load: str
    global_bypass: str
    local: str
    shared_read: str
    shared_write: str
    constant: str
    global_writes: str
    shared_writes: str
    paths: Mapping[tuple[str, str, str], int]
    """The way through counted caches, by space, op and route; empty where they are not counted."""

    @property
    def name(self) -> str:
        """Returns a name that no other rules have."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    @property
    def shared_by_rows(self) -> bool:
        """Returns whether the cost of consecutive shared words depends on where in a row they
        start."""
        return self.shared_read == "shared_wide_banks_of_words"

    @property
    def defers_atomics(self) -> bool:
        """Returns whether atomics on shared words may be counted many at once
        (`cost.deferred_atomics`)."""
        return self.shared_write in ("shared_32_banks", "shared_32_banks_quarters")

    @property
    def returns_pairs(self) -> bool:
        """Returns whether two registers of a load come back at once where lanes in pairs want the
        same (`cost.paired_banks`)."""
        return self.shared_read == "shared_32_banks_read"

    @property
    def caches(self) -> bool:
        """Returns whether caches are counted."""
        return bool(self.paths)

    @property
    def unit(self) -> int:
        """Returns in how many bytes rules look at the place of an address, and at no more of it."""
        return 256 if self.shared_by_rows else 128

    def path(self, space: str, op: str, *, route: str = "") -> int | None:
        """Returns the path of `cost.caches` for such accesses; None where nothing is to be
        counted."""
        return self.paths.get((space, op, route), self.paths.get((space, op, "")))

    def cost(self, space: str, op: str, *, route: str = "") -> str:
        """Returns the rule for accesses that `op` (load, store, atomic) in a space.

        `route` is what a load asks for: "past L1", "read only" or nothing.
        """
        if space == "global":
            past = op != "load" or route == "past L1"
            return self.global_bypass if past else self.global_load
        if space == "shared":
            return self.shared_read if op == "load" else self.shared_write
        return {"local": self.local, "const": self.constant}[space]

    def writes(self, space: str) -> str | None:
        """Returns the rule for how many writes a store makes; None where lanes cannot meet."""
        return {"global": self.global_writes, "shared": self.shared_writes}.get(space)


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """The options of a device's memory that a user can choose.

    `l1_global` says whether L1 caches global loads, where the device leaves a choice (nvcc's option
    -dlcm); `bank_bytes` is the mode of the banks, 4 or 8, on 3.x; None leaves either to the device.
    `caches` counts hits and misses.
    """

    l1_global: bool | None = None
    bank_bytes: int | None = None
    caches: bool = False


def access_rules(spec: DeviceSpec, options: MemoryOptions | None = None) -> AccessRules:
    """Returns the rules of a device; WarploomError for a choice that it does not have."""
    memory_options = options or MemoryOptions()
    through_l1, past_l1, local = _GLOBAL[spec.global_rule]
    read, write = _SHARED[spec.shared_rule, _mode(spec, memory_options.bank_bytes)]
    early = spec.compute_capability < (2, 0)
    return AccessRules(
        global_load=through_l1 if caches_global_loads(spec, memory_options.l1_global) else past_l1,
        global_bypass=past_l1,
        local=local,
        shared_read=read,
        shared_write=write,
        constant=spec.constant_rule,
        global_writes="write_by_lane" if early else "write_by_address",
        shared_writes="write_by_halves" if early else "write_by_address",
        paths=_paths(spec, memory_options) if memory_options.caches else {},
    )


def _paths(spec: DeviceSpec, memory_options: MemoryOptions) -> dict[tuple[str, str, str], int]:
    """Returns the ways through the caches.

    Read-only loads go through the texture cache, or through L1 where that is one with it. Stores
    bypass L1 and discard what it has (PTX ISA, "Cache Operators"); from 7.0 on it keeps that.
    """
    through_l1 = caches.THROUGH_L1 if caches_global_loads(spec, memory_options.l1_global) else 0
    read_only = caches.THROUGH_TEXTURE if spec.texture_cache_bytes else caches.THROUGH_L1
    local_path = caches.BY_WORDS | (caches.THROUGH_L1 if spec.l1_local else 0)
    drops_l1 = caches.DROPS_L1 if spec.compute_capability < (7, 0) else 0
    return {
        ("global", "load", ""): through_l1,
        ("global", "load", "past L1"): 0,
        ("global", "load", "read only"): read_only,
        ("global", "store", ""): caches.WRITES | drops_l1,
        ("global", "atomic", ""): caches.WRITES | caches.DROPS_L1,
        ("local", "load", ""): local_path,
        ("local", "store", ""): local_path | caches.WRITES,
        ("const", "load", ""): caches.THROUGH_CONSTANT,
        ("texture", "load", ""): read_only,
        ("surface", "load", ""): read_only,
        ("surface", "store", ""): caches.WRITES | drops_l1,
        ("surface", "atomic", ""): caches.WRITES | caches.DROPS_L1,
    }


def caches_global_loads(spec: DeviceSpec, wanted: bool | None = None) -> bool:
    """Returns whether L1 caches global loads: as `wanted`, or as the device does by itself."""
    if wanted and spec.l1_global == "never":
        raise WarploomError(
            f"{spec.title} (compute capability {spec.cc}) never caches global loads in L1; leave"
            f" the choice out, or take a device that can"
        )
    return spec.l1_global == "on" if wanted is None else wanted


def _mode(spec: DeviceSpec, bank_bytes: int | None) -> int:
    """Returns the bytes of a bank that lanes can meet over."""
    modes = sorted(mode for family, mode in _SHARED if family == spec.shared_rule)
    if bank_bytes is None:
        return modes[0]
    if bank_bytes not in modes:
        raise WarploomError(
            f"the banks of {spec.title} (compute capability {spec.cc}) are"
            f" {' or '.join(map(str, modes))} bytes wide, not {bank_bytes}"
        )
    return bank_bytes


_GLOBAL = {
    "in order": ("global_in_order", "global_in_order", "local_in_order"),
    "by halves": ("global_by_halves", "global_by_halves", "local_by_halves"),
    "lines": ("global_by_lines", "global_by_segments", "local_by_lines"),
    "sectors": ("global_by_sectors", "global_by_sectors", "local_by_sectors"),
}
"""By a device's `global_rule`: global memory through L1 and past it, and local memory."""

_SHARED = {
    ("16 banks", 4): ("shared_16_banks_read", "shared_16_banks_write"),
    ("32 banks, quarters", 4): ("shared_32_banks_quarters", "shared_32_banks_quarters"),
    ("32 wide banks", 4): ("shared_wide_banks_of_words", "shared_wide_banks_of_words"),
    ("32 wide banks", 8): ("shared_wide_banks", "shared_wide_banks"),
    ("32 banks", 4): ("shared_32_banks_read", "shared_32_banks"),
}
"""By a device's `shared_rule` and the mode of its banks: reads, and stores and atomics."""
