"""Checks match, redux and elect on both machines: results worked out by hand from the manual."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.reference.machine import ReferenceEngine
from warploom.program.build import build
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

Execute = Callable[..., list[int]]
NAN = 0x7FFFFFFF
ALL = 0xFFFFFFFF


@pytest.fixture(params=[ReferenceEngine, CompiledEngine], ids=["reference", "compiled"])
def execute(request: pytest.FixtureRequest) -> Execute:
    """Runs instructions in one warp: lane i has word i of `words` in %r0 and %x (as 64 bits with a
    high word of 7); returns the final %r1 by lane."""

    def run(body: str, words: list[int], target: str = "sm_100a") -> list[int]:
        module = parse(
            f"""
.version 8.6
.target {target}
.address_size 64
.visible .entry k(.param .u64 words)
{{
.reg .pred %p, %odd; .reg .b32 %r<4>; .reg .b64 %at, %x;
ld.param.u64 %at, [words];
mov.u32 %r1, %laneid;
mad.wide.u32 %at, %r1, 4, %at;
and.b32 %r2, %r1, 1;
setp.ne.u32 %odd, %r2, 0;
ld.global.b32 %r0, [%at];
mov.b64 %x, {{%r0, 7}};
mov.u32 %r1, 99;
{body}
st.global.b32 [%at], %r1;
ret;
}}
"""
        )
        verify(module)
        memory = DeviceMemory(1 << 30)
        buffer = memory.allocate(128)
        memory.write(buffer.address, np.array(words, np.uint32).tobytes())
        launch = Launch((1, 1, 1), (32, 1, 1), struct.pack("<Q", buffer.address))
        request.param().launch(build(module, "k"), launch, memory)
        return np.frombuffer(memory.read(buffer.address, 128), np.uint32).tolist()

    return run


def test_match_any_names_the_lanes_of_each_value(execute: Execute) -> None:
    words = [i % 3 for i in range(32)]
    groups = [sum(1 << i for i in range(32) if i % 3 == k) for k in range(3)]
    expected = [groups[w] for w in words]
    assert execute("match.any.sync.b32 %r1, %r0, -1;", words) == expected
    assert execute("match.any.sync.b64 %r1, %x, -1;", words) == expected


def test_match_any_looks_at_the_lanes_that_execute_it(execute: Execute) -> None:
    got = execute("@%odd match.any.sync.b32 %r1, %r0, 0xAAAAAAAA;", [5] * 32)
    assert got == [0xAAAAAAAA if i % 2 else 99 for i in range(32)]


def test_match_all(execute: Execute) -> None:
    body = "match.all.sync.b32 %r1|%p, %r0, -1; @!%p add.u32 %r1, %r1, 1;"
    assert execute(body, [4] * 32) == [ALL] * 32
    assert execute(body, [4] * 31 + [5]) == [1] * 32
    wide = "match.all.sync.b64 %r1, %x, -1;"
    assert execute(wide, [4] * 32) == [ALL] * 32
    assert execute("@%odd " + wide, [i % 2 for i in range(32)])[1] == 0xAAAAAAAA


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("add.u32", sum(range(32)) - 2 * 7),
        ("add.s32", sum(range(32)) - 2 * 7),
        ("min.u32", 0),
        ("max.u32", (1 << 32) - 7),
        ("min.s32", (1 << 32) - 7),
        ("max.s32", 31),
        ("and.b32", 0),
        ("or.b32", ALL),
    ],
)
def test_integer_reductions(execute: Execute, operation: str, expected: int) -> None:
    words = [(1 << 32) - 7 if i == 7 else i for i in range(32)]
    assert execute(f"redux.sync.{operation} %r1, %r0, -1;", words) == [expected] * 32


def test_a_reduction_leaves_out_the_lanes_that_do_not_execute_it(execute: Execute) -> None:
    got = execute("@%odd redux.sync.add.u32 %r1, %r0, 0xAAAAAAAA;", list(range(32)))
    assert got == [256 if i % 2 else 99 for i in range(32)]
    got = execute("@%odd redux.sync.xor.b32 %r1, %r0, 0xAAAAAAAA;", [1 << i for i in range(32)])
    assert got[1] == 0xAAAAAAAA


def f32(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


@pytest.mark.parametrize(
    ("operation", "words", "expected"),
    [
        ("min.f32", [f32(-2.5), f32(1.0)], f32(-2.5)),
        ("max.f32", [f32(-2.5), f32(1.0)], f32(1.0)),
        ("max.f32", [f32(-2.5), f32(-1.0)], f32(-1.0)),
        ("min.f32", [0, 1 << 31], 1 << 31),  # +0 is above -0
        ("max.f32", [1 << 31, 0], 0),
        ("min.f32", [0x7FC00001, f32(3.0)], f32(3.0)),
        ("min.f32", [0xFFC00001, 0x7FC00001], NAN),
        ("min.NaN.f32", [0x7FC00001, f32(3.0)], NAN),
        ("max.abs.f32", [f32(-2.5), f32(1.0)], f32(2.5)),
        ("min.abs.NaN.f32", [f32(-2.5), f32(-1.0)], f32(1.0)),
        ("max.f32", [0xFF800000, f32(-3e38)], f32(-3e38)),
    ],
)
def test_float_reductions(
    execute: Execute, operation: str, words: list[int], expected: int
) -> None:
    assert execute(f"redux.sync.{operation} %r1, %r0, -1;", words * 16) == [expected] * 32


def test_elect_chooses_the_lowest_lane(execute: Execute) -> None:
    body = "elect.sync %r1|%p, -1; @%p add.u32 %r1, %r1, 50;"
    assert execute(body, [0] * 32) == [50] + [0] * 31
    body = "@%odd elect.sync _|%p, 0xAAAAAAAA; @%p mov.u32 %r1, 1;"
    assert execute(body, [0] * 32) == [1 if i == 1 else 99 for i in range(32)]


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("vote.sync.ballot.b32 %r1, %odd, %r2;", lambda part: 0xAA << 8 * part),
        ("match.any.sync.b32 %r1, %r0, %r2;", lambda part: 0xFF << 8 * part),
        ("redux.sync.add.u32 %r1, %r0, %r2;", lambda part: 40),
        ("elect.sync %r1|%p, %r2;", lambda part: 8 * part),
        ("vote.sync.all.pred %p, %odd, %r2; selp.u32 %r1, 1, 0, %p;", lambda part: 0),
    ],
)
def test_each_lane_gets_the_result_of_its_own_members(
    execute: Execute, instruction: str, expected: Callable[[int], int]
) -> None:
    """Has quarters of a warp name only themselves in one instruction: PTX ISA, membermask."""
    own = "mov.u32 %r1, %laneid; and.b32 %r2, %r1, 24; mov.u32 %r3, 0xFF;"
    got = execute(f"{own} shl.b32 %r2, %r3, %r2; {instruction}", [5] * 32)
    assert got == [expected(lane // 8) for lane in range(32)]


@pytest.mark.parametrize(
    ("made", "answers"),
    [
        ("shfl.up.b32 %r1, %r0, 1, 0;", [100, *range(100, 131)]),
        ("shfl.down.b32 %r1, %r0, 1, 31;", [*range(101, 132), 131]),
        ("shfl.bfly.b32 %r1, %r0, 3, 31;", [100 + (i ^ 3) for i in range(32)]),
        ("shfl.idx.b32 %r1, %r0, 5, 31;", [105] * 32),
        # Segments of eight: beyond the last lane of one, a lane keeps its own value.
        (
            "shfl.down.b32 %r1|%p, %r0, 3, 0x1807; @!%p mov.b32 %r1, 7;",
            [103 + i if i % 8 < 5 else 7 for i in range(32)],
        ),
        ("vote.ballot.b32 %r1, %odd;", [0xAAAAAAAA] * 32),
        ("vote.all.pred %p, %odd; selp.b32 %r1, 1, 0, %p;", [0] * 32),
        ("vote.any.pred %p, !%odd; selp.b32 %r1, 1, 0, %p;", [1] * 32),
        ("vote.uni.pred %p, %odd; selp.b32 %r1, 1, 0, %p;", [0] * 32),
        # Only the lanes that execute it are asked, and read from.
        ("@!%odd vote.ballot.b32 %r1, !%odd;", [99 if i % 2 else 0x55555555 for i in range(32)]),
        ("@%odd vote.uni.pred %p, %odd; @%odd selp.b32 %r1, 1, 0, %p;", [99, 1] * 16),
        (
            "@%odd shfl.bfly.b32 %r1, %r0, 2, 31;",
            [100 + (i ^ 2) if i % 2 else 99 for i in range(32)],
        ),
    ],
)
def test_forms_without_sync(execute: Execute, made: str, answers: list[int]) -> None:
    """Checks the forms of targets before sm_70, in which the active lanes take part."""
    assert execute(made, [100 + i for i in range(32)], "sm_60") == answers
