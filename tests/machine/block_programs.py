"""Draws kernels whose thread blocks write to two arrays: at addresses of their own, at the same
addresses, or by atomics; and runs them with several workers, or block by block in another order."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from agreement import counts
from hypothesis import strategies as st

from warploom.abi.environment import Slot, Status
from warploom.analysis.linear.footprints import block_conflicts
from warploom.analysis.linear.register_values import LaunchInputs
from warploom.core.errors import MemoryFault
from warploom.machine.caches import NO_CACHES
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.compiled.launch_template import LaunchTemplate
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.tally import Tally
from warploom.program.build import build
from warploom.program.program import Program
from warploom.ptx.parser import parse

WORDS = 2_048
"""The length of each array in 32-bit words; all indices of drawn kernels are below it."""

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n, .param .u32 w)
{{
  .shared .b32 tile[256];
  .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .f32 %f<4>; .reg .pred %p<4>;
  ld.param.u64 %d0, [x];
  ld.param.u64 %d1, [y];
  ld.param.u32 %r0, [n];
  ld.param.u32 %r1, [w];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mov.u32 %r14, %nctaid.x;
  mul.lo.u32 %r14, %r14, %r3;
  mad.lo.u32 %r5, %r2, %r3, %r4;
{body}
  ret;
}}
"""
"""%r5 is the number of the thread in the grid, %r14 that of all threads."""

INDICES = (
    "mov.u32 %r6, %r5;",
    "mad.lo.u32 %r6, %r4, 2, %r2;",
    "shl.b32 %r6, %r5, 1; add.u32 %r6, %r6, {small};",
    "add.u32 %r6, %r5, {small};",
    "shr.u32 %r6, %r5, {shift};",
    "div.u32 %r6, %r5, {divisor};",
    "rem.u32 %r6, %r5, {divisor};",
    "and.b32 %r6, %r5, {mask};",
    "shr.u32 %r6, %r4, 3; and.b32 %r7, %r4, 7; mad.lo.u32 %r7, %r2, 8, %r7;"
    " mad.lo.u32 %r6, %r6, %r1, %r7; min.u32 %r6, %r6, 2047;",
    "sub.u32 %r6, 2047, %r5;",
    "mul.wide.u32 %d6, %r5, 4; add.s64 %d6, %d0, %d6; ld.global.u32 %r6, [%d6];"
    " and.b32 %r6, %r6, 63;",
    "mov.u32 %r6, {small};",
    "mov.u32 %r6, %r2;",
)
"""How a thread's index, in %r6, is computed."""

ACCESSES = (
    "ld.global.u32 %r8, {at}; add.u32 %r8, %r8, %r5; st.global.u32 {at}, %r8;",
    "st.global.u32 {at}, %r5;",
    "st.global.u32 {at}, 7;",
    "ld.global.u32 %r9, {at}; mul.wide.u32 %d5, %r5, 4; add.s64 %d5, %d1, %d5;"
    " st.global.u32 [%d5], %r9;",
    "red.global.{commuting} {at}, %r5;",
    "red.global.{commuting} {at}, %r4;",
    "atom.global.{commuting} %r10, {at}, %r5;",
    "atom.global.add.u32 %r10, {at}, 1; st.shared.u32 [tile], %r10;",
    "cvt.rn.f32.u32 %f0, %r5; mul.f32 %f0, %f0, 0f3F8CCCCD; red.global.add.f32 {at}, %f0;",
    "atom.global.exch.b32 %r12, {at}, %r5;",
    "red.global.inc.u32 {at}, %r5;",
)
COMMUTING = ("add.u32", "add.s32", "min.u32", "max.s32", "min.s32", "max.u32", "and.b32",
             "or.b32", "xor.b32")  # fmt: skip

LOOP = """
  mov.u32 %r11, 0;
again{label}:
  {inside}
  add.u32 %r5, %r5, %r14;
  add.u32 %r11, %r11, 1;
  setp.lt.u32 %p2, %r5, %r0;
  @%p2 bra again{label};
  mad.lo.u32 %r5, %r2, %r3, %r4;
"""
"""A grid-stride loop."""


@st.composite
def block_kernels(draw: st.DrawFn) -> str:
    """Draws a kernel of one to three accesses, each guarded or not, some in grid-stride loops."""
    lines = "\n".join(_statement(draw, number) for number in range(draw(st.integers(1, 3))))
    return KERNEL.format(body=lines)


