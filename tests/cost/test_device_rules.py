"""Which rules count the accesses of a device, by compute capability.

Sources: CUDA C Programming Guide 4.2, F.3.2 and F.3.3 (1.x), F.4.2 and F.4.3 (2.x), F.5.2 and F.5.3
(3.x); CUDA C++ Programming Guide 12.9, "Compute Capability 5.x" and later.
"""

from __future__ import annotations

import pytest

from warploom.core.errors import WarploomError
from warploom.cost.caches import (
    BY_WORDS,
    DROPS_L1,
    THROUGH_CONSTANT,
    THROUGH_L1,
    THROUGH_TEXTURE,
    WRITES,
)
from warploom.cost.device_rules import AccessRules, MemoryOptions, access_rules
from warploom.devices.catalog import find_device


def rules(cc: str, l1: bool | None = None, banks: int | None = None) -> AccessRules:
    return access_rules(find_device(cc=cc), MemoryOptions(l1, banks, caches=True))


@pytest.mark.parametrize(
    ("cc", "through_l1", "past_l1", "local"),
    [
        ("1.0", "global_in_order", "global_in_order", "local_in_order"),
        ("1.1", "global_in_order", "global_in_order", "local_in_order"),
        ("1.3", "global_by_halves", "global_by_halves", "local_by_halves"),
        ("2.0", "global_by_lines", "global_by_segments", "local_by_lines"),
        ("3.0", "global_by_segments", "global_by_segments", "local_by_lines"),
        ("3.5", "global_by_segments", "global_by_segments", "local_by_lines"),
        ("5.0", "global_by_sectors", "global_by_sectors", "local_by_sectors"),
        ("7.0", "global_by_sectors", "global_by_sectors", "local_by_sectors"),
        ("9.0", "global_by_sectors", "global_by_sectors", "local_by_sectors"),
        ("12.0", "global_by_sectors", "global_by_sectors", "local_by_sectors"),
    ],
)
def test_global_and_local_memory(cc: str, through_l1: str, past_l1: str, local: str) -> None:
    """Stores, atomics and loads with `.cg` never go through L1."""
    found = rules(cc)
    assert found.cost("global", "load") == through_l1
    assert found.cost("global", "load", route="read only") == through_l1
    assert found.cost("global", "load", route="past L1") == past_l1
    assert found.cost("global", "store") == found.cost("global", "atomic") == past_l1
    assert found.cost("local", "load") == found.cost("local", "store") == local


@pytest.mark.parametrize(
    ("cc", "banks", "load", "store"),
    [
        ("1.0", None, "shared_16_banks_read", "shared_16_banks_write"),
        ("1.3", None, "shared_16_banks_read", "shared_16_banks_write"),
        ("2.1", None, "shared_32_banks_quarters", "shared_32_banks_quarters"),
        ("3.0", None, "shared_wide_banks_of_words", "shared_wide_banks_of_words"),
        ("3.5", 4, "shared_wide_banks_of_words", "shared_wide_banks_of_words"),
        ("3.5", 8, "shared_wide_banks", "shared_wide_banks"),
        ("5.0", None, "shared_32_banks_read", "shared_32_banks"),
        ("10.0", 4, "shared_32_banks_read", "shared_32_banks"),
    ],
)
def test_shared_memory(cc: str, banks: int | None, load: str, store: str) -> None:
    found = rules(cc, banks=banks)
    assert found.cost("shared", "load") == load
    assert found.cost("shared", "store") == found.cost("shared", "atomic") == store
    assert found.shared_by_rows == (load == "shared_wide_banks_of_words")
    assert found.unit == (256 if found.shared_by_rows else 128)
    assert found.returns_pairs == (load == "shared_32_banks_read")
    assert found.defers_atomics == (store in ("shared_32_banks", "shared_32_banks_quarters"))


