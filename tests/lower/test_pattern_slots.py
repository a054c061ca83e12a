"""Checks that patterns which alternate have different slots in the pattern table."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from warploom.cost.device_rules import access_rules
from warploom.cost.pattern_table import SLOTS
from warploom.devices.catalog import find_device
from warploom.llvm.lanes import I64, Lanes
from warploom.llvm.target import target_machine
from warploom.lower.access.pattern_slots import pattern_slot

ALL = 0xFFFFFFFF
UNIT = access_rules(find_device(cc="9.0")).unit
"""The bytes of a unit, from whose begin the offsets of a pattern are counted."""


@cache
def compiled() -> tuple[llvm.ExecutionEngine, Callable[[int, int], int]]:
    """Compiles the function that returns the slot of a mask and a first address; returns the engine
    that owns it, and the function."""
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(I64, [I64, I64]), "slot")
    builder = ir.IRBuilder(function.append_basic_block())
    rules = access_rules(find_device(cc="9.0"))
    place = pattern_slot(Lanes(module, builder), rules, *function.args)
    builder.ret(place.slot)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), target_machine())
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    return engine, kind(engine.get_function_address("slot"))


def slots(mask: int, addresses: range) -> list[int]:
    _, slot = compiled()
    return [slot(mask, address) for address in addresses]


@pytest.mark.parametrize("mask", [ALL, 0xFFFF, 0xAAAAAAAA])
@pytest.mark.parametrize("step", [4, 16, 32])
@pytest.mark.parametrize("base", [0, 1 << 30])
def test_rows_that_begin_at_multiples_of_a_step_have_different_slots(
    mask: int, step: int, base: int
) -> None:
    found = slots(mask, range(base, base + UNIT, step)[:SLOTS])
    assert len(set(found)) == len(found) == min(SLOTS, UNIT // step)
    assert all(0 <= slot < SLOTS for slot in found)


STEPS = (1, 2, 4, 8, 16)
LOW = [(1 << step) - 1 for step in STEPS]
STRIDED = [sum(1 << lane for lane in range(0, 32, 2 * step)) for step in STEPS]
HIGH = [ALL << step & ALL for step in STEPS]
EVEN, ODD = 0x55555555, 0xAAAAAAAA

FAMILIES = {
    "a reduction over halves, s[t]": [(mask, 0) for mask in (ALL, *LOW)],
    "a reduction over halves, s[t + step]": [
        (ALL, 0),
        *((mask, 4 * step) for mask, step in zip(LOW, STEPS, strict=True)),
    ],
    "a reduction over strides, s[t]": [(mask, 0) for mask in STRIDED],
    "a reduction over strides, s[t + step]": [
        (mask, 4 * step) for mask, step in zip(STRIDED, STEPS, strict=True)
    ],
    "a scan, s[t]": [
        (ALL, 0),
        *((mask, 4 * step) for mask, step in zip(HIGH, STEPS, strict=True)),
    ],
    "a scan, s[t - step]": [(mask, 0) for mask in (ALL, *HIGH)],
    "even and odd lanes": [(EVEN, 0), (ODD, 4)],
    "even and odd lanes of rows of their own": [(EVEN, 0), (ODD, 0)],
    "halves of a warp": [(0xFFFF, 0), (0xFFFF << 16, 64)],
    "halves of a warp in rows of their own": [(0xFFFF, 0), (0xFFFF << 16, 0)],
}
"""The masks of one instruction's alternating accesses, with the addresses of their first lanes."""


@pytest.mark.parametrize("family", FAMILIES)
def test_accesses_of_one_family_have_different_slots(family: str) -> None:
    _, slot = compiled()
    found = [slot(*access) for access in FAMILIES[family]]
    assert len(set(found)) == len(found)


def test_rows_at_a_distance_of_a_unit_share_their_pattern() -> None:
    assert len(set(slots(ALL, range(36, 36 + 10 * UNIT, UNIT)))) == 1


def test_a_single_lane_has_one_slot_at_any_address() -> None:
    assert len(set(slots(1 << 7, range(0, 4096, 4)))) == 1