def _statement(draw: st.DrawFn, number: int) -> str:
    """Draws the access with this number in its kernel."""
    index = draw(st.sampled_from(INDICES)).format(
        small=draw(st.integers(0, 40)),
        shift=draw(st.integers(1, 6)),
        divisor=draw(st.sampled_from((3, 8, 32, 48, 64))),
        mask=draw(st.sampled_from((7, 31, 63, 0x70))),
    )
    array = draw(st.sampled_from(("%d0", "%d1")))
    access = draw(st.sampled_from(ACCESSES)).format(
        at=f"[%d4+{draw(st.sampled_from((0, 0, 0, 4)))}]",
        commuting=draw(st.sampled_from(COMMUTING)),
    )
    address = f"min.u32 %r6, %r6, 2046; mul.wide.u32 %d4, %r6, 4; add.s64 %d4, {array}, %d4;"
    guard, end = "", ""
    if draw(st.booleans()):
        limit, of = draw(st.sampled_from((("%r0", "%r5"), ("%r1", "%r6"), ("7", "%r4"))))
        guard = f"setp.ge.u32 %p1, {of}, {limit}; @%p1 bra after{number};"
        end = f"after{number}:"
    if draw(st.booleans()):
        address = address.replace("min.u32 %r6, %r6, 2046; ", "")
    inside = f"{index} {guard} {address} {access}"
    if draw(st.integers(0, 3)) == 0:
        return LOOP.format(label=number, inside=inside.replace(f"after{number}", f"on{number}")
                           + (f"\non{number}:" if end else ""))  # fmt: skip
    barrier = "bar.sync 0;" if draw(st.booleans()) else ""
    return f"  {inside}\n{end}\n  {barrier}"


@dataclass(frozen=True)
class BlockLaunch:
    """A launch of a drawn kernel: blocks, threads of a block, and its two bounds; whether both
    pointers lead to one array."""

    blocks: int
    threads: int
    n: int
    w: int
    is_aliased: bool


def block_launches() -> st.SearchStrategy[BlockLaunch]:
    """Draws launches of at most 512 threads."""
    return st.builds(
        BlockLaunch,
        blocks=st.integers(2, 8),
        threads=st.sampled_from((16, 32, 48, 64)),
        n=st.sampled_from((100, 128, 200, 512, 1_000)),
        w=st.sampled_from((16, 40, 64, 100)),
        is_aliased=st.booleans(),
    )


@dataclass(frozen=True)
class Prepared:
    """A program, a launch, and the memory with its arrays as they are before."""

    program: Program
    launch: Launch
    memory: DeviceMemory
    arrays: Sequence[int]

    @classmethod
    def of(cls, text: str, given: BlockLaunch) -> Prepared:
        memory, rng = DeviceMemory(1 << 24), np.random.default_rng(3)
        arrays = [memory.allocate(4 * WORDS, name).address for name in ("x", "y")]
        for array in arrays:
            memory.write(array, rng.integers(0, 1 << 32, WORDS, np.uint32).tobytes())
        pointers = arrays[0], arrays[0 if given.is_aliased else 1]
        parameters = struct.pack("<QQII", *pointers, given.n, given.w)
        launch = Launch((given.blocks, 1, 1), (given.threads, 1, 1), parameters, ())
        return cls(build(parse(text), "k"), launch, memory, arrays)

    def contents(self) -> list[bytes]:
        """Returns the bytes of both arrays."""
        return [self.memory.read(array, 4 * WORDS) for array in self.arrays]

    def reason(self) -> str:
        """Returns why its blocks may not run in any order."""

        def allocation_of(address: int) -> range | None:
            found = self.memory.find(address)
            return range(found.address, found.address + found.size) if found else None

        launch = self.launch
        conflicts = block_conflicts(
            self.program,
            LaunchInputs(launch.grid, launch.block, launch.parameters, (), allocation_of),
        )
        return conflicts.reason or "some updates have an order" * bool(conflicts.late_updates)


def with_workers(text: str, given: BlockLaunch, workers: int) -> tuple[object, int, str]:
    """Returns what a launch leaves with so many workers (memory and counts, or its fault), how many
    ran it, 0 after a fault, and why that was one."""
    prepared = Prepared.of(text, given)
    engine = CompiledEngine(workers=workers)
    try:
        tally: Tally = engine.launch(prepared.program, prepared.launch, prepared.memory)
    except MemoryFault as fault:
        at = fault.address - prepared.arrays[0]  # memory is elsewhere each time
        return (fault.kind, at, fault.block, fault.thread, fault.line), 0, ""
    return (prepared.contents(), counts(tally)), tally.workers, tally.serial_reason


def in_order(text: str, given: BlockLaunch, order: Sequence[int]) -> list[bytes] | None:
    """Returns the memory after the blocks of a launch ran one by one, in an order, as parts of
    several workers do; None after a fault."""
    prepared = Prepared.of(text, given)
    program, launch, memory = prepared.program, prepared.launch, prepared.memory
    template = LaunchTemplate.of(CompiledEngine().kernel(program, launch), launch)
    for block in order:
        part = range(block, block + 1)
        work = WorkerLaunch.prepare(template, launch, memory, NO_CACHES, part)
        work.environment[Slot.IS_SHARED] = 1
        if work.run() != Status.ENDED:
            return None
    return prepared.contents()
