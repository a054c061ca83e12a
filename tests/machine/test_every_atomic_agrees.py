"""Every form of `atom` and `red` with every type on both machines: each lane at an address of its
own, then all lanes at two; over edge values."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from test_every_form_agrees import EDGES

import warploom.isa.ops  # noqa: F401  (fills FORMS)
from warploom.analysis.build import build
from warploom.isa.spec import FORMS, OpSpec, decode
from warploom.machine.compiled import CompiledEngine
from warploom.machine.launch import Launch
from warploom.machine.memory import DeviceMemory
from warploom.machine.reference.machine import ReferenceEngine
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

SPECS = [
    spec
    for name in ("atom", "red")
    for spec in FORMS[name]
    if "async" not in spec.syntax and all(slot.choices != ("b128",) for slot in spec.slots)
]
BYTES = 64
"""Of each thread: what it changes alone, its operands, and what it gets."""


def kernel(spec: OpSpec, chosen: str, *, alone: bool) -> str:
    """A kernel of one atomic, of each lane at a place of its own or of all at two."""
    operation = decode(chosen)
    scalar = operation.modifiers.scalar()
    count = {"v2": 2, "v4": 4, "v8": 8}.get(operation.modifiers.text("vec", ""), 1)
    bits = max(16, scalar.bits)
    names = [[f"%{kind}{i}" for i in range(count)] for kind in "dbc"]
    shown = ["{" + ", ".join(name) + "}" if count > 1 else name[0] for name in names]
    values = [o for o in spec.sources if o.type != "address" and o.name != "policy"]
    given = ", ".join(shown[1 : 1 + len(values)])
    shared = operation.modifiers.text("space", "").startswith("shared")
    target = "cell" if shared else "%mine" if alone else "%both"
    got = f"{shown[0]}, " if spec.destinations else ""
    loads = "".join(
        f"ld.global.b{bits} {name}, [%mine+{16 * kind + i * bits // 8}];\n"
        for kind, row in enumerate(names[1:], 1)
        for i, name in enumerate(row)
    )
    stores = "".join(
        f"st.global.b{bits} [%mine+{48 + i * bits // 8}], {n};\n" for i, n in enumerate(names[0])
    )
    declared = "".join(f".reg .b{bits} {', '.join(row)};\n" for row in names)
    begin = f"mov.b{bits} {{}}, 0;\n"
    after = "ld.shared.b64 %t, [cell]; st.global.b64 [%mine], %t;" if shared else ""
    return f"""
.version 9.2
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 buffer)
{{
.shared .align 16 .b8 cell[16];
.reg .b64 %mine, %both, %t; .reg .b32 %i;
{declared}{"".join(begin.format(name) for name in names[0])}
ld.param.u64 %both, [buffer];
mov.u32 %i, %tid.x;
mad.wide.u32 %mine, %i, {BYTES}, %both;
and.b32 %i, %i, 1;
mad.wide.u32 %both, %i, {BYTES}, %both;
ld.global.b64 %t, [%mine];
st.shared.b64 [cell], %t;
bar.sync 0;
{loads}{chosen} {got}[{target}], {given};
{stores}bar.sync 0;
{after}
ret;
}}
"""


def left(text: str, seed: int, engine: ReferenceEngine | CompiledEngine) -> list[int]:
    module = parse(text)
    verify(module)
    memory = DeviceMemory(1 << 30)
    buffer = memory.allocate(32 * BYTES)
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 1 << 32, 8 * BYTES, np.uint32)
    edges = rng.choice(np.array(EDGES[32], np.uint32), len(words))
    small = rng.integers(0, 9, len(words), np.uint32)
    kind = rng.random(len(words))
    chosen = np.where(kind < 0.4, words, np.where(kind < 0.75, edges, small))
    memory.write(buffer.address, chosen.astype(np.uint32).tobytes())
    launch = Launch((1, 1, 1), (32, 1, 1), struct.pack("<Q", buffer.address))
    engine.launch(build(module, "k"), launch, memory)
    found = np.frombuffer(memory.read(buffer.address, 32 * BYTES), np.uint32).tolist()
    memory.close()
    return found


def combinations(spec: OpSpec, rng: random.Random) -> list[str]:
    """Every type of a form, with choices of the other modifiers drawn for each."""
    made: list[str] = []
    for type in spec.slots[-1].choices:
        parts = [
            rng.choice([*slot.choices, *([""] if slot.optional else [])])
            for slot in spec.slots[:-1]
            if slot.name != "L2::cache_hint"
        ]
        made.append(".".join([spec.name, *filter(None, parts), type]))
    return made


@pytest.mark.parametrize("number", range(len(SPECS)))
def test_both_machines_leave_the_same(number: int) -> None:
    rng = random.Random(number)
    for seed, chosen in enumerate(combinations(SPECS[number], rng)):
        for alone in (True, False):
            text = kernel(SPECS[number], chosen, alone=alone)
            expected = left(text, seed, ReferenceEngine())
            assert left(text, seed, CompiledEngine()) == expected, (chosen, alone)
