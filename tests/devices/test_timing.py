"""The facts about time: complete, each with its source, and in keeping with each other."""

from __future__ import annotations

from dataclasses import fields

import pytest

from warploom.devices.catalog import catalog
from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import TimingSpec, find_timing
from warploom.timing.work.costs import UNITS, WorkCosts

DEVICES = list(catalog().values())
STATED = {field.name for field in fields(TimingSpec)} - {"sources"}


@pytest.mark.parametrize("device", DEVICES, ids=lambda spec: spec.name)
def test_every_figure_has_a_source(device: DeviceSpec) -> None:
    timing = find_timing(device)
    assert timing.sources.keys() == STATED
    assert all(source.text for source in timing.sources.values())


@pytest.mark.parametrize("device", DEVICES, ids=lambda spec: spec.name)
def test_levels_of_memory_are_slower_the_further_they_are(device: DeviceSpec) -> None:
    timing = find_timing(device)
    known = [timing.latency_l1, timing.latency_l2, timing.latency_dram]
    there = [cycles for cycles in known if cycles]
    assert there == sorted(there)
    assert timing.dram_efficiency < 1


def test_schedulers_and_double_precision_are_nvidias() -> None:
    """CUDA C Programming Guide 4.2, appendix F; guide 10, "Throughput of Native Arithmetic
    Instructions": lanes for FP32 and FP64, schedulers."""
    figures = {
        "gtx-280": (1, 8, 1), "gtx-480": (2, 32, 16), "gtx-460": (2, 48, 4), "k40": (4, 192, 64),
        "gtx-1080": (4, 128, 4), "p100": (2, 64, 32), "v100": (4, 64, 32), "a100": (4, 64, 32),
    }  # fmt: skip
    for name, expected in figures.items():
        timing = find_timing(catalog()[name])
        assert (timing.schedulers, timing.lanes_fp32, timing.lanes_fp64) == expected


def test_a_warp_takes_a_unit_for_32_lanes_over_its_own() -> None:
    """16 FP32 lanes in each of four sub-partitions of a V100: two cycles; 2 for FP64 in all of an
    RTX 2080 Ti: 16."""
    for name, unit, cycles in (
        ("v100", "fp32", 2),
        ("rtx-2080-ti", "fp64", 16),
        ("k40", "fp32", 2 / 3),
    ):
        device = catalog()[name]
        assert WorkCosts(device, find_timing(device)).interval(unit) == round(1024 * cycles)
    assert len(set(UNITS)) == len(UNITS)
