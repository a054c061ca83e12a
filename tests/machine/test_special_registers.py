"""Checks special registers on both machines by their definitions in the manual."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from warploom.isa.special import SPECIAL_REGISTERS
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Launch, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.reference.machine import ReferenceEngine
from warploom.program.build import build
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

GRID, BLOCK = (2, 3, 1), (5, 2, 4)
THREADS = 40
SMS = 4
NAMES = sorted(SPECIAL_REGISTERS)


def kernel() -> str:
    """Returns a kernel in which every thread stores every special register, eight bytes for
    each."""
    lines: list[str] = []
    for at, name in enumerate(NAMES):
        bits = SPECIAL_REGISTERS[name].type.bits
        if bits == 1:
            lines += [f"mov.pred %p, {name};", "selp.u64 %v, 1, 0, %p;"]
        elif bits == 32:
            lines += [f"mov.u32 %w, {name};", "cvt.u64.u32 %v, %w;"]
        else:
            lines += [f"mov.u64 %v, {name};"]
        lines.append(f"st.global.u64 [%out+{8 * at}], %v;")
    body = "\n".join(lines)
    return f"""
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 results)
{{
.reg .pred %p; .reg .b32 %w, %n, %b; .reg .b64 %v, %out;
.shared .align 4 .b8 room[48];
ld.param.u64 %out, [results];
mov.u32 %w, room;
mov.u32 %n, %ctaid.y;
mov.u32 %w, %ctaid.x;
mad.lo.u32 %b, %n, {GRID[0]}, %w;
mov.u32 %n, %tid.z;
mov.u32 %w, %tid.y;
mad.lo.u32 %n, %n, {BLOCK[1]}, %w;
mov.u32 %w, %tid.x;
mad.lo.u32 %n, %n, {BLOCK[0]}, %w;
mad.lo.u32 %n, %b, {THREADS}, %n;
mad.wide.u32 %out, %n, {8 * len(NAMES)}, %out;
{body}
ret;
}}
"""


@pytest.fixture(scope="module", params=[ReferenceEngine, CompiledEngine], ids=["reference", "jit"])
def values(request: pytest.FixtureRequest) -> dict[str, np.ndarray]:
    """Returns by name the value that each thread of each block stored."""
    module = parse(kernel())
    verify(module)
    program = build(module, "k")
    memory = DeviceMemory(1 << 30)
    size = 6 * THREADS * len(NAMES) * 8
    target = memory.allocate(size)
    arguments = struct.pack("<Q", target.address)
    schedule = Schedule(sms=SMS)
    launch = Launch(GRID, BLOCK, arguments, dynamic_shared_bytes=16, schedule=schedule)
    request.param().launch(program, launch, memory)
    found = np.frombuffer(memory.read(target.address, size), np.uint64)
    table = found.reshape(6, THREADS, len(NAMES))
    return {name: table[:, :, at] for at, name in enumerate(NAMES)}


def thread(values: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Returns a register of the first block by thread."""
    return values[name][0]


def test_indices(values: dict[str, np.ndarray]) -> None:
    linear = np.arange(THREADS)
    assert (thread(values, "%tid.x") == linear % 5).all()
    assert (thread(values, "%tid.y") == linear // 5 % 2).all()
    assert (thread(values, "%tid.z") == linear // 10).all()
    assert [int(values["%ctaid.y"][b, 0]) for b in range(6)] == [0, 0, 1, 1, 2, 2]
    for name, shape in (("%ntid", BLOCK), ("%nctaid", GRID)):
        for part, length in zip("xyz", shape, strict=True):
            assert (values[f"{name}.{part}"] == length).all()


def test_lanes_and_warps(values: dict[str, np.ndarray]) -> None:
    linear = np.arange(THREADS)
    lane = (linear % 32).astype(np.uint64)
    assert (thread(values, "%laneid") == lane).all()
    assert (thread(values, "%warpid") == linear // 32).all()
    assert (values["%nwarpid"] == 2).all()
    one = np.uint64(1)
    assert (thread(values, "%lanemask_eq") == one << lane).all()
    assert (thread(values, "%lanemask_lt") == (one << lane) - one).all()
    assert (thread(values, "%lanemask_ge") == (one << np.uint64(32)) - (one << lane)).all()
    both = thread(values, "%lanemask_le") + thread(values, "%lanemask_gt")
    assert (both == 0xFFFFFFFF).all()


def test_shared_memory(values: dict[str, np.ndarray]) -> None:
    assert (values["%dynamic_smem_size"] == 16).all()
    assert (values["%total_smem_size"] == 64).all()
    # A kernel that asks for the system's part has it, 1 KB behind its own.
    assert (values["%aggr_smem_size"] == 64 + 1024).all()
    assert (values["%reserved_smem_offset_begin"] == 128).all()
    assert (values["%reserved_smem_offset_end"] == 128 + 1024).all()
    assert (values["%reserved_smem_offset_cap"] == 1024).all()


def test_a_block_is_a_cluster_of_its_own(values: dict[str, np.ndarray]) -> None:
    assert (values["%is_explicit_cluster"] == 0).all()
    assert (values["%cluster_ctarank"] == 0).all()
    assert (values["%cluster_nctarank"] == 1).all()
    for part in "xyz":
        assert (values[f"%clusterid.{part}"] == values[f"%ctaid.{part}"]).all()
        assert (values[f"%nclusterid.{part}"] == values[f"%nctaid.{part}"]).all()
        assert (values[f"%cluster_nctaid.{part}"] == 1).all()


def test_blocks_are_dealt_out_to_the_multiprocessors(values: dict[str, np.ndarray]) -> None:
    assert (values["%nsmid"] == SMS).all()
    assert (values["%smid"] == [[0], [1], [2], [3], [0], [1]]).all()
