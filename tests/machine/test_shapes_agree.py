"""Checks index arithmetic on both machines, and that inferred vector shapes hold for the registers'
values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shaped_programs import (
    backwards,
    empty_warp_laps,
    jumps,
    masked_loops,
    masks,
    predicated_blocks,
    shaped_kernels,
    static_schedule_kernels,
    strided_chains,
    tiled_kernels,
    warp_loop_kernels,
)
from shaped_runs import BLOCKS, LONG_BLOCKS, MASKED, WIDE, outcome_of, prepared, schedules

from warploom.analysis.uniformity import shapes_of
from warploom.core.errors import WarploomError
from warploom.isa.instruction import Register
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Schedule
from warploom.machine.reference.machine import ReferenceEngine
from warploom.machine.reference.state import Warp, WarpAccess
from warploom.program.program import Program
from warploom.shapes.vector_shape import VectorShape
from warploom.shapes.warp_layout import warp_layout_of


class Watch:
    """Asserts, while the reference machine runs, that registers have their shapes: those that a
    basic block will read when all live lanes enter it."""

    def __init__(self, program: Program, block: tuple[int, int]) -> None:
        self.program = program
        self.shapes = shapes_of(program, warp_layout_of((*block, 1)))
        self.starts = {b.start: b.index for b in program.blocks}

    def issued(self, warp: Warp, instruction: int, mask: int) -> None:
        block = self.starts.get(instruction)
        if block is None:
            return
        here = self.shapes.at(block)
        running = [lane for lane in range(32) if mask >> lane & 1]
        for register in self.program.live_in[block] & here.keys():
            self.look_at_bits(register, here[register], warp.registers[register.name], running)
        if warp.splits.active == warp.splits.live:
            lanes = [lane for lane in range(32) if warp.splits.live >> lane & 1]
            for register in self.program.live_in[block] & here.keys():
                self.look(register, here[register], warp.registers[register.name], lanes)

    def look(
        self, register: Register, shape: VectorShape, values: np.ndarray, lanes: list[int]
    ) -> None:
        bits = register.type.bits
        part = 32 // shape.width
        firsts = {
            (int(values[lane]) - shape.stride * (lane % shape.length)) % (1 << bits): lane // part
            for lane in lanes
        }
        rows = {lane // part for lane in lanes}
        assert len({(r, f) for f, r in firsts.items()}) <= len(rows), (register, shape, values)

    def look_at_bits(
        self, register: Register, shape: VectorShape, values: np.ndarray, lanes: list[int]
    ) -> None:
        """Checks the bits of each lane by itself, on every path."""
        for lane in lanes:
            begins = int(values[lane]) - shape.stride * (lane % shape.length)
            assert (begins & ~shape.ones) % (1 << register.type.bits) == 0, (register, lane, begins)

    def accessed(self, warp: Warp, access: WarpAccess) -> None:
        pass


def test_machines_agree_on_shapes(random_examples: int) -> None:
    @settings(max_examples=random_examples)
    @given(text=shaped_kernels(), block=st.sampled_from(BLOCKS), schedule=schedules())
    def agree(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        expected = outcome_of(text, block, schedule, ReferenceEngine())
        assert outcome_of(text, block, schedule, CompiledEngine()) == expected

    agree()


def test_machines_agree_on_masks(random_examples: int) -> None:
    """Checks masks and shifts of thread ranks, whose shapes depend on where lane runs begin."""

    @settings(max_examples=random_examples)
    @given(text=shaped_kernels(masks()), block=st.sampled_from(MASKED), schedule=schedules())
    def agree(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        expected = outcome_of(text, block, schedule, ReferenceEngine())
        assert outcome_of(text, block, schedule, CompiledEngine()) == expected

    agree()


def test_inferred_low_bits_and_shapes_of_masks_hold(random_examples: int) -> None:
    """`Watch` asserts them at each basic block."""

    @settings(max_examples=random_examples)
    @given(text=shaped_kernels(masks()), block=st.sampled_from(MASKED), schedule=schedules())
    def hold(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        program, launch, memory, _ = prepared(text, block, schedule)
        try:
            ReferenceEngine().launch(program, launch, memory, Watch(program, block))
        except WarploomError:
            return

    hold()


def test_machines_agree_on_strided_chains(random_examples: int) -> None:
    """Checks pointers in a loop whose addresses are computed from the first of each iteration."""

    @settings(max_examples=random_examples)
    @given(
        text=shaped_kernels(strided_chains()), block=st.sampled_from(BLOCKS), schedule=schedules()
    )
    def agree(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        expected = outcome_of(text, block, schedule, ReferenceEngine(), 3)
        assert outcome_of(text, block, schedule, CompiledEngine(), 3) == expected

    agree()


def test_machines_agree_on_addresses_that_fall_from_lane_to_lane(random_examples: int) -> None:
    """Checks accesses that are moved in reverse order, with lanes off, at the ends of memory and
    misaligned."""

    @settings(max_examples=random_examples)
    @given(text=shaped_kernels(backwards()), block=st.sampled_from(BLOCKS), schedule=schedules())
    def agree(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        expected = outcome_of(text, block, schedule, ReferenceEngine(), 3)
        assert outcome_of(text, block, schedule, CompiledEngine(), 3) == expected

    agree()


@pytest.mark.parametrize("body", [predicated_blocks, masked_loops, jumps])
def test_machines_agree_on_divergence_and_reconvergence(
    random_examples: int, body: Callable[[], st.SearchStrategy[str]]
) -> None:
    """Checks that inactive lanes keep their registers while others write uniform values, and that
    lanes which leave loops or jump over regions do not stop the others."""

    @settings(max_examples=random_examples)
    @given(text=shaped_kernels(body()), block=st.sampled_from(BLOCKS), schedule=schedules())
    def agree(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        expected = outcome_of(text, block, schedule, ReferenceEngine())
        assert outcome_of(text, block, schedule, CompiledEngine()) == expected

    agree()


def test_inferred_shapes_hold(random_examples: int) -> None:
    """`Watch` asserts them at each basic block."""

    @settings(max_examples=random_examples)
    @given(
        text=shaped_kernels() | shaped_kernels(masked_loops(turns=False)) | shaped_kernels(jumps()),
        block=st.sampled_from(BLOCKS),
        schedule=schedules(),
    )
    def hold(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        program, launch, memory, _ = prepared(text, block, schedule)
        try:
            ReferenceEngine().launch(program, launch, memory, Watch(program, block))
        except WarploomError:
            return

    hold()


def test_machines_agree_on_empty_warps(random_examples: int) -> None:
    """Checks barrier regions in which only some warps of a block have active lanes."""

    @settings(max_examples=random_examples)
    @given(
        text=shaped_kernels(empty_warp_laps()),
        block=st.sampled_from(LONG_BLOCKS),
        schedule=schedules(),
    )
    def agree(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        expected = outcome_of(text, block, schedule, ReferenceEngine())
        assert outcome_of(text, block, schedule, CompiledEngine()) == expected

    agree()


@pytest.mark.parametrize(
    ("kernels", "blocks"), [(warp_loop_kernels(), LONG_BLOCKS), (tiled_kernels(), WIDE)]
)
def test_machines_agree_on_warp_loops(
    random_examples: int, kernels: st.SearchStrategy[str], blocks: list[tuple[int, int]]
) -> None:
    """Checks barrier regions in which the first threads of a block access consecutive addresses, or
    all access records."""

    @settings(max_examples=random_examples)
    @given(text=kernels, block=st.sampled_from(blocks), schedule=schedules())
    def agree(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        expected = outcome_of(text, block, schedule, ReferenceEngine())
        assert outcome_of(text, block, schedule, CompiledEngine()) == expected

    agree()


def test_machines_agree_on_static_schedules(random_examples: int) -> None:
    """Checks kernels whose barrier regions all have a static schedule; the first block runs warp by
    warp and fills the range caches."""

    @settings(max_examples=random_examples)
    @given(text=static_schedule_kernels(), block=st.sampled_from(LONG_BLOCKS), schedule=schedules())
    def agree(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        expected = outcome_of(text, block, schedule, ReferenceEngine(), 5)
        assert outcome_of(text, block, schedule, CompiledEngine(), 5) == expected

    agree()
