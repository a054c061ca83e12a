"""Every form of the instruction tables that computes, on both machines: the same bits.

Every choice of every modifier occurs. Compiling is what takes time here, so that many instructions
share a kernel: each reads registers as memory gives them, and what it writes goes back at once.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field

import numpy as np
import pytest
from random_programs import COMPUTING, statement

from warploom.analysis.build import build
from warploom.isa.spec import OperandSpec, Operation, OpSpec, decode
from warploom.machine.compiled import CompiledEngine
from warploom.machine.image import Image
from warploom.machine.launch import Launch
from warploom.machine.memory import DeviceMemory
from warploom.machine.reference.machine import ReferenceEngine
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

KERNELS = 12
MOST_PARTS = 3
"""Of the many parts that a video operand can be, so many are drawn."""

THREADS = 64
INPUTS = {16: 4, 32: 5, 64: 4}
NAMES = {1: "%p", 16: "%h", 32: "%r", 64: "%d"}
EDGES = {
    16: [0, 1, 0x03FF, 0x3C00, 0x3F80, 0x7BFF, 0x7C00, 0x7E01, 0x7F80, 0x7FFF, 0x8000, 0xFC00],
    32: [0, 1, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00001, 0x80000000, 0x807FFFFF, 0x477FF000],
    64: [0, 1, 0x3FF << 52, 0x7FF << 52, 0x7FF8 << 48 | 1, 1 << 63, (1 << 64) - 1, 0x40F << 52],
}  # fmt: skip


def opcodes(spec: OpSpec, rng: random.Random) -> list[str]:
    """Opcodes of a form in which every choice of every modifier occurs."""
    columns: list[list[str]] = []
    for slot in spec.slots:
        choices = list(slot.choices)
        if "=" in choices[0]:
            choices = rng.sample(choices, min(MOST_PARTS, len(choices)))
        columns.append([*choices, *([""] if slot.optional else [])])
        rng.shuffle(columns[-1])
    rows = max(map(len, columns), default=1)
    picks = ([column[row % len(column)] for column in columns] for row in range(rows))
    return [".".join([spec.name, *filter(None, pick)]) for pick in picks]


@dataclass
class Kernel:
    """A kernel under way: its lines, and how many bytes of results a thread has so far."""

    rng: random.Random
    lines: list[str] = field(default_factory=list[str])
    size: int = 0

    def add(self, operation: Operation) -> None:
        """One instruction, with all operands that it can have, and its results stored."""
        forms = [form for form in operation.spec.operands if not form.implicit]
        carries = operation.spec.has_implicit
        if carries:  # what the flag was before
            self.lines.append("add.cc.u32 %t, %r0, %r1")
        shown = [self.operand(operation, form) for form in forms]
        elements = operation.spec.destinations[0].count
        two = len(operation.terms) == 2 and not carries and elements == 1
        if two:
            shown[0] += "|%q"
        self.lines.append(statement(operation, shown))
        self.store(operation.terms[0].type.bits)
        for number in range(1, elements):
            bits = operation.terms[number].type.bits
            self.put(f"b{bits}", f"%o{bits}_{number}")
        if two:
            self.lines.append("selp.b32 %t, 1, 0, %q")
        if carries:
            self.lines.append("addc.u32 %t, 0, 0")
        if two or carries:
            self.put("b32", "%t")

    def operand(self, operation: Operation, form: OperandSpec) -> str:
        type = operation.type_of(form)
        assert type is not None
        bits = max(16, type.bits) if type.bits > 1 else 1
        if form.written:
            some = [f"%o{bits}", *(f"%o{bits}_{number}" for number in range(1, form.count))]
        else:
            some = [self.register(bits) for _ in range(form.count)]
        return some[0] if form.count == 1 else "{" + ", ".join(some) + "}"

    def register(self, bits: int) -> str:
        return f"{NAMES[bits]}{self.rng.randrange(INPUTS.get(bits, 4))}"

    def store(self, bits: int) -> None:
        if bits == 1:
            self.lines.append("selp.b16 %o16, 1, 0, %o1")
        self.put(f"b{max(16, bits)}", f"%o{max(16, bits)}")

    def put(self, type: str, register: str) -> None:
        self.lines.append(f"st.global.{type} [%out+{self.size}], {register}")
        self.size += 8

    def text(self) -> str:
        """The module: every thread has 128 bytes of inputs, and then its results."""
        loads: list[str] = []
        at = 0
        for bits, count in INPUTS.items():
            for number in range(count):
                loads.append(f"ld.global.b{bits} {NAMES[bits]}{number}, [%in+{at}]")
                at += 8
        tests = [f"setp.lt.s16 %p{i}, %h{i}, 0" for i in range(4)]
        body = "".join(f"\t{line};\n" for line in (*loads, *tests, *self.lines))
        return f"""
