"""Tests the offsets of variables, and the program that `build` returns."""

from pathlib import Path

import pytest

from warploom.core.errors import LaunchError
from warploom.isa.instruction import Immediate, Space
from warploom.program.build import build
from warploom.program.program import Program, VariableSlot
from warploom.ptx.parser import parse

HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n"
SAMPLES = Path(__file__).parent.parent / "ptx" / "samples"


def program(body: str, module: str = "", parameters: str = "") -> Program:
    text = f"{HEAD}{module}\n.entry k({parameters}) {{ .reg .b32 r; .reg .b64 a; {body} }}"
    return build(parse(text), "k")


def test_parameters_are_aligned() -> None:
    made = program(
        "ret;",
        parameters=".param .u8 a1, .param .u64 b1, .param .u32 c1, .param .align 16 .b8 d1[20],"
        " .param .v2 .f32 e1, .param .u16 f1",
    )
    assert {name: (p.offset, p.size) for name, p in made.slots.items()} == {
        "a1": (0, 1),
        "b1": (8, 8),
        "c1": (16, 4),
        "d1": (32, 20),
        "e1": (56, 8),
        "f1": (64, 2),
    }
    assert made.parameter_bytes == 66


def test_shared_variables_then_dynamic_memory() -> None:
    made = program(
        ".shared .align 4 .b8 own[6]; st.shared.b32 [own], r; mov.u64 a, dyn; mov.u64 a, late;"
        "st.shared.f64 [first], 0d0000000000000000;",
        ".shared .f64 first; .shared .b32 unused[100]; .extern .shared .b8 dyn[];"
        ".extern .shared .align 64 .b8 late[];",
    )
    assert made.slots["first"] == VariableSlot(Space.SHARED, 0, 8)
    assert made.slots["own"] == VariableSlot(Space.SHARED, 8, 6)
    assert "unused" not in made.slots
    assert made.shared_bytes == 14
    assert made.dynamic_shared_offset == 64
    assert made.slots["dyn"] == made.slots["late"] == VariableSlot(Space.SHARED, 64, 0)


def test_dynamic_memory_suits_every_type() -> None:
    made = program(
        ".shared .b8 own; st.shared.b8 [own], r; mov.u64 a, d;", ".extern .shared .b8 d[];"
    )
    assert made.dynamic_shared_offset == 16


def test_local_and_frame_offsets_are_separate() -> None:
    made = program(
        ".local .b8 l1; .local .align 8 .b8 l2[12]; .param .b64 f1; .param .b32 f2;"
        "st.local.b8 [l1], r; mov.u64 a, l2; st.param.b32 [f2+0], r; st.param.b64 [f1], a;"
    )
    assert made.slots["l1"] == VariableSlot(Space.LOCAL, 0, 1)
    assert made.slots["l2"] == VariableSlot(Space.LOCAL, 8, 12)
    assert made.local_bytes == 20
    assert made.slots["f1"] == VariableSlot(Space.PARAM, 0, 8, frame=True)
    assert made.slots["f2"] == VariableSlot(Space.PARAM, 8, 4, frame=True)
    assert made.frame_bytes == 12


def test_globals_are_numbered() -> None:
    made = program(
        "ld.const.b32 r, [c]; mov.u64 a, g2; ld.global.b32 r, [g1+4];",
        ".extern .global .b32 g2[]; .global .b32 g1[2]; .global .b32 g2[3]; .const .b32 c;"
        ".global .b32 unused;",
    )
    assert made.globals == ("g2", "g1", "c")
    assert made.slots["g2"] == VariableSlot(Space.GLOBAL, 0, 12)
    assert made.slots["g1"] == VariableSlot(Space.GLOBAL, 1, 8)
    assert made.slots["c"] == VariableSlot(Space.CONST, 2, 4)


def test_a_function_variable_may_have_the_name_of_a_module_variable() -> None:
    text = (
        f"{HEAD}.func f(); .entry k() {{ .reg .b32 r; .shared .b32 s;"
        " st.shared.b32 [s], r; call f; }"
        " .shared .b64 s; .func f() { .reg .b32 r; ld.shared.b32 r, [s]; }"
    )
    made = build(parse(text), "k")
    assert sorted((p.offset, p.size) for p in made.slots.values()) == [(0, 8), (8, 4)]


def test_functions_have_distinct_addresses() -> None:
    made = program("mov.u64 a, f; mov.u64 a, g;", ".func f() { ret; } .func g() { ret; }")
    found = [i.operands[1] for i in made.instructions if i.operation.name == "mov"]
    assert all(isinstance(one, Immediate) and one.value for one in found)
    assert found[0] != found[1]


def test_structs_of_nvrtc() -> None:
    made = build(parse((SAMPLES / "mixed.ptx").read_text("utf-8")), "structs")
    # mixed.cu: float s[64], double t[4], and extern float dynamic[]
    assert made.shared_bytes == 64 * 4 + 4 * 8
    assert made.dynamic_shared_offset == made.shared_bytes
    # float *, then struct { float a[6]; int n; double d; }
    assert made.parameter_bytes == 8 + 40
    assert set(made.globals) == {"counter", "pointer", "table"}


def test_a_missing_kernel_names_those_there_are() -> None:
    module = parse(
        f"{HEAD}.func f() {{ ret; }} .entry one() {{ ret; }} .entry two() {{ ret; }}", "m"
    )
    with pytest.raises(LaunchError, match=r"m has no kernel named three. Kernels: one, two."):
        build(module, "three")
    with pytest.raises(LaunchError, match=r"f in m is not a kernel"):
        build(module, "f")


def test_lines_come_from_the_source() -> None:
    made = build(parse((SAMPLES / "calls.ptx").read_text("utf-8"), "calls.ptx"), "nested")
    assert made.line(1) == "calls.cu:19"
