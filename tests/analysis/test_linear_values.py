"""Holds forms and ranges of addresses against the addresses that kernels with loops access."""

from __future__ import annotations

import math
import struct
from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from loop_programs import MIDDLE, loop_kernels

import warploom as wl
from warploom.analysis.linear.address_ranges import AddressRanges
from warploom.analysis.linear.affine import GLOBAL_SPACES, LinearAnalysis
from warploom.analysis.linear.forms import Form, form
from warploom.analysis.linear.joins import LinearValue, merged
from warploom.analysis.linear.register_values import LaunchInputs
from warploom.analysis.linear.term_forms import as_type
from warploom.core.types import S32, U32

GRID, BLOCK = 3, 40


@given(loop_kernels(), st.sampled_from((0, 5, 33, 100)))
def test_addresses_are_those_of_their_forms(text: str, n: int) -> None:
    """An address is the constant of its form plus what the thread's indices add, plus multiples of
    the strides of all other variables; and it lies in the range that facts leave."""
    gpu = wl.Device("a100")
    kernel = gpu.compile(text, "ptx")["k"]
    buffer = gpu.zeros(2 * MIDDLE // 4, np.uint32)
    trace = kernel[GRID, BLOCK].trace(buffer.address + MIDDLE, n)
    parameters = struct.pack("<QI", buffer.address + MIDDLE, n)
    launch = LaunchInputs((GRID, 1, 1), (BLOCK, 1, 1), parameters, (), lambda address: None)
    analysis = LinearAnalysis(kernel.program, launch)
    ranges = AddressRanges(analysis)
    accessed = defaultdict[int, list[tuple[int, int, int]]](list)
    for warp in trace.warps:
        for step in trace.warp(warp.block, warp.warp).steps:
            for access in step.accesses:
                if access.space == "global":
                    for lane, address in zip(access.lanes, access.addresses, strict=True):
                        thread = 32 * warp.warp + lane
                        accessed[step.instruction].append((warp.block, thread, address))
    known = {one.instruction: one for one in analysis.memory_accesses(GLOBAL_SPACES)}
    assert accessed.keys() <= known.keys()
    for instruction, places in accessed.items():
        access = known[instruction]
        bounded = ranges.of(access)
        for block, thread, address in places:
            if access.address.form is not None:
                assert is_value(access.address.form, address, block, thread), (access, address)
            if bounded is not None:
                low, end = bounded.span()
                assert low <= address <= end - access.size, (access, address)


def test_a_number_of_few_paths_may_wrap_around() -> None:
    """Behind a branch that makes 40 into ~40, an unsigned number is one of two; as a signed one,
    the second would be negative."""
    values = [LinearValue(form(number), frozenset()) for number in (40, (1 << 32) - 41)]
    few = merged(values, "path", 3).form
    assert few is not None
    assert as_type(few, U32) == few
    assert as_type(few, S32) is None


def is_value(made: Form, value: int, block: int, thread: int) -> bool:
    """Returns whether a thread may have a value by a form, as far as bounds and common divisors of
    the variables besides its indices decide it."""
    rest, others = value - made.constant, list[tuple[int, float]]()
    for variable, stride in made.strides:
        if variable.name in ("%ctaid.x", "%tid.x"):
            rest -= stride * (block if variable.of_block else thread)
        else:
            last = math.inf if variable.extent is None else variable.extent - 1
            others.append((stride, last))
    low = sum(min(0, stride * last) for stride, last in others)
    high = sum(max(0, stride * last) for stride, last in others)
    common = math.gcd(*(stride for stride, _ in others))
    return low <= rest <= high and (rest % common == 0 if common else rest == 0)
