"""Selects the functions of this package by which the accesses on a device are counted.

A `DeviceSpec` names the families of its memories ("in order", "32 wide banks"); this module maps
them to the names of the rule functions, which both machines call.

    8.0: global_load="global_by_sectors", shared_read="shared_32_banks_read", ...
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
from warploom.simt.lane_counts import Addresses, Ints

Rule = Callable[[Addresses, int, int, Ints], None]
"""A function `rule(addresses, mask, size, record)` that adds costs of a warp-wide access to its
record: the byte addresses of 32 lanes, the active lanes as bits, the bytes that each lane accesses,
and the words of the record (`CostRecord`). Some rules need only a part of them."""

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
            *(atomics.count_passes, costliest_access.store_example),
            *(pattern_table.settle_pattern, pattern_table.store_pattern),
            *(deferred_atomics.count_deferred_access, deferred_atomics.move_window),
        )
    }
)
"""All rules by name."""


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Holds the names of a device's rules, by kind of access.

    `global_bypass` is for loads that bypass L1 (`ld.cg`, `ld.cv`, `ld.volatile`), and for global
    stores and atomics, which never go through L1.
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
    """The paths through simulated caches (`cost.caches`) by space, operation and route; empty if
    caches are not simulated."""

    @property
    def name(self) -> str:
        """Returns a hash that identifies these rules, as a key for compiled code."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    @property
    def shared_by_rows(self) -> bool:
        """Returns whether the cost of consecutive shared words depends on their start in an aligned
        row of 64 words."""
        return self.shared_read == "shared_wide_banks_of_words"

    @property
    def defers_atomics(self) -> bool:
        """Returns whether counting atomics on shared words can be deferred
        (`cost.deferred_atomics`). It can where stores, and so atomics, cost the wavefronts of 32
        banks of 4 bytes, in quarter-warps or not: the deferred count computes no others."""
        return self.shared_write in ("shared_32_banks", "shared_32_banks_quarters")

    @property
    def returns_pairs(self) -> bool:
        """Returns whether shared memory returns two registers of a load per cycle if pairs of lanes
        load from one address (`cost.paired_banks`)."""
        return self.shared_read == "shared_32_banks_read"

    @property
    def caches(self) -> bool:
        """Returns whether caches are simulated."""
        return bool(self.paths)

    @property
    def unit(self) -> int:
        """Returns the bytes modulo which rules look at an address: shifting all addresses by a
        multiple of it changes no cost."""
        # Lines have 128 bytes, and banks move by the same number for all lanes, which changes no
        # conflict. But where a bank serves words i and i + 32 of a row of 64 together, the halves
        # of a row are not alike.
        return 256 if self.shared_by_rows else 128

    def path(self, space: str, op: str, *, route: str = "") -> int | None:
        """Returns the path through simulated caches (flags of `cost.caches`) of an access: `space`
        is "global", "local", "const", "texture" or "surface", `op` "load", "store" or "atomic",
        `route` a load's cache operator ("past L1", "read only" or empty); the default route's path
        if this one has none of its own. None for other spaces, and without simulated caches."""
        return self.paths.get((space, op, route), self.paths.get((space, op, "")))

    def cost(self, space: str, op: str, *, route: str = "") -> str:
        """Returns the name of the rule that counts an access: by `space` ("global", "shared",
        "local" or "const"), `op` ("load", "store" or "atomic") and `route`, a load's cache operator
        ("past L1", "read only" or empty). Global stores and atomics have the rule past L1."""
        if space == "global":
            past = op != "load" or route == "past L1"
            return self.global_bypass if past else self.global_load
        if space == "shared":
            return self.shared_read if op == "load" else self.shared_write
        return {"local": self.local, "const": self.constant}[space]

    def writes(self, space: str) -> str | None:
        """Returns the name of the rule that counts the writes of a store to global or shared
        memory; None for other spaces, in which lanes never store to one address."""
        return {"global": self.global_writes, "shared": self.shared_writes}.get(space)


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """Holds the options of a device's memory that a user can choose.

    `l1_global`: L1 caches global loads, on devices with that choice (nvcc's option -dlcm).
    `bank_bytes`: the bank mode, 4 or 8, on 3.x. None: the device's default. `caches`: hits and
    misses are simulated.
    """

    l1_global: bool | None = None
    bank_bytes: int | None = None
    caches: bool = False


