"""From text to the IR: what each construct of the grammar becomes."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.core.errors import PtxError, PtxSyntaxError, UnsupportedInstruction
from warploom.core.source import Location, Span
from warploom.core.types import B32, B64, F32, PRED, U32, U64
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
from warploom.ptx.module import Label, Masked, Module, Pragma, Prototype, Targets, Variable
from warploom.ptx.parser import parse

SAMPLES = Path(__file__).parent / "samples"
HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n"


def kernel(body: str, before: str = "", parameters: str = "") -> str:
    return f"{HEAD}{before}\n.entry k({parameters})\n{{\n{body}\n}}\n"


def statements(body: str, before: str = "", parameters: str = "") -> list[object]:
    function = parse(kernel(body, before, parameters)).function("k")
    assert function is not None
    return list(function.body or ())


def operands(body: str, before: str = "", parameters: str = "") -> tuple[Operand, ...]:
    """The operands of the last instruction."""
    found = [s for s in statements(body, before, parameters) if isinstance(s, Instruction)]
    return found[-1].operands


def test_module_directives() -> None:
    module = parse(
        '.version 9.5\n.target sm_90a, debug\n.address_size 64\n.pragma "one", "two";\n'
        '.file 1 "a.cu"\n.file 2 "b \\"q\\".h", 123, 45\n.section .debug_str { .b8 0 }'
    )
    assert module.version == (9, 5)
    assert module.target == ("sm_90a", "debug")
    assert module.address_size == 64
    assert module.pragmas == ("one", "two")
    assert module.files == ((1, "a.cu"), (2, 'b "q".h'))


def test_registers_of_one_and_many() -> None:
    """A range declares those of its registers that are used; they are in declared order."""
    declared = ".reg .b32 %r<3>, x;\n.reg .pred %p<2>;\n.reg .b64 %unused<1000000>;"
    function = parse(kernel(f"{declared}\n@%p1 add.u32 %r2, %r0, x;")).function("k")
    assert function is not None
    assert function.registers == (
        Register("%r0", B32),
        Register("%r2", B32),
        Register("x", B32),
        Register("%p1", PRED),
    )


@pytest.mark.parametrize(
    "declared",
    [
        ".reg .b32 %r<3>, %r1;",
        ".reg .b32 %r1; .reg .b32 %r<3>;",
        ".reg .b32 %r<3>; .reg .f32 %r<9>;",
        ".reg .b32 %r<20>; .reg .b32 %r1<5>;",
        ".reg .b32 %r1<5>; .reg .b32 %r<20>;",
    ],
)
def test_ranges_that_share_a_name_are_refused(declared: str) -> None:
    with pytest.raises(PtxSyntaxError, match=r"is (already )?declared"):
        parse(kernel(declared))


@pytest.mark.parametrize(
    "declared",
    [".reg .b32 %r<3>, %r3, %r03;", ".reg .b32 %r<20>; .reg .b32 %r1x<5>, %r<0>;"],
)
def test_ranges_end_before_their_number(declared: str) -> None:
    function = parse(kernel(f"{declared} mov.b32 %r2, %r0;")).function("k")
    assert function is not None
    assert {"%r0", "%r2"} <= {register.name for register in function.registers}


def test_an_inner_range_hides_outer_names() -> None:
    body = """.reg .b32 %r<3>; .reg .f32 %f1;
    { .reg .b64 %r<2>; .reg .b64 %f<2>; add.u64 %r1, %f1, %f0; mov.b32 %r2, 1; }
    mov.b32 %r1, 2; mov.f32 %f1, 0f00000000;"""
    made = [s for s in statements(body) if isinstance(s, Instruction)]
    types = [[o.type.name for o in i.operands if isinstance(o, Register)] for i in made]
    assert types == [["b64"] * 3, ["b32"], ["b32"], ["f32"]]
    names = [o.name for i in made for o in i.operands if isinstance(o, Register)]
    assert names[0] != names[4]
    assert names[1] != names[5]


def test_guards_labels_and_branches() -> None:
    found = statements(
        ".reg .pred p;\nL1:\n@p bra L2;\n@!p bra.uni L1;\nL2: exit;\n/* a\n comment */ ret; // end"
    )
    p = Register("p", PRED)
    assert [s for s in found if isinstance(s, Label)] == [Label("L1"), Label("L2")]
    made = [s for s in found if isinstance(s, Instruction)]
    assert [(i.operation.text, i.guard, i.operands) for i in made] == [
        ("bra", Guard(p), (Symbol("L2"),)),
        ("bra.uni", Guard(p, negated=True), (Symbol("L1"),)),
        ("exit", None, ()),
        ("ret", None, ()),
    ]


def test_scalar_operands() -> None:
    r = Register("r", B32)
    declared = ".reg .b32 r; .reg .pred p, q;"
    assert operands(f"{declared} add.s32 r, r, -1;") == (r, r, Immediate(-1))
    assert operands(f"{declared} mov.u32 r, %tid.x;") == (r, Special("%tid.x"))
    assert operands(f"{declared} mov.u32 r, WARP_SZ;") == (r, Immediate(32))
    assert operands(f"{declared} mov.b32 r, 0f3F800000;") == (r, Immediate(0x3F800000, 32))
    p, q = Register("p", PRED), Register("q", PRED)
    assert operands(f"{declared} setp.lt.s32 p|q, r, 3;") == (Pair(p, q), r, Immediate(3))
    assert operands(f"{declared} setp.lt.s32 _|q, r, 3;")[0] == Pair(Sink(), q)
    assert operands(f"{declared} setp.lt.s32 p|_, r, 3;")[0] == Pair(p, Sink())
    assert operands(f"{declared} setp.lt.and.s32 p, r, 3, !q;")[3] == Negated(q)


def test_symbols_and_addresses() -> None:
    before = ".global .u32 g[4];"
    declared = ".reg .b32 r; .reg .b64 a;"
    r, a = Register("r", B32), Register("a", B64)
    assert operands(f"{declared} mov.u64 a, g;", before) == (a, Symbol("g"))
    assert operands(f"{declared} mov.u64 a, g+8;", before) == (a, Symbol("g", 8))
    for text, address in {
        "[g]": Address(Symbol("g")),
        "[g+4]": Address(Symbol("g"), 4),
        "[a]": Address(a),
        "[a+8]": Address(a, 8),
        "[a+-8]": Address(a, -8),
        "[a-8]": Address(a, -8),
        "[a + (2*4)]": Address(a, 8),
        "[64]": Address(None, 64),
        "[a].unified": Address(a),
    }.items():
        assert operands(f"{declared} ld.global.u32 r, {text};", before) == (r, address)


def test_vectors() -> None:
    declared = ".reg .f32 x, y; .reg .b64 a;"
    x, y, a = Register("x", F32), Register("y", F32), Register("a", B64)
    assert operands(f"{declared} ld.global.v2.f32 {{x, _}}, [a];") == (
        Vector((x, Sink())),
        Address(a),
    )
    assert operands(f"{declared} mov.b64 a, {{x, y}};") == (a, Vector((x, y)))


def test_parts_of_a_vector_register_are_registers() -> None:
    declared = ".reg .v4 .f32 v; .reg .v2 .b32 w; .reg .b64 a; .reg .f32 f;"
    parts = tuple(Register(f"v.{c}", F32) for c in "xyzw")
    assert operands(f"{declared} ld.global.v4.f32 v, [a];")[0] == Vector(parts)
    assert operands(f"{declared} mov.f32 f, v.y;")[1] == parts[1]
    assert operands(f"{declared} mov.f32 f, v.a;")[1] == parts[3]
    with pytest.raises(PtxSyntaxError, match=r"`w.z` is not declared"):
        operands(f"{declared} mov.b32 f, w.z;")


def test_inner_scopes_are_renamed() -> None:
    found = statements(
        ".reg .u32 t; mov.u32 t, 1;\n"
        "{ .reg .u64 t; mov.u64 t, 2; bra L; L: }\n"
        "{ .reg .u32 t; mov.u32 t, 3; bra L; L: }\n"
        "mov.u32 t, 4;"
    )
    moves = [s for s in found if isinstance(s, Instruction) and s.operation.name == "mov"]
    assert [(m.operands[0], m.operands[1]) for m in moves] == [
        (Register("t", U32), Immediate(1)),
        (Register("t$1", U64), Immediate(2)),
        (Register("t$2", U32), Immediate(3)),
        (Register("t", U32), Immediate(4)),
    ]
    branches = [s for s in found if isinstance(s, Instruction) and s.operation.name == "bra"]
    labels = [s for s in found if isinstance(s, Label)]
    assert [b.operands[0] for b in branches] == [Symbol(label.name) for label in labels]
    assert labels[0] != labels[1]


def test_a_branch_out_of_a_scope_finds_the_label_outside() -> None:
    found = statements("bra L; { bra L; { bra L; L: } } L: ret;")
    made = [s.operands for s in found if isinstance(s, Instruction)]
    assert made == [(Symbol("L"),), (Symbol("L"),), (Symbol("L$1"),), ()]


def test_a_shadowing_name_does_not_capture_the_module() -> None:
    found = statements(
        ".reg .b64 a; { .shared .u32 s; mov.u64 a, s; } mov.u64 a, s;", ".shared .u32 s;"
    )
    assert [s.operands[1] for s in found if isinstance(s, Instruction)] == [
        Symbol("s$1"),
        Symbol("s"),
    ]


def test_variables() -> None:
    module = parse(
        HEAD + ".extern .global .u32 e;\n"
        ".visible .global .align 16 .b8 bytes[3] = {1, 2, 3};\n"
        ".const .v2 .f32 pairs[2];\n"
        ".global .f32 open[] = {1.0, 0f40000000};\n"
        ".global .s32 grid[2][2] = {{1, -2}, {3}};\n"
        ".global .u64 p = generic(bytes)+2, q = bytes+1;\n"
        ".global .u8 part = 0xff00(bytes);\n"
        ".extern .shared .align 16 .b8 dynamic[];\n"
        ".weak .global .attribute(.managed) .u32 m;\n"
    )
    by_name = {v.name: v for v in module.variables}
    assert by_name["e"] == Variable("e", Space.GLOBAL, U32, linkage="extern")
    numbers = (Immediate(1), Immediate(2), Immediate(3))
    assert (by_name["bytes"].align, by_name["bytes"].initial) == (16, numbers)
    assert (by_name["pairs"].vector, by_name["pairs"].size) == (2, 16)
    assert by_name["open"].shape == (2,)
    assert by_name["open"].initial == (
        Immediate(0x3FF0000000000000, 64),
        Immediate(0x40000000, 32),
    )
    assert by_name["grid"].initial == ((Immediate(1), Immediate(-2)), (Immediate(3),))
    assert by_name["p"].initial == Symbol("bytes", 2)
    assert by_name["q"].initial == Symbol("bytes", 1)
    assert by_name["part"].initial == Masked(Symbol("bytes"), 0xFF00)
    assert (by_name["dynamic"].shape, by_name["dynamic"].linkage) == ((None,), "extern")
    assert by_name["m"].linkage == "weak"


def test_functions_and_their_directives() -> None:
    module = parse(
        HEAD + ".extern .func (.param .b32 r) f (.param .b64 a, .param .align 8 .b8 b[24]);\n"
        ".func stop() .noreturn { exit; }\n"
        ".visible .entry k(.param .u64 .ptr .global .align 16 p)\n"
        '.maxntid 256, 1, 1 .minnctapersm 2 .explicitcluster .pragma "x";\n{ ret; }\n'
    )
    f, stop, k = module.functions
    assert (f.body, f.linkage, f.is_entry) == (None, "extern", False)
    assert [(p.name, p.size, p.alignment) for p in (*f.returns, *f.parameters)] == [
        ("r", 4, 4),
        ("a", 8, 8),
        ("b", 24, 8),
    ]
    assert stop.noreturn
    assert (k.is_entry, k.linkage) == (True, "visible")
    assert (k.parameters[0].pointer_space, k.parameters[0].pointer_align) == (Space.GLOBAL, 16)
    assert k.directives == (
        ("maxntid", (256, 1, 1)),
        ("minnctapersm", (2,)),
        ("explicitcluster", ()),
        ("pragma", ("x",)),
    )
    assert module.entries == (k,)


CALLEES = ".func f0() { ret; }\n.func (.param .b32 r) f1(.param .b32 a) { ret; }"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call f0;", (Vector(()), Symbol("f0"), Vector(()))),
        ("call.uni f0, ();", (Vector(()), Symbol("f0"), Vector(()))),
        (
            "call (x), f1, (y);",
            (Vector((Symbol("x"),)), Symbol("f1"), Vector((Symbol("y"),))),
        ),
        (
            "call (x), a, (y), proto;",
            (
                Vector((Symbol("x"),)),
                Register("a", B64),
                Vector((Symbol("y"),)),
                Symbol("proto"),
            ),
        ),
        ("call a, list;", (Vector(()), Register("a", B64), Vector(()), Symbol("list"))),
    ],
)
def test_calls(text: str, expected: tuple[Operand, ...]) -> None:
    body = (
        ".reg .b64 a; .param .b32 x, y;\n"
        "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
        f"list: .calltargets f0;\n{text}"
    )
    assert operands(body, CALLEES) == expected


def test_prototypes_targets_and_pragmas() -> None:
    found = statements(
        "proto: .callprototype (.param .b32 _) _ (.param .b64 a, .param .b32 _) .noreturn;\n"
        'list: .branchtargets L1, L2;\nL1:\n.pragma "nounroll";\nL2: ret;'
    )
    prototype, targets, _, pragma = found[:4]
    assert isinstance(prototype, Prototype)
    assert prototype.noreturn
    assert [p.type for p in (*prototype.returns, *prototype.parameters)] == [B32, B64, B32]
    assert targets == Targets("list", ("L1", "L2"), calls=False)
    assert pragma == Pragma("nounroll")


def test_an_alias_has_the_body_of_what_it_stands_for() -> None:
    module = parse(HEAD + ".func g();\n.func f() { exit; }\n.alias g, f;\n")
    alias, original = module.function("g"), module.function("f")
    assert alias is not None
    assert original is not None
    assert alias.body == original.body


def test_texture_operands_nest() -> None:
    # No texture instruction is in the tables yet; the operand form is the same for all.
    address = operands(
        ".reg .b32 x, y; .reg .b64 t; ld.global.b32 x, [t, {x, y}];",
    )[1]
    x, y = Register("x", B32), Register("y", B32)
    assert address == Vector((Address(Register("t", B64)), Vector((x, y))))


def test_locations_follow_inlining() -> None:
    body = """
	.loc 1 20 3
	mov.u32 r, 1;
	.loc 1 11 34, function_name $L__info_string0, inlined_at 1 20 3
	mov.u32 r, 2;
	.loc 2 5 7, function_name $L__info_string0+2, inlined_at 1 11 34
	mov.u32 r, 3;"""
    text = kernel(".reg .u32 r;" + body) + (
        '.file 1 "a.cu"\n.file 2 "b.h"\n'
        ".section .debug_str\n{\n$L__info_string0:\n.b8 95,90\n.b8 102,0\n}\n"
    )
    function = parse(text).function("k")
    assert function is not None
    outer = Location("a.cu", 20, 3)
    middle = Location("a.cu", 11, 34, "_Zf", outer)
    assert [i.location for i in function.instructions] == [
        outer,
        middle,
        Location("b.h", 5, 7, "f", middle),
    ]


def test_lines_of_inline_assembly_are_that_of_its_statement() -> None:
    """LLVM adds one for each line of the assembly's text."""
    body = """
	.loc 1 20 3
	// begin inline asm
	.loc 1 20 3
	mov.u32 r, 1;
	.loc 1 21 3
	mov.u32 r, 2;
	// end inline asm
	mov.u32 r, 3;
	.loc 1 30 1
	mov.u32 r, 4;
	// begin inline asm
	.loc 1 40 1
	mov.u32 r, 5;
	.loc 1 41 1
	mov.u32 r, 6;
	// end inline asm"""
    function = parse(kernel(".reg .u32 r;" + body) + '.file 1 "a.cu"\n').function("k")
    assert function is not None
    lines = [i.location.line for i in function.instructions if i.location is not None]
    assert lines == [20, 20, 20, 30, 40, 40]


