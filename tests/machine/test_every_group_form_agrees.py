"""Checks every form of warp-group instructions on both machines, in random order and under every
policy: results are equal bit by bit, whatever waits and writes are in between."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from parts import some_now

import warploom as wl
from warploom.isa.spec import FORMS, OpSpec, decode

SPECS = FORMS["wgmma"]
POLICIES = ("converge", "fair", "random", "adversarial")
THREADS = 128
REGISTERS = 24
"""Registers of D; products use runs of them that overlap."""

WORDS = 12 * 1024
PROGRAMS = 16
"""Four for each policy: each of them has a quarter of the forms."""


def opcode_of(spec: OpSpec, rng: random.Random) -> str:
    """Returns an opcode of a form, with a shape that fits in the registers."""
    parts = [spec.name]
    for slot in spec.slots:
        some = slot.choices
        if slot.name == "shape":
            some = tuple(c for c in some if int(c[4:].partition("k")[0]) <= 2 * REGISTERS)
        if not slot.optional or rng.random() < 0.5:
            parts.append(rng.choice(some))
    return ".".join(parts)


PRODUCTS = [spec for spec in SPECS if "shape" in spec.syntax]


def products_of(number: int) -> list[str]:
    """Returns the opcodes of a program: a quarter of the forms."""
    rng = random.Random(number)
    return [opcode_of(spec, rng) for spec in PRODUCTS[number % 4 :: 4]]


def program(products: Sequence[str], seed: int) -> str:
    """Returns a random program of warp-group products."""
    rng = random.Random(seed)
    lines: list[str] = []
    for opcode in products:
        lines += [product(opcode, rng)] + [between(rng) for _ in range(rng.randrange(3))]
    lines += ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
    stores = [f"st.global.b32 [%out+{4 * i}], %d{i};" for i in range(REGISTERS)]
    return f"""
.version 8.6\n.target sm_90a\n.address_size 64
.visible .entry k(.param .u64 data, .param .u64 results)
{{
    .reg .b64 %in, %out, %at, %x, %y; .reg .b32 %t, %i, %n, %w, %m; .reg .pred %p, %q;
    .reg .b32 %a<8>, %d<{REGISTERS}>;
    .shared .align 1024 .b8 tile[{4 * WORDS}];
    ld.param.u64 %in, [data]; ld.param.u64 %out, [results];
    mov.u32 %t, %tid.x; mov.u32 %i, %t; mov.u32 %m, tile;
copy:
    mul.wide.u32 %at, %i, 16; add.u64 %at, %at, %in;
    ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%at];
    mad.lo.u32 %n, %i, 16, %m; st.shared.v4.b32 [%n], {{%a0, %a1, %a2, %a3}};
    add.u32 %i, %i, {THREADS}; setp.lt.u32 %p, %i, {WORDS // 4}; @%p bra copy;
    bar.sync 0;
    mul.wide.u32 %at, %t, 32; add.u64 %at, %at, %in;
    ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%at];
    ld.global.v4.b32 {{%a4, %a5, %a6, %a7}}, [%at+16];
    setp.lt.s32 %q, %a0, 0;
    {"".join(f"xor.b32 %d{i}, %a{i % 8}, {i * 0x01010101};" for i in range(REGISTERS))}
    mul.wide.u32 %at, %t, {4 * REGISTERS}; add.u64 %out, %out, %at;
    {chr(10).join(lines)}
    {chr(10).join(stores)}
    ret;
}}
"""


def product(opcode: str, rng: random.Random) -> str:
    """Returns a product with random operands, whose descriptors address shared memory."""
    operation = decode(opcode)
    spec, names = operation.spec, [form.name for form in operation.spec.shown]
    count = operation.count_of(spec.operands[0])
    first = rng.randrange(REGISTERS - count + 1)
    d = ", ".join(f"%d{first + i}" for i in range(count))
    shared = rng.random() < 0.5
    a = "%x" if shared else "{" + ", ".join(f"%a{(first + i) % 8}" for i in range(4)) + "}"
    given = {"a": a, "b": "%y", "meta": "%a1", "scale_d": rng.choice(["1", "0", "%q", "!%q"])}
    selectors = 2 if opcode.endswith(("f16.f16", "bf16.bf16", "tf32.tf32")) else 1
    given["sel"] = str(rng.randrange(selectors))
    given |= {name: rng.choice(["1", "-1"]) for name in ("scale_a", "scale_b")}
    given |= {name: rng.choice("01") for name in ("transpose_a", "transpose_b")}
    if not shared and "transpose_b" in names:
        names.remove("transpose_a")
    operands = ", ".join(given[name] for name in names[1:])
    moves = f"mov.b64 %x, {descriptor(rng)}; mov.b64 %y, {descriptor(rng)};"
    return f"{moves} wgmma.fence.sync.aligned;\n{opcode} {{{d}}}, {operands};"


def descriptor(rng: random.Random) -> int:
    """Returns a descriptor with random fields for a matrix in the first 48 KiB."""
    start, leading, stride = (rng.randrange(limit) for limit in (512, 64, 32))
    base, mode = rng.randrange(8), rng.randrange(4)
    return start | leading << 16 | stride << 32 | base << 49 | mode << 62


def between(rng: random.Random) -> str:
    """Returns instructions between products."""
    a, b, d = rng.randrange(8), rng.randrange(8), rng.randrange(REGISTERS)
    return rng.choice(
        [
            "wgmma.commit_group.sync.aligned;",
            f"wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned {rng.randrange(3)};",
            f"wgmma.wait_group.sync.aligned {rng.randrange(2)};",
            f"xor.b32 %a{a}, %a{a}, %a{b};",
            f"mov.b32 %d{d}, %a{a};",
            f"bar.sync 0; mad.lo.u32 %n, %t, 4, %m; st.shared.b32 [%n+{4096 * a}], %a{b};"
            " bar.sync 0;",
            f"setp.lt.s32 %q, %a{a}, %a{b};",
        ]
    )


def agree(products: Sequence[str], seed: int, policy: str) -> None:
    """Asserts that a program of these products has the same results and counters on both
    machines."""
    text = program(products, seed)
    data = np.random.default_rng(seed).integers(0, 1 << 32, WORDS, np.uint32)
    runs: list[wl.Run] = []
    found: list[np.ndarray] = []
    for engine in ("reference", "compiled"):
        results = np.zeros((THREADS, REGISTERS), np.uint32)
        gpu = wl.Device("h100", engine=engine, schedule=policy, seed=seed)
        runs.append(gpu.compile(text, "ptx")["k"][1, THREADS](data, results))
        found.append(results)
    assert np.array_equal(found[0], found[1])
    assert runs[0].counters == runs[1].counters


@pytest.mark.parametrize("number", some_now(range(PROGRAMS), 5))
def test_both_machines_do_the_same(number: int) -> None:
    agree(products_of(number), number, POLICIES[number // 4 % 4])


def test_every_form_occurs() -> None:
    used = {decode(opcode).spec for number in range(PROGRAMS) for opcode in products_of(number)}
    assert used == {*PRODUCTS}
