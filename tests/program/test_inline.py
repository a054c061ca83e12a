"""Tests inlined calls: what is issued, what is renamed, and which calls are refused or retained."""

from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import UnsupportedInstruction
from warploom.isa.instruction import Address, Guard, Instruction, Register, Symbol, Vector
from warploom.program import inlining
from warploom.program.build import build
from warploom.program.program import Program, Site
from warploom.ptx.parser import parse

HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n"
SAMPLES = Path(__file__).parent.parent / "ptx" / "samples"

CALLEE = """
.func (.param .b32 out) f(.param .b32 in)
{ .reg .b32 r; .reg .pred p; .shared .b32 s; .local .b32 l;
  ld.param.b32 r, [in]; setp.eq.s32 p, r, 0; @p ret;
  st.shared.b32 [s], r; st.local.b32 [l], r;
L: @p bra L;
  st.param.b32 [out], r; ret; }
"""
CALLER = """
.entry k()
{ .reg .b32 r; .reg .pred p; .param .b32 x, y;
  st.param.b32 [x], r;
  GUARD call (y), f, (x);
  ld.param.b32 r, [y];
  call (y), f, (x);
  exit; }
"""


def program(text: str) -> Program:
    return build(parse(HEAD + text), "k")


def show(instruction: Instruction) -> str:
    guard = instruction.guard
    sign = "" if guard is None else f"@{'!' * guard.negated}{guard.register.name} "
    names: list[str] = []
    for operand in instruction.operands:
        if isinstance(operand, Address) and operand.base is not None:
            names.append(f"[{operand.base.name}]")
        elif isinstance(operand, Register | Symbol):
            names.append(operand.name)
    return f"{sign}{instruction.operation.text} {' '.join(names)}".strip()


def test_a_call_is_followed_by_the_inlined_body() -> None:
    made = program(CALLEE + CALLER.replace("GUARD", ""))
    assert [show(i) for i in made.instructions[:11]] == [
        "st.param.b32 [x] r",
        "call f",
        "ld.param.b32 r@1 [x]",  # the caller's variable is the callee's parameter
        "setp.eq.s32 p@1 r@1",
        "@p@1 bra return@1",
        "st.shared.b32 [s@f] r@1",
        "st.local.b32 [l@1] r@1",
        "@p@1 bra L@1",
        "st.param.b32 [y] r@1",
        "bra return@1",
        "ld.param.b32 r [y]",
    ]
    assert [show(i) for i in made.instructions[11:14]] == [
        "call f",
        "ld.param.b32 r@2 [x]",
        "setp.eq.s32 p@2 r@2",
    ]
    # The branch that was a ret goes to what follows the call.
    returned = made.blocks[made.targets["return@1"]]
    assert show(made.instructions[returned.start]) == "ld.param.b32 r [y]"


def test_copies_share_their_sites() -> None:
    made = program(CALLEE + CALLER.replace("GUARD", ""))
    assert made.sites[1:4] == (Site("k", 1), Site("f", 0), Site("f", 1))
    assert made.sites[11:14] == (Site("k", 3), Site("f", 0), Site("f", 1))
    assert made.sites[-1] == Site("k", 4)


def test_the_call_itself_does_nothing() -> None:
    made = program(CALLEE + CALLER.replace("GUARD", ""))
    assert made.instructions[1].operands == (Vector(()), Symbol("f"), Vector(()))


def test_static_variables_are_one_and_local_ones_are_not() -> None:
    made = program(CALLEE + CALLER.replace("GUARD", ""))
    assert made.shared_bytes == 4
    assert made.local_bytes == 8
    assert made.slots["l@1"].offset != made.slots["l@2"].offset


def test_registers_of_every_copy_are_declared() -> None:
    made = program(CALLEE + CALLER.replace("GUARD", ""))
    names = [r.name for r in made.registers]
    assert names == ["r", "p", "r@1", "p@1", "r@2", "p@2"]


def test_a_guarded_call_is_branched_around() -> None:
    made = program(CALLEE + CALLER.replace("GUARD", "@p"))
    around, call = made.instructions[1:3]
    assert show(around) == "@!p bra return@1"
    assert (show(call), call.guard) == ("call f", None)
    block = next(b for b in made.blocks if b.stop == 2)
    assert made.reconvergence[block.index] == made.targets["return@1"]
    guarded = program(CALLEE + CALLER.replace("GUARD", "@!p"))
    assert guarded.instructions[1].guard == Guard(guarded.registers[1])


def test_nested_calls_are_renamed_once_more() -> None:
    made = build(parse((SAMPLES / "calls.ptx").read_text("utf-8")), "nested")
    calls = [i.operands[1] for i in made.instructions if i.operation.name == "call"]
    # nested calls leaf once and twice two times, which calls leaf two times
    assert [c.name for c in calls if isinstance(c, Symbol)].count("_Z4leafi") == 5
    assert [c.name for c in calls if isinstance(c, Symbol)].count("_Z5twicei") == 2
    assert len({r.name for r in made.registers}) == len(made.registers)
    assert made.frame_bytes == 4 * 2 * 7


def test_an_exit_in_a_callee_ends_the_thread() -> None:
    made = program(".func f() { exit; } .entry k() { .reg .b32 r; call f; mov.b32 r, 1; }")
    assert [show(i) for i in made.instructions] == ["call f", "exit", "mov.b32 r"]
    assert made.blocks[0].successors == (made.exit,)


