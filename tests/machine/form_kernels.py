"""Builds kernels that execute all forms of the instruction tables one after the other, and compares
both machines.

Compiling dominates the time, so many instructions share a kernel: each reads registers with values
from memory, or its thread's own memory, and its results are stored to the output.
`assert_agreement` checks the machines' counts: a form that no lane executed is an error.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from random_programs import statement

from warploom.isa.spec import OperandSpec, Operation, OpSpec, Slot, UnknownOpcode, decode
from warploom.isa.versions import newest
from warploom.llvm.opt_level import BASELINE, VARIABLE
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.machine.reference.machine import ReferenceEngine
from warploom.program.build import build
from warploom.program.program import PARAMETERS
from warploom.ptx.parser import parse
from warploom.ptx.release import target_of
from warploom.ptx.verify import verify

THREADS = 64
INPUTS = {16: 4, 32: 5, 64: 4}
"""How many registers of each width a thread gets from memory."""

PLACE = 256
"""Bytes of a thread in the inputs: its registers, and from OWN on memory of its own."""

OWN = 128
NAMES = {1: "%p", 16: "%h", 32: "%r", 64: "%d"}
EDGES = {
    16: [0, 1, 0x03FF, 0x3C00, 0x3F80, 0x7BFF, 0x7C00, 0x7E01, 0x7F80, 0x7FFF, 0x8000, 0xFC00],
    32: [0, 1, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00001, 0x80000000, 0x807FFFFF, 0x477FF000],
    64: [0, 1, 0x3FF << 52, 0x7FF << 52, 0x7FF8 << 48 | 1, 1 << 63, (1 << 64) - 1, 0x40F << 52],
}  # fmt: skip
VECTORS = {"v2": 2, "v4": 4, "v8": 8}


# ---- which forms --------------------------------------------------------------------------------

Choice = tuple[str, str]
"""The name of a slot, and what stands there; nothing where it is left out."""


MOST_VALUES = 64
"""Of a slot that can be more, such as the bytes that a video instruction picks, only some occur."""


def values(slot: Slot) -> tuple[str, ...]:
    """Returns the values that a slot can have; of very many, sixteen that are evenly
    distributed."""
    some = slot.choices
    if len(some) > MOST_VALUES:
        some = some[:: len(some) // 15]
    return (*some, "") if slot.optional else some


def choices(spec: OpSpec) -> set[Choice]:
    """Returns all values that the slots of a form can have."""
    return {(slot.name, choice) for slot in spec.slots for choice in values(slot)}


def chosen(operation: Operation) -> set[Choice]:
    """Returns the values of an operation's slots."""
    return {(s.name, operation.modifiers.text(s.name, "")) for s in operation.spec.slots}


def covering(
    spec: OpSpec, rng: random.Random, legal: Callable[[Operation], bool] = lambda _: True
) -> list[Operation]:
    """Returns operations of a form in which every choice occurs, in legal combinations."""
    made: list[Operation] = []
    wanted = choices(spec) or {("", "")}
    while wanted:
        drawn = (_drawn(spec, rng, min(wanted), wanted) for _ in range(2000))
        operation = next((one for one in drawn if one is not None and legal(one)), None)
        assert operation is not None, f"no legal form of {spec.syntax} has {min(wanted)}"
        made.append(operation)
        wanted -= chosen(operation) | {("", "")}
    return made


def drawn(
    spec: OpSpec, rng: random.Random, legal: Callable[[Operation], bool] = lambda _: True
) -> Operation:
    """Returns a random legal operation of a form."""
    every = choices(spec) or {("", "")}
    while True:
        operation = _drawn(spec, rng, rng.choice(sorted(every)), every)
        if operation is not None and legal(operation):
            return operation


def _drawn(
    spec: OpSpec, rng: random.Random, fixed: Choice, wanted: set[Choice]
) -> Operation | None:
    """Returns an operation with one choice fixed; None if its text parses as another form."""
    parts = [spec.name]
    for slot in spec.slots:
        some = [one for one in values(slot) if (slot.name, one) in wanted]
        if not some or rng.random() < 0.3:
            some = values(slot)
        parts.append(fixed[1] if slot.name == fixed[0] else rng.choice(some))
    try:
        operation = decode(".".join(filter(None, parts)))
    except UnknownOpcode:
        return None
    return operation if operation.spec is spec else None


# ---- kernels ------------------------------------------------------------------------------------