def test_dwarf_sections_are_passed_over() -> None:
    module = parse(
        HEAD + ".section .debug_abbrev\n{\n.b8 1\n.b64 .debug_line+4\nL:\n}\n.global .u32 g;"
    )
    assert [v.name for v in module.variables] == ["g"]


def test_spans_point_at_tokens() -> None:
    text = kernel(".reg .b32 %r<3>;\n\tadd.s32 \t%r1, %r2, 17;")
    function = parse(text).function("k")
    assert function is not None
    (made,) = function.instructions
    assert made.span == Span(8, 2, 7)
    assert [o.span for o in made.operands] == [Span(8, 11, 3), Span(8, 16, 3), Span(8, 21, 2)]


def test_the_text_may_end_in_nul() -> None:
    assert parse(HEAD + ".global .u32 g;\n\0").variables[0].name == "g"


def test_what_nvrtc_writes() -> None:
    module = parse((SAMPLES / "mixed.ptx").read_text("utf-8"), "mixed.ptx")
    structs, vectors, prints = module.entries
    # The facts are those of mixed.cu: sizes and alignments of its types, its initial values.
    assert [(p.size, p.alignment) for p in structs.parameters] == [(8, 8), (40, 8)]
    assert [(p.size, p.alignment) for p in vectors.parameters] == [
        *((8, 8), (32, 16), (8, 8), (8, 8), (8, 8), (8, 8))
    ]
    shared = [s for s in structs.body or () if isinstance(s, Variable) and s.space is Space.SHARED]
    assert [v.size for v in shared] == [64 * 4, 4 * 8]
    by_name = {v.name: v for v in module.variables}
    assert by_name["counter"].initial == Immediate(7)
    assert by_name["pointer"].initial == Symbol("counter")
    assert by_name["packed"].initial == (
        Immediate(ord("x")),
        *(Masked(Symbol("counter"), 0xFF << 8 * n) for n in range(8)),
    )
    assert [i.operation.name for i in prints.instructions].count("call") == 1
    functions = {
        location.function for i in structs.instructions if (location := i.location) is not None
    }
    assert functions == {None, "_Z5outerf", "_Z5innerf"}


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("", 1, 1, "the text is empty"),
        ("hello", 1, 1, "expected `.version`"),
        ("Fatbin ptx code:\n.version 8.0\n", 1, 1, "remove the lines above it"),
        (".version x", 1, 10, "expected a version"),
        (HEAD + ".globl .u32 x;", 4, 1, "expected a directive"),
        (HEAD + ".global .u33 x;", 4, 9, "expected a type"),
        (HEAD + ".reg .b32 r;", 4, 1, "inside functions"),
        (HEAD + ".func g(); .alias g, f;", 4, 22, "no function `f` is defined"),
        (HEAD + ".global .u32 x", 4, 15, "the text ends here"),
        (HEAD + ".global .align 3 .u32 x;", 4, 16, "power of two"),
        (HEAD + ".global .u32 x[2][];", 4, 19, "outermost"),
        (kernel("add.s32 %r1, %r1, 1;"), 7, 9, "`%r1` is neither a declared register"),
        (kernel(".reg .b32 %r<2>; add.s32 %r1 %r1;"), 7, 30, "expected `,` or `;`"),
        (kernel(".reg .b32 %r<2>; add.s32 %r1, ;"), 7, 31, "expected an operand"),
        (kernel(".reg .b32 r; .reg .b32 r;"), 7, 24, "declared twice"),
        (kernel("L: L: ret;"), 7, 4, "declared twice"),
        (kernel("bra Lx;"), 7, 5, "`Lx` is not declared"),
        (kernel(".reg .b32 r; ld.global.u32 r, [nowhere];"), 7, 32, "`nowhere` is not declared"),
        (kernel("@ ret;"), 7, 3, "`ret` is not declared"),
        (kernel(".reg .b32 r; mov.u32 r, 'a';"), 7, 25, "PTX must not contain the character"),
        (kernel('.pragma "no end;'), 7, 9, "this string is not terminated"),
        (kernel("/* no end"), 7, 1, "this comment is not terminated"),
        (kernel("ret; } }"), 7, 8, "expected a directive"),
        (kernel(".reg .b32 %r<99999999>;"), 7, 14, "the number of registers"),
        (kernel(".reg .b32 r; mov.u32 r, 18446744073709551616;"), 7, 25, "expected a number"),
        (HEAD + "\x7fELF\x02", 4, 1, "must be ASCII text"),
    ],
)
def test_errors_point_at_the_token(text: str, line: int, column: int, reason: str) -> None:
    with pytest.raises(PtxSyntaxError, match="(?s)" + reason) as caught:
        parse(text)
    assert (caught.value.span.line, caught.value.span.column) == (line, column)


