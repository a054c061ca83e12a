"""What is printed parses back to an equal module."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.core.types import B32, B64, F32, PRED, U32
from warploom.isa.instruction import (
    Address,
    Guard,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Space,
    Special,
    Symbol,
    Vector,
)
from warploom.isa.spec import decode
from warploom.ptx.module import (
    Function,
    Label,
    Masked,
    Module,
    Pragma,
    Prototype,
    Statement,
    Targets,
    Variable,
)
from warploom.ptx.parser import parse
from warploom.ptx.printer import print_module

SAMPLES = Path(__file__).parent / "samples"


@pytest.mark.parametrize("name", ["mixed", "calls"])
def test_what_nvrtc_writes_comes_back(name: str) -> None:
    module = parse((SAMPLES / f"{name}.ptx").read_text("utf-8"))
    assert parse(print_module(module)) == module


def test_a_change_shows() -> None:
    """The property above can fail: equality sees a changed operand."""
    module = parse((SAMPLES / "calls.ptx").read_text("utf-8"))
    text = print_module(module)
    assert parse(text.replace("%ctaid.x", "%tid.x").replace(", 7;", ", 8;")) != module


def test_registers_are_declared_in_order_and_briefly() -> None:
    head = ".version 8.0\n.target sm_75\n.address_size 64\n"
    body = ".reg .b32 %r<3>, %r7, x; .reg .v2 .f32 v; .reg .v4 .f32 w; .reg .b32 y10;"
    module = parse(f"{head}.entry k() {{ {body} add.u32 %r0, %r1, %r2; }}")
    text = print_module(module)
    assert "\t.reg .b32 %r<3>;\n\t.reg .b32 %r7;\n\t.reg .b32 x;\n\t.reg .v2 .f32 v;" in text
    assert parse(text) == module


def test_register_parameters_are_declared_in_the_heading() -> None:
    text = ".version 8.0\n.func (.reg .u32 r) f(.reg .f32 a) { .reg .b32 x; ret; }"
    module = parse(text)
    assert ".func (.reg .u32 r) f(.reg .f32 a)\n{\n\t.reg .b32 x;\n\tret;" in print_module(module)
    assert parse(print_module(module)) == module


REGISTERS = (
    *(Register(f"%r{n}", B32) for n in range(4)),
    *(Register(f"%rd{n}", B64) for n in range(2)),
    *(Register(f"v.{part}", F32) for part in "xyzw"),
    *(Register(f"%p{n}", PRED) for n in range(2)),
    Register("temp$1", U32),
)
VARIABLES = (
    Variable("g", Space.GLOBAL, U32, (4, 2), initial=((Immediate(1), Immediate(-2)),)),
    Variable("f", Space.CONST, F32, (2,), vector=2, align=16, initial=(Immediate(1, 32),)),
    Variable("m", Space.GLOBAL, U32, initial=Masked(Symbol("g", 4), 0xFF00), linkage="weak"),
    Variable("s", Space.SHARED, B32, (None,), linkage="extern"),
    Variable("table", Space.GLOBAL, B64, initial=Symbol("callee")),
)
registers = st.sampled_from(REGISTERS)
predicates = st.sampled_from([r for r in REGISTERS if r.type is PRED])
symbols = st.builds(
    Symbol, st.sampled_from(["g", "f", "s", "callee"]), st.sampled_from([0, 4, -8, 1 << 40])
)
immediates = st.one_of(
    st.builds(Immediate, st.integers(-(1 << 63), (1 << 64) - 1)),
    st.builds(Immediate, st.integers(0, (1 << 32) - 1), st.just(32)),
    st.builds(Immediate, st.integers(0, (1 << 64) - 1), st.just(64)),
)
addresses = st.one_of(
    st.builds(Address, registers, st.integers(-(1 << 31), 1 << 31)),
    st.builds(Address, st.builds(Symbol, st.sampled_from("gfs")), st.integers(-8, 8)),
    st.builds(Address, st.none(), st.integers(0, 1 << 40)),
)
simple = st.one_of(
    registers,
    immediates,
    symbols,
    st.builds(Special, st.sampled_from(["%tid.x", "%laneid"])),
    st.builds(Sink),
)


def vectors(elements: st.SearchStrategy[Operand]) -> st.SearchStrategy[Operand]:
    return st.lists(elements, min_size=1, max_size=4).map(lambda e: Vector(tuple(e)))


operands: st.SearchStrategy[Operand] = st.one_of(
    simple,
    addresses,
    vectors(simple),
    st.builds(lambda a, v: Vector((a, v)), addresses, vectors(simple)),
    st.builds(Pair, registers | st.builds(Sink), predicates | st.builds(Sink)),
    st.builds(Negated, predicates),
)
guards = st.none() | st.builds(Guard, predicates, st.booleans())
plain = st.builds(
    Instruction,
    st.sampled_from(["add.rn.ftz.f32", "ld.global.v2.u32", "ret", "bar.sync"]).map(decode),
    st.lists(operands, max_size=4).map(tuple),
    guards,
)
lists = st.lists(registers | symbols, max_size=3).map(lambda e: Vector(tuple(e)))
calls = st.builds(
    lambda returns, callee, arguments, more, guard: Instruction(
        decode("call.uni"), (returns, callee, arguments, *more), guard
    ),
    lists,
    registers | st.just(Symbol("callee")),
    lists,
    st.sampled_from([(), (Symbol("proto"),)]),
    guards,
)
locals_ = st.sampled_from([Space.SHARED, Space.LOCAL, Space.PARAM])
FIXED: tuple[Statement, ...] = (
    Label("L"),
    Variable("local", Space.LOCAL, U32, (3,), align=8),
    Prototype("proto", (), (Variable("_", Space.PARAM, B64),), noreturn=True),
    Targets("ts", ("L",), calls=False),
    Pragma('say "this\\that"'),
    Instruction(decode("call.uni"), (Vector(REGISTERS), Symbol("callee"), Vector(()))),
)
"""Statements of each body; the call names all registers, since a range declares what is used."""

bodies = st.lists(plain | calls, max_size=6).map(lambda made: (*FIXED, *made))
functions = st.builds(
    Function,
    st.just("k"),
    st.booleans(),
    parameters=st.just(
        (
            Variable("a", Space.PARAM, B64, pointer_space=Space.GLOBAL, pointer_align=16),
            Variable("b", Space.PARAM, B64, pointer_space=Space.GENERIC, align=8),
        )
    ),
    linkage=st.sampled_from(["", "visible", "weak"]),
    noreturn=st.booleans(),
    directives=st.sampled_from(
        [(), (("maxntid", (32, 2, 1)), ("explicitcluster", ())), (("pragma", ("x",)),)]
    ),
    registers=st.just(REGISTERS),
    body=st.none() | bodies,
).map(lambda made: replace(made, noreturn=made.noreturn and not made.is_entry))


@settings(max_examples=150)
@given(functions)
def test_any_module_comes_back(function: Function) -> None:
    callee = Function("callee", is_entry=False, body=())
    if function.body is None:
        function = replace(function, registers=())
    module = Module(
        (8, 3), ("sm_80", "debug"), 64, VARIABLES, (callee, function), pragmas=("one", "two")
    )
    assert parse(print_module(module)) == module
