"""The device catalog against NVIDIA's published tables, and the launches that devices refuse."""

from __future__ import annotations

import json
from dataclasses import fields
from importlib.resources import files

import pytest

from warploom.core.errors import LaunchError, WarploomError
from warploom.cost.device_rules import RULES, MemoryOptions, access_rules
from warploom.devices.catalog import catalog, find_device
from warploom.devices.launches import check_launch
from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import find_timing

WANTED = {
    *("8800-gtx", "gtx-280", "gtx-480", "gtx-680", "k40"),
    *("gtx-980", "p100", "gtx-1080", "v100", "rtx-2080-ti", "a100", "rtx-3090", "rtx-4090"),
    *("h100", "h200", "b200", "rtx-5090", "t4", "l4", "l40s", "a10", "jetson-orin", "gb10"),
}

KIB = 1024


def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Returns the object of a JSON file, none of whose names may occur twice: the first of two
    would be lost without a word."""
    assert len(dict(pairs)) == len(pairs), [name for name, _ in pairs]
    return dict(pairs)


@pytest.mark.parametrize("name", ["architectures", "products", "timing", "work"])
def test_no_name_occurs_twice(name: str) -> None:
    """`unique` asserts it of each object of the file."""
    file = files("warploom.devices").joinpath("data", f"{name}.json")
    json.loads(file.read_text("utf-8"), object_pairs_hook=unique)


# CUDA C++ Programming Guide 12.9, table 27: blocks, warps and shared memory (KiB) an SM, and
# shared memory a block (KiB).
@pytest.mark.parametrize(
    ("cc", "blocks", "warps", "shared_sm", "shared_block"),
    [
        ("7.5", 16, 32, 64, 64),
        ("8.0", 32, 64, 164, 163),
        ("8.6", 16, 48, 100, 99),
        ("8.7", 16, 48, 164, 163),
        ("8.9", 24, 48, 100, 99),
        ("9.0", 32, 64, 228, 227),
        ("10.0", 32, 64, 228, 227),
        ("11.0", 24, 48, 228, 227),
        ("12.0", 24, 48, 100, 99),
    ],
)
def test_limits_are_those_of_the_guide(
    cc: str, blocks: int, warps: int, shared_sm: int, shared_block: int
) -> None:
    spec = find_device(cc=cc)
    assert spec.cc == cc
    assert (spec.max_blocks_per_sm, spec.max_warps_per_sm) == (blocks, warps)
    assert spec.shared_bytes_per_sm == shared_sm * KIB
    assert spec.shared_bytes_per_block_optin == shared_block * KIB


def test_the_default_is_an_h100_and_names_are_forgiving() -> None:
    assert find_device().title.startswith("H100")
    assert find_device("RTX 2080 Ti") is find_device("rtx-2080-ti")
    assert find_device("rtx_2080_ti").compute_capability == (7, 5)


def test_the_products_people_ask_for_are_there() -> None:
    assert set(catalog()) >= WANTED


@pytest.mark.parametrize("spec", catalog().values(), ids=lambda s: s.name)
def test_every_fact_has_a_source(spec: DeviceSpec) -> None:
    facts = {f.name for f in fields(spec)} - {"name", "title", "compute_capability", "sources"}
    assert set(spec.sources) == facts
    assert all(source.text for source in spec.sources.values())


# openxla/xla, xla/backends/gpu/target_config/specs, commit 4336d12e0706: h100_pcie and a6000.
@pytest.mark.parametrize(
    ("name", "cc", "sms", "l2_mib", "clock_mhz", "gb_per_s"),
    [("h100-pcie", "9.0", 114, 50, 1755, 2039), ("rtx-a6000", "8.6", 84, 6, 1800, 768.1)],
)
def test_products_are_as_their_queries_say(
    name: str, cc: str, sms: int, l2_mib: int, clock_mhz: float, gb_per_s: float
) -> None:
    spec = find_device(name)
    timing = find_timing(spec)
    assert (spec.cc, spec.sms, spec.l2_bytes) == (cc, sms, l2_mib * KIB * KIB)
    assert (timing.clock_mhz, timing.dram_gb_per_s) == (clock_mhz, gb_per_s)
    assert all(timing.sources[fact].verified for fact in ("clock_mhz", "dram_gb_per_s"))


def test_what_is_only_cited_says_so() -> None:
    assert not find_device("rtx-2080-ti").sources["sms"].verified
    assert find_device("h100").sources["sms"].verified


def test_unknown_names_list_near_ones() -> None:
    with pytest.raises(WarploomError, match="rtx-2080-ti"):
        find_device("rtx-2080")
    with pytest.raises(WarploomError, match=r"Known:.*h100"):
        find_device("riva-tnt-ultra-mega")
    with pytest.raises(WarploomError, match=r"choose one of 1\.0"):
        find_device(cc="4.0")
    with pytest.raises(WarploomError, match="not both"):
        find_device("h100", cc="9.0")


@pytest.mark.parametrize(
    ("grid", "block", "shared", "resource", "limit"),
    [
        ((1, 1, 1), (1025, 1, 1), 0, "block.x", 1024),
        ((1, 1, 1), (32, 33, 1), 0, "threads", 1024),
        ((1, 1, 1), (1, 1, 65), 0, "block.z", 64),
        ((1, 1, 1), (0, 1, 1), 0, "block.x", 1024),
        ((0, 1, 1), (32, 1, 1), 0, "grid.x", 2**31 - 1),
        ((1, 65536, 1), (32, 1, 1), 0, "grid.y", 65535),
        ((1, 1, 1), (32, 1, 1), 64 * KIB + 1, "shared", 64 * KIB),
        ((1, 1, 1), (32, 1, 1), -1, "shared", 64 * KIB),
    ],
)
def test_launches_over_a_limit_are_refused(
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared: int,
    resource: str,
    limit: int,
) -> None:
    with pytest.raises(LaunchError) as caught:
        check_launch(find_device(cc="7.5"), grid, block, shared)
    assert (caught.value.resource, caught.value.limit) == (resource, limit)


def test_launches_at_the_limits_are_not() -> None:
    turing = find_device(cc="7.5")
    check_launch(turing, (2**31 - 1, 65535, 65535), (1024, 1, 1), 64 * KIB)
    check_launch(turing, (1, 1, 1), (4, 4, 64), 0)


def test_every_compute_capability_from_the_first_is_there() -> None:
    known = {spec.cc for spec in catalog().values()}
    assert known >= {
        *("1.0", "1.1", "1.2", "1.3", "2.0", "2.1", "3.0", "3.2", "3.5", "3.7", "5.0", "5.2"),
        *("5.3", "6.0", "6.1", "6.2", "7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0"),
        *("10.0", "10.3", "10.7", "11.0", "12.0", "12.1"),
    }
    assert len(catalog()) >= 25


def test_limits_of_rubin_are_those_of_cccl() -> None:
    """CCCL of the CUDA 13.5 toolkit, `cuda::arch_traits` of sm_107: what it says besides is that of
    sm_100, and an estimate is marked as one."""
    rubin, blackwell = find_device(cc="10.7"), find_device(cc="10.0")
    assert (rubin.max_blocks_per_sm, rubin.max_warps_per_sm) == (16, 32)
    assert rubin.shared_bytes_per_block_optin == blackwell.shared_bytes_per_block_optin
    assert rubin.sources["max_warps_per_sm"].verified
    assert not rubin.sources["l2_bytes"].verified


# CUDA C Programming Guide 4.2, table F-2 (1.x to 3.0): threads a block, registers an SM, shared
# memory an SM (KiB), banks.
@pytest.mark.parametrize(
    ("cc", "threads", "registers", "shared", "banks"),
    [
        ("1.0", 512, 8, 16, 16),
        ("1.1", 512, 8, 16, 16),
        ("1.3", 512, 16, 16, 16),
        ("2.0", 1024, 32, 48, 32),
        ("3.0", 1024, 64, 48, 32),
    ],
)
def test_limits_of_the_first_devices(
    cc: str, threads: int, registers: int, shared: int, banks: int
) -> None:
    spec = find_device(cc=cc)
    assert spec.max_threads_per_block == threads
    assert spec.registers_per_sm == registers * KIB
    assert spec.shared_bytes_per_sm == shared * KIB
    assert spec.shared_banks == banks


@pytest.mark.parametrize("spec", catalog().values(), ids=lambda s: s.name)
def test_every_device_has_its_rules(spec: DeviceSpec) -> None:
    rules = access_rules(spec)
    names = {rules.cost(s, op) for s in ("global", "shared", "local") for op in ("load", "store")}
    assert names | {rules.cost("const", "load"), rules.writes("global")} <= set(RULES)
    assert spec.shared_capacities[-1] == spec.shared_bytes_per_sm
    assert not spec.l1_holds_shared or spec.l1_bytes >= spec.shared_bytes_per_sm


def test_choices_that_a_device_does_not_have_are_refused() -> None:
    with pytest.raises(WarploomError, match="never caches global loads"):
        access_rules(find_device(cc="5.0"), MemoryOptions(l1_global=True))
    with pytest.raises(WarploomError, match="4 bytes wide, not 8"):
        access_rules(find_device(cc="9.0"), MemoryOptions(bank_bytes=8))
    assert access_rules(find_device(cc="3.5"), MemoryOptions(bank_bytes=8)).shared_read == (
        "shared_wide_banks"
    )