@pytest.mark.parametrize(
    ("cc", "constant", "to_global", "to_shared"),
    [
        ("1.0", "constant_by_halves", "write_by_lane", "write_by_halves"),
        ("1.3", "constant_by_halves", "write_by_lane", "write_by_halves"),
        ("2.0", "constant_by_warp", "write_by_address", "write_by_address"),
        ("8.0", "constant_by_warp", "write_by_address", "write_by_address"),
    ],
)
def test_constants_and_writes(cc: str, constant: str, to_global: str, to_shared: str) -> None:
    """Of lanes that store to one word, "only one of the writes is performed" from 2.0 on; on 1.x
    one for each half-warp in shared memory, and all in global memory."""
    found = rules(cc)
    assert found.cost("const", "load") == constant
    assert (found.writes("global"), found.writes("shared")) == (to_global, to_shared)
    assert found.writes("local") is None


@pytest.mark.parametrize(
    ("cc", "l1", "expected"),
    [
        ("1.0", None, 0),
        ("2.0", None, THROUGH_L1),
        ("2.0", False, 0),
        ("3.0", None, 0),
        ("3.5", None, 0),
        ("3.5", True, THROUGH_L1),
        ("5.0", None, 0),
        ("5.2", None, 0),
        ("5.2", True, THROUGH_L1),
        ("6.0", None, THROUGH_L1),
        ("9.0", None, THROUGH_L1),
        ("9.0", False, 0),
    ],
)
def test_l1_of_global_loads(cc: str, l1: bool | None, expected: int) -> None:
    """By default on 2.x and from 6.0 on, by choice (-dlcm=ca) on 3.5, 3.7, 5.2 and 5.3."""
    found = rules(cc, l1)
    assert found.path("global", "load") == expected
    assert found.path("global", "load", route="past L1") == 0


def test_lines_of_2_x_where_l1_is_off() -> None:
    assert rules("2.0", l1=False).cost("global", "load") == "global_by_segments"
    assert rules("3.5", l1=True).cost("global", "load") == "global_by_lines"


@pytest.mark.parametrize(
    ("cc", "read_only", "local", "drops"),
    [
        ("1.3", THROUGH_TEXTURE, 0, DROPS_L1),
        ("2.0", THROUGH_TEXTURE, THROUGH_L1, DROPS_L1),
        ("3.5", THROUGH_TEXTURE, THROUGH_L1, DROPS_L1),
        ("5.2", THROUGH_L1, 0, DROPS_L1),
        ("6.1", THROUGH_L1, 0, DROPS_L1),
        ("7.0", THROUGH_L1, THROUGH_L1, 0),
        ("9.0", THROUGH_L1, THROUGH_L1, 0),
    ],
)
def test_paths_through_caches(cc: str, read_only: int, local: int, drops: int) -> None:
    """L1 is the texture cache from 5.0 on, and has local memory but on 5.x and 6.x. Stores
    invalidate what it has until 6.x, atomics always."""
    found = rules(cc)
    for space, route in (("global", "read only"), ("texture", ""), ("surface", "")):
        assert found.path(space, "load", route=route) == read_only
    assert found.path("const", "load") == THROUGH_CONSTANT
    assert found.path("local", "load") == BY_WORDS | local
    assert found.path("local", "store") == BY_WORDS | local | WRITES
    for space in ("global", "surface"):
        assert found.path(space, "store") == WRITES | drops
        assert found.path(space, "atomic") == WRITES | DROPS_L1
    assert found.path("shared", "load") is None


def test_without_simulated_caches_there_are_no_paths() -> None:
    found = access_rules(find_device(cc="9.0"))
    assert not found.caches
    assert rules("9.0").caches
    assert found.path("global", "load") is None
    assert found.name != rules("9.0").name


@pytest.mark.parametrize(("cc", "l1", "banks"), [("3.0", True, None), ("9.0", None, 8)])
def test_options_that_a_device_does_not_have(cc: str, l1: bool | None, banks: int | None) -> None:
    with pytest.raises(WarploomError):
        rules(cc, l1, banks)