def access_rules(spec: DeviceSpec, options: MemoryOptions | None = None) -> AccessRules:
    """Returns the rules of a device: the names of its rule functions by the families of its
    memories (`global_rule`, `shared_rule`, `constant_rule`), its compute capability (of writes) and
    the user's options (None: the device's defaults); paths through caches only if these simulate
    caches. Raises WarploomError for an option that it does not have."""
    memory_options = options or MemoryOptions()
    through_l1, past_l1, local = _GLOBAL[spec.global_rule]
    read, write = _SHARED[spec.shared_rule, _bank_mode(spec, memory_options.bank_bytes)]
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
    """Returns the paths (flags of `cost.caches`; 0: L2 alone) by space, operation and route.

    Global loads go through L1 if it caches them (`caches_global_loads`), and to L2 alone past L1.
    Local loads and stores go through L1 if the device has it cache local memory, word by word;
    stores go to L2 in either case. Read-only loads, and loads of textures and surfaces, go through
    the texture cache, or through L1 on devices where the two are one; constant loads through the
    constant cache. Stores and atomics to global memory and to surfaces go to L2 and bypass L1:
    atomics always invalidate its sectors, stores before 7.0 only (PTX ISA, "Cache Operators"); from
    then on L1 retains them. Shared memory and parameters have no path."""
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
    """Returns whether L1 caches global loads: as `wanted`, or by the device's default. Raises
    WarploomError if `wanted` is true and the device never caches them."""
    if wanted and spec.l1_global == "never":
        raise WarploomError(
            f"{spec.title} (compute capability {spec.cc}) never caches global loads in L1; omit "
            "the option, or choose a device that caches them"
        )
    return spec.l1_global == "on" if wanted is None else wanted


def _bank_mode(spec: DeviceSpec, bank_bytes: int | None) -> int:
    """Returns the bank mode in bytes: `bank_bytes`, or if that is None the narrowest that the
    device has. Raises WarploomError for a mode that the device does not have."""
    modes = sorted(mode for family, mode in _SHARED if family == spec.shared_rule)
    if bank_bytes is None:
        return modes[0]
    if bank_bytes not in modes:
        raise WarploomError(
            f"the shared memory banks of {spec.title} (compute capability {spec.cc}) are"
            f" {' or '.join(map(str, modes))} bytes wide, not {bank_bytes}"
        )
    return bank_bytes


_GLOBAL = {
    "in order": ("global_in_order", "global_in_order", "local_in_order"),
    "by halves": ("global_by_halves", "global_by_halves", "local_by_halves"),
    "lines": ("global_by_lines", "global_by_segments", "local_by_lines"),
    "sectors": ("global_by_sectors", "global_by_sectors", "local_by_sectors"),
}
"""Rules by a device's `global_rule`: global memory through L1, past L1, and local memory."""

_SHARED = {
    ("16 banks", 4): ("shared_16_banks_read", "shared_16_banks_write"),
    ("32 banks, quarters", 4): ("shared_32_banks_quarters", "shared_32_banks_quarters"),
    ("32 wide banks", 4): ("shared_wide_banks_of_words", "shared_wide_banks_of_words"),
    ("32 wide banks", 8): ("shared_wide_banks", "shared_wide_banks"),
    ("32 banks", 4): ("shared_32_banks_read", "shared_32_banks"),
}
"""Rules by a device's `shared_rule` and bank mode: loads, and stores and atomics."""