.version 9.2
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 inputs, .param .u64 results)
{{
\t.reg .pred %p<4>, %q, %o1;
\t.reg .b16 %h<4>, %o16, %o16_<4>;
\t.reg .b32 %r<5>, %t, %o32, %o32_<4>;
\t.reg .b64 %d<4>, %in, %out, %o64, %o64_<4>;
\tld.param.u64 %in, [inputs];
\tld.param.u64 %out, [results];
\tmov.u32 %t, %tid.x;
\tmad.wide.u32 %in, %t, 128, %in;
\tmad.wide.u32 %out, %t, {self.size}, %out;
{body}\tret;
}}
"""


def inputs(seed: int) -> bytes:
    """The registers of every thread: random bits, small numbers and edges."""
    rng = np.random.default_rng(seed)
    columns: list[np.ndarray] = []
    for bits, count in INPUTS.items():
        for _ in range(count):
            any_bits = rng.integers(0, 1 << bits, THREADS, np.uint64, endpoint=False)
            edges = rng.choice(np.array(EDGES[bits], np.uint64), THREADS)
            small = rng.integers(0, 64, THREADS, np.uint64)
            kind = rng.random(THREADS)
            columns.append(np.where(kind < 0.4, any_bits, np.where(kind < 0.75, edges, small)))
    columns += [np.zeros(THREADS, np.uint64)] * (16 - len(columns))
    return np.stack(columns, axis=1).tobytes()


def results(kernel: Kernel, seed: int, engine: ReferenceEngine | CompiledEngine) -> np.ndarray:
    """What each thread (row) stored for each result (column)."""
    module = parse(kernel.text())
    verify(module)
    program = build(module, "k")
    memory = DeviceMemory(1 << 30)
    image = Image(module, memory)
    given = inputs(seed)
    source = memory.allocate(len(given))
    memory.write(source.address, given)
    target = memory.allocate(THREADS * kernel.size)
    parameters = struct.pack("<QQ", source.address, target.address)
    launch = Launch((1, 1, 1), (THREADS, 1, 1), parameters, image.addresses(program.globals))
    engine.launch(program, launch, memory)
    found = np.frombuffer(memory.read(target.address, THREADS * kernel.size), np.uint64)
    memory.close()
    return found.reshape(THREADS, -1)


@pytest.mark.parametrize("part", range(KERNELS))
def test_both_machines_compute_the_same(part: int) -> None:
    rng = random.Random(part)
    kernel = Kernel(rng)
    for spec in COMPUTING[part::KERNELS]:
        for opcode in opcodes(spec, rng):
            kernel.add(decode(opcode))
    expected = results(kernel, part, ReferenceEngine())
    got = results(kernel, part, CompiledEngine())
    wrong = set(np.flatnonzero((got != expected).any(axis=0)).tolist())
    stores = [line for line in kernel.lines if line.startswith("st.")]
    lines = [kernel.lines[kernel.lines.index(stores[at]) - 1] for at in wrong]
    assert not lines, lines