@pytest.mark.parametrize("bracket", ["(", "{", "-"])
def test_deep_nesting_is_an_error(bracket: str) -> None:
    with pytest.raises(PtxSyntaxError, match="nested too deeply"):
        parse(kernel(f".reg .b32 r; mov.u32 r, {bracket * 5000} 1;"))


@pytest.mark.parametrize(
    ("opcode", "column", "length", "reason"),
    [
        ("addd.s32", 1, 4, "not a known instruction; did you mean .*add"),
        ("fabric.submit", 1, 6, "`fabric.submit` is not supported: .* one device"),
        ("fabric.submits", 8, 7, r"`.submits` is not valid here .* valid here: .*\.submit"),
        ("add.rz.foo.f32", 8, 3, r"`.foo` is not valid here .* valid here: .*\.ftz.*\.f32"),
        ("add", 4, 1, r"needs more modifiers; valid here: .*\.s32"),
        ("ret.s32", 5, 3, r"`.s32` is not valid here"),
    ],
)
def test_an_unknown_opcode_points_at_its_part(
    opcode: str, column: int, length: int, reason: str
) -> None:
    with pytest.raises(UnsupportedInstruction, match=reason) as caught:
        parse(kernel(f"{opcode} 1;"))
    assert caught.value.span == Span(7, column, length)


