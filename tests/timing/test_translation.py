"""Tests that the first request to a page waits for the translation of its address."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from chains import POINTERS

import warploom as wl
from warploom.devices.timing import find_timing

MIB = 1 << 20
GATHER = """
extern "C" __global__ void gather(const unsigned *a, unsigned *out, int step)
{
    out[threadIdx.x] = a[threadIdx.x * step];
}
"""


def cycles(step: int, count: int, latency: int) -> int:
    """Returns the modelled cycles of `count` dependent loads of zeros, at steps of `step` bytes,
    with a latency of translation."""
    gpu = wl.Device("h100", record=True)
    a, out = gpu.zeros(64 * MIB // 4, np.uint32), gpu.zeros(1, np.uint32)
    run = gpu.compile(POINTERS)["chain"][1, 1](a, out, step // 4, count)
    spec = replace(find_timing(wl.Device("h100").spec), latency_translation=latency)
    return run.time(spec=spec).cycles


def test_each_page_of_two_mib_is_translated_once() -> None:
    """16 dependent loads at steps of 4 MiB are in 16 pages, at steps of 64 KiB all in one."""
    for step, pages in ((4 * MIB, 16), (MIB // 16, 1)):
        more = cycles(step, 16, 500) - cycles(step, 16, 0)
        # The store that follows is to a page of its own, but nothing waits for it.
        assert pages * 500 <= more <= (pages + 1) * 500


def test_pages_are_translated_one_after_the_other() -> None:
    """The lanes of a warp load from 32 pages at once: the last one is translated 31 turns after the
    first one."""
    gpu = wl.Device("h100", record=True)
    a, out = gpu.zeros(128 * MIB // 4, np.uint32), gpu.zeros(32, np.uint32)
    kernel = gpu.compile(GATHER)["gather"]
    run = kernel[1, 32](a, out, 4 * MIB // 4)
    timing = find_timing(wl.Device("h100").spec)
    cycles = [run.time(spec=replace(timing, translation_cycles=one)).cycles for one in (60, 160)]
    assert cycles[1] - cycles[0] == pytest.approx(100 * 31, rel=0.05)


def test_older_devices_have_no_figure_for_it() -> None:
    assert find_timing(wl.Device("v100").spec).translation_sms == 0


def test_in_the_middle_of_a_long_run_pages_are_translated() -> None:
    gpu = wl.Device("h100", record=True)
    a, out = gpu.zeros(64 * MIB // 4, np.uint32), gpu.zeros(1, np.uint32)
    run = gpu.compile(POINTERS)["chain"][1, 1](a, out, MIB, 16)
    spec = replace(find_timing(wl.Device("h100").spec), latency_translation=0)
    warm = wl.CacheModel(dirty=0.5)
    assert run.time(l2=warm).cycles == run.time(l2=warm, spec=spec).cycles
