"""On which ways between barriers warps have nothing to do."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from warploom.analysis.build import build
from warploom.analysis.idle import idle_ways
from warploom.analysis.program import Program
from warploom.machine.compiled import CompiledEngine
from warploom.machine.launch import Launch
from warploom.machine.memory import DeviceMemory
from warploom.ptx.parser import parse

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 words)
{{
.reg .u32 %x, %y, %stride, %lap, %r<3>; .reg .u64 %at, %base; .reg .pred %p, %again;
.shared .align 4 .b8 part[1024];
ld.param.u64 %base, [words];
mov.u32 %x, %tid.x;
mov.u32 %y, %tid.y;
mad.lo.u32 %r0, %y, 64, %x;
mad.wide.u32 %at, %r0, 4, %base;
mov.u32 %stride, 32;
mov.u32 %lap, 0;
{leave}
bar.sync 0;
LAP:
{compare}
{branch} bra PAST;
red.global.add.u32 [%at], 1;
PAST:
bar.sync 0;
{change}
add.u32 %lap, %lap, 1;
setp.lt.u32 %again, %lap, {laps};
@%again bra LAP;
{end}
ret;
}}
"""
COMPARE, BRANCH = "setp.ge.u32 %p, %x, %stride;", "@%p"


ONE_WRITES = """setp.ne.u32 %p, %x, 0;
@%p bra END;
red.global.add.u32 [%base+4], 1;
END:"""


def program(
    compare: str = COMPARE,
    branch: str = BRANCH,
    change: str = "",
    leave: str = "",
    end: str = "",
    laps: int = 3,
) -> Program:
    given = {"compare": compare, "branch": branch, "change": change, "leave": leave, "end": end}
    return build(parse(KERNEL.format(**given, laps=laps)), "k")


def changed(program: Program) -> list[set[str]]:
    """What warps change on each of the program's idle ways."""
    ways = idle_ways(program, range(len(program.blocks)))
    return [{register.name for register in way.changed} for way in ways]


@pytest.mark.parametrize(
    ("compare", "branch"),
    [
        (COMPARE, BRANCH),
        ("setp.gt.s32 %p, %x, 7;", "@%p"),
        ("setp.lt.u32 %p, %x, %stride;", "@!%p"),
        ("setp.le.u32 %p, %stride, %x;", "@%p"),
        ("setp.gt.u32 %p, %stride, %x;", "@!%p"),
        ("setp.hs.u32 %p, %x, %stride;", "@%p"),
    ],
)
def test_threads_from_a_number_on_have_nothing_to_do(compare: str, branch: str) -> None:
    # From the first barrier, and from the one in the loop, which counts a lap before.
    assert changed(program(compare, branch)) == [set(), {"%lap"}]


@pytest.mark.parametrize(
    ("compare", "branch"),
    [
        ("setp.lt.u32 %p, %x, %stride;", "@%p"),
        ("setp.ge.u32 %p, %x, %stride;", "@!%p"),
        ("setp.eq.u32 %p, %x, %stride;", "@%p"),
        ("setp.ge.u32 %p, %y, %stride;", "@%p"),
        ("setp.ge.u32 %p, %x, %r0;", "@%p"),
        ("ld.shared.u32 %r1, [part]; setp.ge.u32 %p, %x, %stride;", "@%p"),
        ("mov.u32 %r1, %clock; setp.ge.u32 %p, %x, %stride;", "@%p"),
        ("@%again setp.ge.u32 %p, %x, %stride;", "@%p"),
    ],
)
def test_others_may_have_work(compare: str, branch: str) -> None:
    assert changed(program(compare, branch)) == []


def test_what_threads_do_not_agree_on_is_for_each_to_compute() -> None:
    # Read behind the next barrier; only the way from the first one does not write it.
    made = program(change="add.u32 %x, %x, 0;")
    assert changed(made) == []
    made = program(change="add.u32 %r0, %r0, %x; add.u32 %r2, %r2, %r0;")
    assert changed(made) == [set()]