def test_the_message_shows_the_line() -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(kernel("\tadd.s32 %r1, %r1, 1;"), "k.ptx")
    lines = str(caught.value).split("\n")
    assert lines[0].startswith("k.ptx:7:10: ")
    assert lines[1].index("%r1") == lines[2].index("^^^")


def test_a_near_name_is_suggested() -> None:
    with pytest.raises(PtxSyntaxError, match=r"did you mean .*%tid\.x"):
        parse(kernel(".reg .b32 r; mov.u32 r, %tidx;"))


SAMPLE = (SAMPLES / "mixed.ptx").read_text("utf-8")


def attempt(text: str) -> Module | PtxError:
    """The module, or the error that the text deserves; anything else is a crash."""
    try:
        return parse(text)
    except PtxError as error:
        return error


@settings(max_examples=60)
@given(st.integers(0, len(SAMPLE) - 1))
def test_a_text_cut_off_anywhere_is_an_error_or_shorter(length: int) -> None:
    whole, cut = parse(SAMPLE), attempt(SAMPLE[:length])
    if isinstance(cut, PtxError):
        assert 1 <= cut.span.line <= SAMPLE.count("\n") + 1
    else:
        assert cut.functions == whole.functions[: len(cut.functions)]


@settings(max_examples=60)
@given(st.integers(0, len(SAMPLE) - 1), st.characters())
def test_a_damaged_text_never_crashes(at: int, character: str) -> None:
    assert isinstance(attempt(SAMPLE[:at] + character + SAMPLE[at + 1 :]), Module | PtxError)


@settings(max_examples=60)
@given(st.text() | st.binary().map(lambda b: b.decode("latin-1")))
def test_no_text_crashes(text: str) -> None:
    with pytest.raises(PtxError):
        parse(text)


@pytest.mark.parametrize("blank", [" ", "\t", "\f", " \f"])
def test_blanks_are_passed_once(blank: str) -> None:
    """A million of them would last for days if each began a search of its own."""
    text = kernel("ret;")
    assert parse(text + blank * 1_000_000).text.startswith(text)


def test_names_of_files_have_no_control_characters() -> None:
    assert parse(HEAD + '.file 1 "a\x1b[2J.cu"\n').files == ((1, r"a\x1b[2J.cu"),)