def test_register_parameters_are_copied() -> None:
    made = program(
        ".func (.reg .u32 out) inc(.reg .u32 a, .reg .u32 b) { add.u32 out, a, b; ret; }"
        ".entry k() { .reg .u32 r; call (r), inc, (r, 4); ret; }"
    )
    assert [show(i) for i in made.instructions] == [
        "call inc",
        "mov.b32 a@1 r",
        "mov.b32 b@1",
        "add.u32 out@1 a@1 b@1",
        "bra return@1",
        "mov.b32 r out@1",
        "ret",
    ]


def test_values_are_stored_into_parameters() -> None:
    made = program(
        ".func (.param .u32 out) inc(.param .u32 a) { ret; }"
        ".entry k() { .reg .u32 r; call (r), inc, (r); ret; }"
    )
    assert [show(i) for i in made.instructions] == [
        "call inc",
        "st.param.u32 [a@1] r",
        "bra return@1",
        "ld.param.u32 r [out@1]",
        "ret",
    ]
    assert made.frame_bytes == 8


@pytest.mark.parametrize("name", ["__cudaCDP2GetParameterBufferV2", "cudaLaunchDeviceV2"])
def test_launches_by_kernels_are_no_missing_functions(name: str) -> None:
    """Those of the device runtime, to which nvcc -rdc=true turns <<<...>>> in a kernel."""
    with pytest.raises(UnsupportedInstruction, match="kernels cannot launch kernels"):
        program(f".extern .func {name}(); .entry k() {{ call {name}; }}")


def test_a_function_without_a_body_is_refused() -> None:
    text = ".extern .func vprintf(); .entry k() { call vprintf; }"
    with pytest.raises(UnsupportedInstruction, match="has no body") as caught:
        program(text)
    span = caught.value.span
    line = (HEAD + text).split("\n")[span.line - 1]
    assert line[span.column - 1 : span.column - 1 + span.length] == "vprintf"


@pytest.mark.parametrize(
    "text",
    [
        ".func f() { call f; ret; } .entry k() { call f; ret; }",
        ".func g(); .func f() { call g; } .func g() { call f; } .entry k() { call f; }",
    ],
)
def test_a_recursive_function_is_emitted_once(text: str) -> None:
    made = program(text)
    seen = [i for n, i in enumerate(made.instructions) if n not in made.hidden]
    assert [i.operation.name for i in seen].count("call") == text.count("call")
    assert made.depth is not None


def test_direct_calls_are_still_inlined_where_the_address_is_taken_too() -> None:
    made = program(".func f() { ret; } .entry k() { .reg .b64 a; mov.u64 a, f; call f; ret; }")
    assert made.depth is None


def test_an_extern_function_that_is_not_called_is_accepted() -> None:
    assert program(".extern .func vprintf(); .entry k() { ret; }").blocks


def chain(count: int, calls: int) -> str:
    """A kernel and `count` functions, each of which calls the one before it so many times: the
    first of them adds 1 each time, so that the result is 1 + calls ** count."""
    call = "{ .param .b32 p, q; st.param.b32 [p], %x; call (q), f@, (p); ld.param.b32 %x, [q]; }"
    head = "(.param .b32 r) f{0}(.param .b32 a) {{ .reg .b32 %x; ld.param.b32 %x, [a];"
    text = ".version 8.0\n.target sm_80\n.address_size 64\n"
    text += ".func " + head.format(0) + " add.u32 %x, %x, 1; st.param.b32 [r], %x; ret; }\n"
    for number in range(1, count + 1):
        calling = call.replace("f@", f"f{number - 1}") * calls
        text += f".func {head.format(number)} {calling} st.param.b32 [r], %x; ret; }}\n"
    body = call.replace("f@", f"f{count}")
    return text + (
        ".visible .entry k(.param .u64 out) { .reg .b32 %x; .reg .b64 %d; ld.param.u64 %d, [out];"
        f" mov.u32 %x, 1; {body} st.global.u32 [%d], %x; ret; }}\n"
    )


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(("count", "calls"), [(3, 2), (12, 2), (300, 1)])
def test_calls_that_multiply_are_not_inlined(count: int, calls: int, engine: str) -> None:
    """Inlined, there were 2^n copies, or calls deeper than Python can go."""
    gpu = wl.Device("a100", engine=engine)
    out = gpu.zeros(1, np.uint32)
    kernel = gpu.compile(chain(count, calls), "ptx")["k"]
    kernel[1, 1](out)
    assert out.copy_to_host()[0] == 1 + calls**count
    assert len(kernel.program.instructions) < 6_000


def test_as_much_as_fits_is_inlined() -> None:
    """1 + 2 + 4 + ... + 256 calls: below the limit, none stays."""
    program = build(parse(chain(8, 2)), "k")
    assert program.depth is None
    assert sum(made.operation.name == "call" for made in program.instructions) == 2**9 - 1


def test_a_chain_of_1500_functions_can_be_built() -> None:
    assert len(build(parse(chain(1500, 1)), "k").instructions) > 4 * 1500


def test_a_kernel_that_is_too_large_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inlining, "MAX_INSTRUCTIONS", 100)
    monkeypatch.setattr(inlining, "MAX_INLINED", 50)
    with pytest.raises(wl.CompileError, match=r"kernel k is too large to compile: .* limit is 100"):
        build(parse(chain(60, 1)), "k")
