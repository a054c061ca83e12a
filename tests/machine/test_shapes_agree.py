"""Index arithmetic on both machines; and that shapes say of registers what is true of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shaped_programs import (
    idle_rounds,
    jumps,
    known_courses,
    leavings,
    predicated_blocks,
    shaped_kernels,
    swept_kernels,
    tiled_kernels,
    walks,
)
from shaped_runs import BLOCKS, LONG_BLOCKS, WIDE, left_behind, prepared, schedules

from warploom.analysis.shape_transfer import warp_layout_of
from warploom.analysis.uniformity import shapes_of
from warploom.analysis.vector_shape import VectorShape
from warploom.core.errors import WarploomError
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Schedule
from warploom.machine.reference.machine import ReferenceEngine
from warploom.machine.reference.state import Warp, WarpAccess
from warploom.program.program import Program
from warploom.ptx.ir import Register


class Watch:
    """Looks at the registers that a block will read, where all living lanes come to it."""

    def __init__(self, program: Program, block: tuple[int, int]) -> None:
        self.program = program
        self.shapes = shapes_of(program, warp_layout_of((*block, 1)))
        self.starts = {b.start: b.index for b in program.blocks}

    def issued(self, warp: Warp, instruction: int, mask: int) -> None:
        block = self.starts.get(instruction)
        if block is not None and warp.splits.active == warp.splits.live:
            lanes = [lane for lane in range(32) if warp.splits.live >> lane & 1]
            here = self.shapes.at(block)
            for register in self.program.live_in[block] & here.keys():
                self.look(register, here[register], warp.registers[register.name], lanes)

    def look(
        self, register: Register, shape: VectorShape, values: np.ndarray, lanes: list[int]
    ) -> None:
        bits = register.type.bits
        part = 32 // shape.width
        firsts = {
            (int(values[lane]) - shape.stride * (lane % part)) % (1 << bits): lane // part
            for lane in lanes
        }
        rows = {lane // part for lane in lanes}
        assert len({(r, f) for f, r in firsts.items()}) <= len(rows), (register, shape, values)

    def accessed(self, warp: Warp, access: WarpAccess) -> None:
        pass


def test_machines_agree_on_shapes(random_examples: int) -> None:
    @settings(max_examples=random_examples)
    @given(text=shaped_kernels(), block=st.sampled_from(BLOCKS), schedule=schedules())
    def agree(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        expected = left_behind(text, block, schedule, ReferenceEngine())
        assert left_behind(text, block, schedule, CompiledEngine()) == expected

    agree()


def test_machines_agree_on_walks(random_examples: int) -> None:
    """Of pointers in a loop, whose places are known by the first of each lap."""

    @settings(max_examples=random_examples)
    @given(text=shaped_kernels(walks()), block=st.sampled_from(BLOCKS), schedule=schedules())
    def agree(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        expected = left_behind(text, block, schedule, ReferenceEngine(), 3)
        assert left_behind(text, block, schedule, CompiledEngine(), 3) == expected

    agree()


@pytest.mark.parametrize("body", [predicated_blocks, leavings, jumps])
def test_lanes_part_and_meet(
    random_examples: int, body: Callable[[], st.SearchStrategy[str]]
) -> None:
    """Lanes that wait keep what they have while others write what all of these agree on; those that
    leave loops, or jump over regions, let the others go on without them."""

    @settings(max_examples=random_examples)
    @given(text=shaped_kernels(body()), block=st.sampled_from(BLOCKS), schedule=schedules())
    def agree(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        expected = left_behind(text, block, schedule, ReferenceEngine())
        assert left_behind(text, block, schedule, CompiledEngine()) == expected

    agree()


def test_shapes_are_true(random_examples: int) -> None:
    @settings(max_examples=random_examples)
    @given(
        text=shaped_kernels() | shaped_kernels(leavings(turns=False)) | shaped_kernels(jumps()),
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


def test_warps_that_have_nothing_to_do_are_counted(random_examples: int) -> None:
    """Between barriers, where others of their block have."""

    @settings(max_examples=random_examples)
    @given(
        text=shaped_kernels(idle_rounds()),
        block=st.sampled_from(LONG_BLOCKS),
        schedule=schedules(),
    )
    def agree(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        expected = left_behind(text, block, schedule, ReferenceEngine())
        assert left_behind(text, block, schedule, CompiledEngine()) == expected

    agree()


@pytest.mark.parametrize(
    ("kernels", "blocks"), [(swept_kernels(), LONG_BLOCKS), (tiled_kernels(), WIDE)]
)
def test_warps_that_go_in_one_sweep_do_what_they_do_in_turns(
    random_examples: int, kernels: st.SearchStrategy[str], blocks: list[tuple[int, int]]
) -> None:
    """Between barriers, where the first threads of a block work side by side, or all in rows."""

    @settings(max_examples=random_examples)
    @given(text=kernels, block=st.sampled_from(blocks), schedule=schedules())
    def agree(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        expected = left_behind(text, block, schedule, ReferenceEngine())
        assert left_behind(text, block, schedule, CompiledEngine()) == expected

    agree()


def test_blocks_whose_course_is_known_do_what_they_do_in_turns(random_examples: int) -> None:
    """From their begin to their end; the first block goes in turns, which later ones know by it."""

    @settings(max_examples=random_examples)
    @given(text=known_courses(), block=st.sampled_from(LONG_BLOCKS), schedule=schedules())
    def agree(text: str, block: tuple[int, int], schedule: Schedule) -> None:
        expected = left_behind(text, block, schedule, ReferenceEngine(), 5)
        assert left_behind(text, block, schedule, CompiledEngine(), 5) == expected

    agree()