@pytest.mark.parametrize("leave", ["@%again exit;", "@%again ret;", "@%again trap;", "trap;"])
def test_who_may_leave_on_the_way_goes_it_alone(leave: str) -> None:
    # Behind the first barrier nobody does.
    assert changed(program(change=leave)) == [set()]
    assert changed(program(compare=f"{leave} {COMPARE}")) == []
    assert changed(program(end=ONE_WRITES + "trap;")) == [set(), {"%lap"}]


@pytest.mark.parametrize(("width", "height", "laps"), [(64, 1, 3), (64, 2, 3), (128, 1, 200)])
def test_every_row_of_a_block_works(width: int, height: int, laps: int) -> None:
    memory = DeviceMemory(1 << 30)
    words = memory.allocate(4 * width * height)
    given = struct.pack("<Q", words.address)
    launch = Launch((1, 1, 1), (width, height, 1), given)
    tally = CompiledEngine().launch(program(laps=laps), launch, memory)
    found = np.frombuffer(memory.read(words.address, 4 * width * height), np.uint32)
    # In each lap the first 32 threads of each row add 1; their warps alone.
    assert found.reshape(height, width).tolist() == [[laps] * 32 + [0] * (width - 32)] * height
    begin, lap, end = 8, 2 + 1 + 3, 1  # instructions; of a lap without the addition
    warps = width * height // 32
    assert tally.warps.sum() == warps * (begin + laps * lap + end) + laps * height
    assert tally.threads.sum() == 32 * tally.warps.sum()


def test_those_behind_the_one_that_writes_have_nothing_to_do() -> None:
    ways = idle_ways(made := program(end=ONE_WRITES), range(len(made.blocks)))
    assert [way.ends for way in ways] == [False, False, True]
    assert changed(program(end=ONE_WRITES.replace("%x, 0", "%x, 1"))) == [set(), {"%lap"}]
    assert changed(program(end=ONE_WRITES.replace("setp.ne", "setp.eq"))) == [set(), {"%lap"}]


@pytest.mark.parametrize(("leave", "living"), [("", 4), ("setp.ge.u32 %p, %x, 64; @%p exit;", 2)])
def test_one_thread_writes_in_the_end(leave: str, living: int) -> None:
    memory, warps = DeviceMemory(1 << 30), 4
    words = memory.allocate(4 * 32 * warps)
    given = struct.pack("<Q", words.address)
    launch = Launch((2, 1, 1), (32 * warps, 1, 1), given)
    tally = CompiledEngine().launch(program(leave=leave, end=ONE_WRITES), launch, memory)
    found = np.frombuffer(memory.read(words.address, 4 * 32 * warps), np.uint32)
    # In each of two blocks three laps of the first 32 threads, and the first thread once more.
    assert found.tolist() == [6, 6 + 2] + [6] * 30 + [0] * 32 * (warps - 1)
    begin, lap, end = 8, 2 + 1 + 3, 2 + 1
    whole = begin + 3 * lap + end
    left = 2 if leave else 0  # all compare and leave or stay, just before the first barrier
    assert tally.warps.sum() == 2 * (
        living * (whole + left) + 3 + 1 + (warps - living) * (begin - 1 + left)
    )
    assert tally.threads.sum() == 32 * tally.warps.sum() - 2 * 31


@pytest.mark.parametrize(
    "leave",
    [
        "setp.lt.u32 %p, %x, 96; @%p bra SAME; bar.sync 0; SAME:",
        "setp.ge.u32 %p, %x, 96; @%p bar.sync 0;",
    ],
)
def test_a_warp_that_is_a_lap_behind_does_its_own(leave: str) -> None:
    # It waits once more than the others do: from then on it is at their barriers a lap later.
    memory = DeviceMemory(1 << 30)
    words = memory.allocate(4 * 128)
    launch = Launch((1, 1, 1), (128, 1, 1), struct.pack("<Q", words.address))
    made = program(leave=leave)
    tally = CompiledEngine().launch(made, launch, memory)
    counts = [
        int(tally.warps[index])
        for index, one in enumerate(made.instructions)
        if one.operation.name == "add"
    ]
    assert counts == [4 * 3]  # every warp counts three laps
    found = np.frombuffer(memory.read(words.address, 4 * 128), np.uint32)
    assert found.tolist() == [3] * 32 + [0] * 96