@dataclass
class Kernel:
    """A kernel in construction: its lines, and the bytes of results per thread so far.

    Beside its registers a thread has %own, its 128 bytes of memory, which `own` also names in local
    memory and %cell in shared memory; `fixed` is constant, `given` a parameter. %both is one of two
    addresses that the lanes of a warp share, %near the same in shared memory.
    """

    rng: random.Random
    target: str = "sm_107a"
    version: str = ""
    """The newest version of PTX, if it is not said."""
    lines: list[str] = field(default_factory=list[str])
    size: int = 0
    functions: str = ""
    at: dict[int, str] = field(default_factory=dict[int, str])
    """The opcode whose results begin there."""

    def add(self, operation: Operation, shown: Sequence[str] | None = None) -> None:
        """Adds one instruction with all its possible operands, and stores of its results."""
        self.at[self.size] = operation.text
        forms = operation.spec.shown
        if shown is not None and not operation.spec.destinations:
            self.lines.append(statement(operation, list(shown)))
            return
        carries = operation.spec.has_implicit
        if carries:  # what the flag was before
            self.lines.append("add.cc.u32 %t, %r0, %r1")
        shown = list(shown or [self.operand(operation, form) for form in forms])
        outputs = self.outputs(operation)
        two = len(operation.terms) == 2 and not carries and len(outputs) == 1
        two = two or "|" in shown[0]
        if two and "|" not in shown[0]:
            shown[0] += "|%q"
        # In registers of its own, a result of arithmetic may hold any NaN (`abi.nans`).
        own = [f".reg .b{bits} {name}" for bits, name in outputs if bits in (32, 64)]
        self.lines += ["{", *own, statement(operation, shown)]
        for bits, name in outputs:
            self.store(bits, name)
        self.lines.append("}")
        if two:
            self.lines.append("selp.b32 %t, 1, 0, %q")
        if carries:
            self.lines.append("addc.u32 %t, 0, 0")
        if two or carries:
            self.put("b32", "%t")

    def outputs(self, operation: Operation) -> list[tuple[int, str]]:
        """Returns the registers that an instruction writes, with their widths."""
        found: list[tuple[int, str]] = []
        for form in operation.spec.destinations:
            if form.implicit:
                continue
            bits = width(operation, form)
            count = elements(operation, form)
            found += [(bits, f"%o{bits}_{number}") for number in range(count)]
        return found

    def operand(self, operation: Operation, form: OperandSpec) -> str:
        bits = width(operation, form)
        count = elements(operation, form)
        if form.written:
            some = [f"%o{bits}_{number}" for number in range(count)]
        else:
            some = [self.register(bits) for _ in range(count)]
        return some[0] if count == 1 and form.count == 1 else "{" + ", ".join(some) + "}"

    def register(self, bits: int) -> str:
        if bits == 128:
            low, high = self.register(64), self.register(64)
            number = self.rng.randrange(4)
            self.lines.append(f"mov.b128 %x{number}, {{{low}, {high}}}")
            return f"%x{number}"
        return f"{NAMES[bits]}{self.rng.randrange(INPUTS.get(bits, 4))}"

    def store(self, bits: int, name: str) -> None:
        """Stores a result; a predicate as a number, 128 bits in two halves."""
        if bits == 1:
            self.lines.append(f"selp.b16 %o16_0, 1, 0, {name}")
            name = "%o16_0"
        if bits == 128:
            self.lines.append(f"mov.b128 {{%o64_6, %o64_7}}, {name}")
            self.put("b64", "%o64_6")
            self.put("b64", "%o64_7")
        else:
            self.put(f"b{max(16, bits)}", name)

    def put(self, type: str, register: str) -> None:
        self.lines.append(f"st.global.{type} [%out+{self.size}], {register}")
        self.size += 8

    def text(self) -> str:
        loads: list[str] = []
        at = 0
        for bits, count in INPUTS.items():
            for number in range(count):
                loads.append(f"ld.global.b{bits} {NAMES[bits]}{number}, [%in+{at}]")
                at += 8
        tests = [f"setp.lt.s16 %p{i}, %h{i}, 0" for i in range(4)]
        body = "".join(
            f"\t{line}{'' if line in '{}' or line[-1] in ':;' else ';'}\n"
            for line in (*loads, *tests, *self.lines)
        )
        return f"""
.version {self.version or ".".join(map(str, newest()))}
.target {self.target}
.address_size 64
.const .align 32 .b8 fixed[64] = {{{", ".join(str(7 * i % 256) for i in range(64))}}};
{self.functions}
.visible .entry k(.param .u64 inputs, .param .u64 results, .param .align 32 .b8 given[64])
{{
\t.shared .align 32 .b8 cells[{THREADS * 128}];
\t.local .align 32 .b8 own[128];
\t.reg .pred %p<4>, %q, %o1_0, %two;
\t.reg .b16 %h<4>, %o16_<8>;
\t.reg .b32 %r<5>, %t, %i, %cell, %near, %o32_<8>;
\t.reg .b64 %d<4>, %in, %out, %own, %both, %base, %at, %o64_<8>;
\t.reg .b128 %x<4>, %o128_0;
\tld.param.u64 %base, [inputs];
\tld.param.u64 %out, [results];
\tmov.u32 %t, %tid.x;
\tmad.wide.u32 %in, %t, {PLACE}, %base;
\tadd.u64 %own, %in, {OWN};
\tmad.wide.u32 %out, %t, {self.size}, %out;
\tmov.u32 %i, cells;
\tmad.lo.u32 %cell, %t, 128, %i;
\tand.b32 %t, %t, 0xFFFFFFE1;
\tmad.lo.u32 %near, %t, 128, %i;
\tmad.wide.u32 %both, %t, {PLACE}, %base;
\tadd.u64 %both, %both, {OWN};
\tmov.u32 %t, %laneid;
\tsetp.lt.u32 %two, %t, 2;
{body}\tret;
}}
"""


