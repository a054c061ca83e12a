"""Checks that both machines count memory accesses alike by the rules of every device family.

One kernel makes every kind of access; the addresses and the active lanes are data, so that each
family needs one compilation.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.cost.device_rules import MemoryOptions
from warploom.cost.fields import FIELDS, CostRecord
from warploom.cost.pattern_table import SAMPLE_PERIOD, TRIAL_PATTERNS
from warploom.devices.catalog import find_device
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.machine.reference.machine import ReferenceEngine
from warploom.program.build import build
from warploom.program.program import Program
from warploom.ptx.module import Module
from warploom.ptx.parser import parse

SPAN = 1 << 12
EXAMPLE = ("example cost", "example mask", *(f"example {lane}" for lane in range(32)))
WIDTHS = {"u8": 1, "u16": 2, "u32": 4, "v2.u32": 8, "v4.u32": 16}
SPACES = {
    "global": ("%buffer", "ld st"),
    "shared": ("%tile", "ld st"),
    "local": ("%own", "ld st"),
    "const": ("%table", "ld"),
}
FAMILIES = {
    "1.0": (MemoryOptions(),),
    "1.3": (MemoryOptions(),),
    "2.0": (MemoryOptions(caches=True), MemoryOptions(l1_global=False)),
    "3.5": (MemoryOptions(), MemoryOptions(l1_global=True, bank_bytes=8)),
    "9.0": (MemoryOptions(), MemoryOptions(caches=True)),
}
MODELS = [(cc, options) for cc, several in FAMILIES.items() for options in several]


def oldest_and_newest_now() -> list[Any]:
    """Returns the first model of the oldest and of the newest family, and for the nightly job the
    others."""
    ccs = [cc for cc, _ in MODELS]
    now = (0, ccs.index(ccs[-1]))
    return [
        pytest.param(n, marks=[] if n in now else [pytest.mark.nightly]) for n in range(len(ccs))
    ]


def accesses() -> str:
    """Returns accesses of every width in every space, each naturally aligned; then a load past L1
    and atomics."""
    lines: list[str] = []
    for space, (base, ops) in SPACES.items():
        for width, size in WIDTHS.items():
            registers = {"v2": "{%r1,%r2}", "v4": "{%r1,%r2,%r3,%r4}"}.get(width[:2], "%r1")
            lines.append(f"and.b64 %at, %offset, {SPAN - size};\nadd.u64 %at, %at, {base};")
            if "ld" in ops:
                lines.append(f"ld.{space}.{width} {registers}, [%at];")
            if "st" in ops:
                lines.append(f"st.{space}.{width} [%at], {registers};")
    lines += [
        f"and.b64 %at, %offset, {SPAN - 4};\nadd.u64 %near, %at, %buffer;",
        "ld.global.cg.u32 %r1, [%near];\natom.global.add.u32 %r2, [%near], 1;",
        "add.u64 %near, %at, %tile;\nred.shared.add.u32 [%near], 1;",
        "ld.volatile.shared.u32 %r1, [%near];",
    ]
    return "\n".join(lines)


TEXT = f"""
.version 8.0
.target sm_60
.address_size 64
.const .align 128 .b8 constants[{SPAN}];
.visible .entry k(.param .u64 buffer, .param .u64 offsets)
{{
    .reg .pred %p; .reg .b32 %r<5>, %lane, %offset32, %block;
    .reg .b64 %buffer, %tile, %own, %table, %at, %near, %offset;
    .shared .align 128 .b8 tile[{SPAN}];
    .local .align 128 .b8 own[{SPAN}];
    ld.param.u64 %buffer, [buffer];
    ld.param.u64 %at, [offsets];
    mov.u64 %tile, tile;
    mov.u64 %own, own;
    mov.u64 %table, constants;
    mov.u32 %lane, %tid.x;
    mov.u32 %block, %ctaid.x;
    mad.lo.u32 %lane, %block, 32, %lane;
    mul.wide.u32 %offset, %lane, 4;
    add.u64 %at, %at, %offset;
    ld.global.u32 %offset32, [%at];
    cvt.u64.u32 %offset, %offset32;
    setp.ge.u32 %p, %offset32, {SPAN};
    @%p bra DONE;
    {accesses()}
DONE:
    ret;
}}
"""


@cache
def prepared() -> tuple[Module, Program]:
    module = parse(TEXT)
    return module, build(module, "k")


@cache
def engines(model: int) -> tuple[ReferenceEngine, CompiledEngine]:
    cc, options = MODELS[model]
    spec = find_device(cc=cc)
    return ReferenceEngine(spec, options), CompiledEngine(spec, options)


def records(engine: ReferenceEngine | CompiledEngine, *warps: list[int]) -> dict[str, int]:
    """Returns the engine's counts by instruction, space and column; example addresses are relative
    to the buffers that contain them. Each block is a warp with offsets of its own."""
    module, program = prepared()
    memory = DeviceMemory(1 << 24)
    try:
        image = ModuleGlobals(module, memory)
        buffer = memory.allocate(SPAN, "buffer")
        table = memory.allocate(128 * len(warps), "offsets")
        memory.write(table.address, np.array(warps, np.uint32).tobytes())
        parameters = struct.pack("<QQ", buffer.address, table.address)
        launch = Launch(
            (len(warps), 1, 1), (32, 1, 1), parameters, image.addresses(program.globals)
        )
        tally = engine.launch(program, launch, memory)
        bases = [buffer.address, *image.addresses(("constants",))]
    finally:
        memory.close()
    seen = tally.records[:, CostRecord.example_addresses :]
    for base in bases:
        inside = (seen >= base) & (seen < base + SPAN)
        seen[inside] -= base
    return {
        f"{program.instructions[row.instruction].operation.text} in {row.space.value}: {name}": n
        for row, record in zip(tally.access_records, tally.records.tolist(), strict=True)
        for name, n in zip((*FIELDS, *EXAMPLE), record, strict=True)
        if n
    }


@st.composite
def patterns(draw: st.DrawFn) -> list[int]:
    """Draws an offset for each lane: strided, random, or equal in groups; SPAN for inactive
    lanes."""
    kind = draw(st.sampled_from(["strided", "random", "groups"]))
    start = draw(st.sampled_from([0, 4, 16, 32, 64, 100, 128, 256]))
    stride = draw(st.sampled_from([0, 1, 2, 4, 8, 12, 16, 32, 64, 68, 128]))
    if kind == "random":
        made = draw(st.lists(st.integers(0, SPAN - 1), min_size=32, max_size=32))
    else:
        group = draw(st.sampled_from([2, 8, 16])) if kind == "groups" else 1
        made = [(start + stride * (lane // group)) % SPAN for lane in range(32)]
    mask = draw(st.one_of(st.just(0xFFFFFFFF), st.integers(1, 0xFFFFFFFF)))
    return [offset if mask >> lane & 1 else SPAN for lane, offset in enumerate(made)]


@pytest.mark.parametrize("model", range(len(MODELS)))
@settings(max_examples=12)
@given(offsets=patterns())
def test_both_machines_count_alike(model: int, offsets: list[int]) -> None:
    reference, compiled = engines(model)
    assert records(compiled, offsets) == records(reference, offsets)


@pytest.mark.parametrize("model", range(len(MODELS)))
@pytest.mark.parametrize("start", [0, 4, 32, 128])
def test_common_accesses_count_alike(model: int, start: int) -> None:
    """Accesses consecutive words, which compiled code only counts, from a line, a sector and a word
    on."""
    reference, compiled = engines(model)
    for stride in (0, 1, 2, 4, 8, 16):
        offsets = [start + stride * lane for lane in range(32)]
        assert records(compiled, offsets) == records(reference, offsets)


@pytest.mark.parametrize("model", oldest_and_newest_now())
def test_patterns_that_come_again_after_many_that_do_not(model: int) -> None:
    """Checks that the pattern table finds repeated patterns after TRIAL_PATTERNS that did not
    repeat, when it inserts one in `SAMPLE_PERIOD`."""
    reference, compiled = engines(model)
    drawn = np.random.default_rng(0).integers(0, SPAN, (TRIAL_PATTERNS + 4, 32)).tolist()
    again = [[64 * lane % SPAN for lane in range(32)], [8 * lane for lane in range(32)]]
    warps = [*drawn, *again * 20, *drawn, *drawn[:1] * (SAMPLE_PERIOD - TRIAL_PATTERNS)]
    assert records(compiled, *warps) == records(reference, *warps)