def width(operation: Operation, form: OperandSpec) -> int:
    """Returns the bits of an operand's register."""
    type = operation.type_of(form)
    assert type is not None, (operation.text, form)
    return max(16, type.bits) if type.bits > 1 else 1


def elements(operation: Operation, form: OperandSpec) -> int:
    """Returns the number of registers in an operand."""
    vector = operation.modifiers.text("vec", "") if form.type == "type" else ""
    return VECTORS.get(vector, form.count)


# ---- running ------------------------------------------------------------------------------------


def inputs(seed: int) -> bytes:
    """Returns the input of every thread: registers with random bits, small numbers and edge values,
    and memory."""
    rng = np.random.default_rng(seed)
    columns: list[np.ndarray] = []
    for bits, count in INPUTS.items():
        for _ in range(count):
            any_bits = rng.integers(0, 1 << bits, THREADS, np.uint64, endpoint=False)
            edges = rng.choice(np.array(EDGES[bits], np.uint64), THREADS)
            small = rng.integers(0, 64, THREADS, np.uint64)
            kind = rng.random(THREADS)
            columns.append(np.where(kind < 0.4, any_bits, np.where(kind < 0.75, edges, small)))
    while len(columns) < PLACE // 8:
        columns.append(rng.integers(0, 1 << 64, THREADS, np.uint64, endpoint=False))
    return np.stack(columns, axis=1).tobytes()


Prepare = Callable[[DeviceMemory], object]


@dataclass(frozen=True)
class Outcome:
    """The value that each thread (row) stored for each result (column), the rest of memory, and the
    operations that some lane executed."""

    results: np.ndarray
    memory: bytes
    executed: frozenset[Operation]


def run(
    kernel: Kernel,
    seed: int,
    engine: ReferenceEngine | CompiledEngine,
    prepare: Prepare = lambda _: None,
) -> Outcome:
    """Launches a kernel of two warps; `prepare` can create objects that it uses."""
    module = parse(kernel.text())
    verify(module)
    program = build(module, "k", has_fma=target_of(module)[0] >= (2, 0))
    memory = DeviceMemory(1 << 30)
    prepare(memory)
    image = ModuleGlobals(module, memory)
    given = inputs(seed)
    source = memory.allocate(len(given))
    memory.write(source.address, given)
    target = memory.allocate(THREADS * max(8, kernel.size))
    parameters = struct.pack("<QQ", source.address, target.address).ljust(32, b"\0")
    parameters += bytes(range(64))
    addresses = image.addresses(program.globals)
    if PARAMETERS in program.slots:
        held = memory.allocate(len(parameters))
        memory.write(held.address, parameters)
        addresses += (held.address,)
    launch = Launch((1, 1, 1), (THREADS, 1, 1), parameters, addresses)
    tally = engine.launch(program, launch, memory)
    found = np.frombuffer(memory.read(target.address, THREADS * kernel.size), np.uint64)
    left = bytes(memory.read(source.address, len(given)))
    memory.close()
    executed = (program.instructions[i].operation for i in np.flatnonzero(tally.threads_on))
    return Outcome(found.reshape(THREADS, -1), left, frozenset(executed))


def assert_valid(texts: Iterable[str]) -> None:
    """Asserts that PTX texts are parsed and verified without an error."""
    for text in texts:
        verify(parse(text))


def assert_equal(kernel: Kernel, got: Outcome, expected: Outcome) -> None:
    """Asserts that two outcomes are equal; names the operations whose results are not."""
    wrong = np.flatnonzero((got.results != expected.results).any(axis=0)).tolist()
    starts = sorted(kernel.at)
    blamed = {kernel.at[max(s for s in starts if s <= 8 * column)] for column in wrong}
    assert not blamed, blamed
    assert got.memory == expected.memory


def assert_agreement(
    kernel: Kernel, specs: Sequence[OpSpec], seed: int, prepare: Prepare = lambda _: None
) -> frozenset[Operation]:
    """Asserts that the reference machine, optimized code and baseline code have equal outcomes, and
    that all executed every choice of every slot of the forms; returns the operations that they
    executed."""
    expected = run(kernel, seed, ReferenceEngine(), prepare)
    got = run(kernel, seed, CompiledEngine(), prepare)
    assert_equal(kernel, got, expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, BASELINE)
        assert_equal(kernel, run(kernel, seed, CompiledEngine(), prepare), expected)
    for executed in (expected.executed, got.executed):
        for spec in specs:
            of_spec = [operation for operation in executed if operation.spec is spec]
            assert of_spec, f"{spec.syntax} was not executed"
            missing = choices(spec).difference(*map(chosen, of_spec))
            assert not missing, f"{spec.syntax} was not executed with {missing}"
    return expected.executed & got.executed
