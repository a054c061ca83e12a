"""Draws PTX kernels: any instruction that has terms, under any control flow, with memory accesses
in between.

A kernel reads its registers from a buffer, executes what was drawn, and writes every register back,
so that any error of a machine shows in memory or in the counts.
"""

from __future__ import annotations

import hypothesis.strategies as st
from random_calls import PROTOTYPE, call, functions
from random_texels import texels
from random_writer import COUNTS, PREFIXES, Writer, declared

import warploom.isa.ops  # noqa: F401  (fills FORMS)
from warploom.core.types import PACKED
from warploom.isa.spec import FORMS, OperandSpec, Operation, OpSpec, Unit, decode
from warploom.isa.versions import newest

THREAD_BYTES = 256
"""Bytes of the buffer that belong to one thread: its registers go out there."""

SHARED_BYTES = 512
UNROUNDED = [decode("mad.f32").spec]
"""What only code for compute capability 1.x has."""

COMPUTING = [
    spec
    for forms in FORMS.values()
    for spec in forms
    if spec.semantics is not None and spec.unit is not Unit.ATOMIC and spec not in UNROUNDED
    if all(operand.type != "address" for operand in spec.operands)
    if all(slot.choices != ("b128",) for slot in spec.slots)
]
EDGES = (0, 1, 2, 31, 32, 63, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
DECIMALS = ("0.1", "-2.5", "1e30", "0.0")
SINGLES = (0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFC12345, 0x7F800001, 1, 0x3F800000)
DOUBLES = (0, 1 << 63, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48 | 1, 0xFFF8123456789ABC, 1)
FLOAT_EDGES = {
    32: tuple(f"0f{bits:08X}" for bits in SINGLES),
    64: tuple(f"0d{bits:016X}" for bits in DOUBLES),
}
"""Zeros, infinities, NaNs with payloads, one that signals, and subnormals, as literals."""


def kernels(*, statements: int = 12, alone: bool = False) -> st.SearchStrategy[str]:
    """Draws PTX modules with a kernel `k(buffer)`. With `alone`, no thread depends on others."""

    @st.composite
    def build(draw: st.DrawFn) -> str:
        made, names = functions(draw, _body, alone=alone)
        writer = Writer(draw, functions=names, alone=alone)
        _body(writer, draw(st.integers(1, statements)), depth=2)
        return module("\n".join(writer.lines), made)

    return build()


def module(body: str, functions: str = "") -> str:
    """Returns a module around the statements of a kernel, which loads and stores its registers."""
    places = [
        (bits, f"{prefix}{i}", 8 * (4 * n + i) if bits > 1 else 8 * 16 + i)
        for n, (bits, prefix) in enumerate(PREFIXES.items())
        for i in range(COUNTS[bits])
        if i < 4 or bits == 32
    ]
    offsets = {name: 8 * index for index, (_, name, _) in enumerate(places)}
    loads, stores = [], []
    for bits, name, _ in places:
        at = f"[%mine+{offsets[name]}]"
        if bits == 1:
            loads += [f"\tld.global.b16 %t, {at};", "\tand.b16 %t, %t, 1;"]
            loads += [f"\tsetp.ne.u16 {name}, %t, 0;"]
            stores += [f"\tselp.u16 %t, 1, 0, {name};", f"\tst.global.b16 {at}, %t;"]
        else:
            loads.append(f"\tld.global.b{bits} {name}, {at};")
            stores.append(f"\tst.global.b{bits} {at}, {name};")
    return f"""
.version {".".join(map(str, newest()))}
.target sm_100a
.address_size 64
.global .align 4 .b32 cells[16];
.const .align 4 .b32 table[8] = {{1, 2, 3, 5, 8, 13, 21, 34}};
.shared .align 16 .b8 block[{SHARED_BYTES}];
{functions}
.visible .entry k(.param .u64 buffer)
{{
{declared()}
\t{PROTOTYPE}
\tld.param.u64 %base, [buffer];
\tmov.u32 %i, %ctaid.x;
\tmov.u32 %j, %ntid.x;
\tmov.u32 %n, %tid.x;
\tmad.lo.u32 %i, %i, %j, %n;
\tmul.wide.u32 %mine, %i, {THREAD_BYTES};
\tadd.u64 %mine, %mine, %base;
\tmov.u32 %lap, 0;
{chr(10).join(loads)}
{body}
DONE:
{chr(10).join(stores)}
\tret;
}}
"""


def _body(w: Writer, statements: int, depth: int) -> None:
    kinds = [_compute] * 5 + [_memory] * 3 + [_vector_move, _agreed, call, call]
    if not w.alone:
        kinds += [_warpwide, texels]
    if depth:
        kinds += [_if, _if, _loop, _loop, _switch, _leave]
    if depth and not w.alone:
        kinds.append(_barrier)
    for _ in range(statements):
        w.draw(st.sampled_from(kinds))(w, depth)


# ---- statements ---------------------------------------------------------------------------------


def _compute(w: Writer, _: int) -> None:
    """Draws any instruction of the tables that has terms."""
    operation = w.draw(operations())
    forms = [s for s in operation.spec.operands if not s.optional and not s.implicit]
    if any(s.optional for s in operation.spec.operands) and w.draw(st.booleans()):
        forms = [s for s in operation.spec.operands if not s.implicit]
    operands = [_operand(w, operation, form) for form in forms]
    w.emit(f"{w.guard()}{statement(operation, operands)}")


def statement(operation: Operation, operands: list[str]) -> str:
    """Returns an instruction's text: its opcode and its operands with their modifiers."""
    forms = [form for form in operation.spec.operands if not form.implicit]
    shown: list[str] = []
    for form, operand in zip(forms, operands, strict=False):
        before, behind = operation.decorations.get(form.name, ("", ""))
        shown.append(f"{before}{operand}{behind}")
    return f"{operation.opcode} {', '.join(shown)}"


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    """Draws an opcode with modifiers."""
    spec: OpSpec = draw(st.sampled_from(COMPUTING))
    parts = [spec.name]
    for slot in spec.slots:
        if not slot.optional or draw(st.booleans()):
            parts.append(draw(st.sampled_from(slot.choices)))
    return decode(".".join(parts))


def _operand(w: Writer, operation: Operation, spec: OperandSpec) -> str:
    type = operation.type_of(spec)
    assert type is not None, (operation.text, spec)
    bits = max(16, type.bits) if type.bits > 1 else 1
    register = w.register(bits)
    if spec.count > 1:
        return "{" + ", ".join(w.register(bits) for _ in range(spec.count)) + "}"
    if spec.written or type.bits < 16 or w.draw(st.integers(0, 3)):
        return register
    if type in PACKED or spec.name in operation.decorations:
        return register
    if type.is_float:
        known = (*FLOAT_EDGES[type.bits], *DECIMALS) if type.bits in FLOAT_EDGES else (register,)
        return w.draw(st.sampled_from(known))
    return str(w.draw(st.sampled_from([e for e in EDGES if e < 1 << type.bits])))


def _vector_move(w: Writer, _: int) -> None:
    low, high, whole = w.register(32), w.register(32), w.register(64)
    moves = (f"mov.b64 {whole}, {{{low}, {high}}}", f"mov.b64 {{{low}, _}}, {whole}")
    w.emit(w.guard() + w.draw(st.sampled_from(moves)))


def _agreed(w: Writer, _: int) -> None:
    """Draws a uniform value, in a register that differs between lanes or in memory."""
    if not w.alone and w.draw(st.booleans()):
        place = w.draw(st.sampled_from(AGREED_PLACES))
        w.emit(f"{w.guard()}st.{place}, {w.draw(st.sampled_from((w.register(32), '7')))}")
        return
    bits, value = w.draw(st.sampled_from(AGREED_VALUES))
    w.emit(f"{w.guard()}{value.format(w.register(bits))}")


AGREED_PLACES = ("global.u32 [cells+8]", "shared.u32 [block+4]", "shared.u16 [block+20]")
AGREED_VALUES = (
    (32, "mov.u32 {}, 7"),
    (32, "mov.u32 {}, %ctaid.x"),
    (32, "ld.const.u32 {}, [table+8]"),
    (64, "mov.u64 {}, 4294967297"),
    (16, "mov.u16 {}, 9"),
    (1, "mov.u32 %j, %ctaid.x; setp.eq.u32 {}, %j, 0"),
)


def _memory(w: Writer, _: int) -> None:
    """Draws a load, a store or an atomic at an address that lanes may share."""
    spaces = ("local", "const") if w.alone else SPACES
    space = w.draw(st.sampled_from(spaces))
    shape, bits, count = w.draw(st.sampled_from(SHAPES))
    size = bits // 8 * count
    symbol, capacity = {
        "shared": ("block", SHARED_BYTES),
        "local": ("own", 64),
        "const": ("table", 32),
    }.get(space, ("cells", 64))
    cast = ""
    if space == "":
        symbol, capacity, cast = w.draw(st.sampled_from(GENERIC))
    scale = w.draw(st.sampled_from((1, 1, 2, 3, 5)))
    index = "%n" if w.alone else w.draw(st.sampled_from(("%laneid", "%n")))
    index = w.draw(st.sampled_from((index, index, w.register(32))))
    w.emit(f"mov.u32 %j, {index}; mul.lo.u32 %j, %j, {scale}")
    w.emit(f"and.b32 %j, %j, {capacity // size - 1}")
    w.emit(f"mul.wide.u32 %at, %j, {size}")
    w.emit(f"mov.u64 %base, {symbol}")
    if cast:
        w.emit(f"cvta.{cast}.u64 %base, %base")
    w.emit("add.u64 %at, %at, %base")
    dotted = f".{space}" if space else ""
    kind = w.draw(st.integers(0, 2))
    if kind == 2 and space in ("global", "shared", "") and symbol != "own":
        _atomic(w, dotted)
        return
    loads = kind == 0 or space == "const"
    moved = [w.register(bits) for _ in range(count)]
    if shape.endswith(("f32", "f64")) and not loads and w.draw(st.booleans()):
        moved = [w.draw(st.sampled_from(DECIMALS)) for _ in range(count)]
    data = moved[0] if count == 1 else "{" + ", ".join(moved) + "}"
    if loads:
        w.emit(f"{w.guard()}ld{dotted}{shape} {data}, [%at]")
    else:
        w.emit(f"{w.guard()}st{dotted}{shape} [%at], {data}")


SHAPES = (
    (".b32", 32, 1),
    (".u16", 16, 1),
    (".s32", 32, 1),
    (".f32", 32, 1),
    (".f64", 64, 1),
    (".v2.f32", 32, 2),
    (".b64", 64, 1),
    (".v2.b32", 32, 2),
    (".v4.b32", 32, 4),
    (".v2.b64", 64, 2),
)
SPACES = ("global", "shared", "local", "const", "", "", "")
GENERIC = (("cells", 64, ""), ("block", SHARED_BYTES, "shared"), ("own", 64, "local"))
ATOMICS = ("add.u32", "min.s32", "max.u32", "inc.u32", "dec.u32", "and.b32", "or.b32", "xor.b32")


def _atomic(w: Writer, space: str) -> None:
    value, swap, result = w.register(32), w.register(32), w.register(32)
    w.emit("and.b64 %at, %at, -4")
    kind = w.draw(st.sampled_from((*ATOMICS, "exch.b32", "cas.b32", "add.f32")))
    if kind.endswith("f32"):
        value = w.draw(st.sampled_from((value, *DECIMALS)))
    if kind == "cas.b32":
        w.emit(f"{w.guard()}atom{space}.cas.b32 {result}, [%at], {value}, {swap}")
    elif kind != "exch.b32" and w.draw(st.booleans()):
        w.emit(f"{w.guard()}red{space}.{kind} [%at], {value}")
    else:
        w.emit(f"{w.guard()}atom{space}.{kind} {result}, [%at], {value}")


def _members(w: Writer) -> str:
    """Draws a member mask: mostly all lanes, else the active ones, or a mask with lanes that may be
    inactive."""
    kind = w.draw(st.integers(0, 9))
    if kind == 9:
        w.emit("activemask.b32 %j")
    return {8: "0x00ffffff", 9: "%j"}.get(kind, "-1")


def _warpwide(w: Writer, _: int) -> None:
    kind = w.draw(st.integers(0, 6))
    result = w.register(32)
    members = _members(w)
    if kind == 6:
        w.emit(f"{w.guard()}elect.sync {result}|{w.register(1)}, {members}")
    elif kind == 5:
        operation = w.draw(st.sampled_from(REDUCTIONS))
        w.emit(f"{w.guard()}redux.sync.{operation} {result}, {w.register(32)}, {members}")
    elif kind == 4:
        bits = w.draw(st.sampled_from((32, 64)))
        mode = w.draw(st.sampled_from(("any", "all")))
        pair = result if mode == "any" else f"{result}|{w.register(1)}"
        w.emit(f"{w.guard()}match.{mode}.sync.b{bits} {pair}, {w.register(bits)}, {members}")
    elif kind == 0:
        w.emit(f"{w.guard()}activemask.b32 {result}")
    elif kind == 1:
        mode = w.draw(st.sampled_from(("all", "any", "uni")))
        w.emit(f"{w.guard()}vote.sync.{mode}.pred {w.register(1)}, {w.register(1)}, {members}")
    elif kind == 2:
        w.emit(f"{w.guard()}vote.sync.ballot.b32 {result}, {w.register(1)}, {members}")
    else:
        mode = w.draw(st.sampled_from(("up", "down", "bfly", "idx")))
        clamp = w.draw(st.sampled_from(("0", "31", "0x1c1f", "0x1800", w.register(32))))
        pair = w.draw(st.sampled_from((result, f"{result}|{w.register(1)}")))
        amount = w.draw(st.sampled_from(("1", "16", w.register(32))))
        how = f"{amount}, {clamp}, {members}"
        w.emit(f"{w.guard()}shfl.sync.{mode}.b32 {pair}, {w.register(32)}, {how}")


REDUCTIONS = (
    *("add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32"),
    *("xor.b32", "min.f32", "max.f32", "min.NaN.f32", "max.abs.f32", "min.abs.NaN.f32"),
)


def _if(w: Writer, depth: int) -> None:
    otherwise, end = w.label(), w.label()
    w.emit(f"@{w.draw(st.sampled_from(('', '!')))}{w.register(1)} bra {otherwise}")
    _body(w, w.draw(st.integers(1, 3)), depth - 1)
    if w.draw(st.booleans()):
        w.emit(f"bra {end}")
    w.mark(otherwise)
    _body(w, w.draw(st.integers(0, 2)), depth - 1)
    w.mark(end)


def _loop(w: Writer, depth: int) -> None:
    """Draws a loop of at most eight iterations, with several exits and entries."""
    head, out, inside = w.label(), w.label(), w.label()
    if w.draw(st.booleans()):
        w.emit(f"@{w.register(1)} bra {inside}")
    w.mark(head)
    w.emit("add.u32 %lap, %lap, 1")
    w.emit(f"and.b32 %j, {w.register(32)}, 7")
    w.emit("setp.gt.u32 %p0, %lap, %j")
    w.emit(f"@%p0 bra {out}")
    _body(w, w.draw(st.integers(1, 3)), depth - 1)
    w.mark(inside)
    w.emit("setp.lt.u32 %p1, %lap, 40")
    w.emit(f"@%p1 bra {head}")
    w.mark(out)
    w.emit("shr.u32 %lap, %lap, 1")


def _switch(w: Writer, depth: int) -> None:
    """Draws an indexed branch. Some targets fall through to the next one, and rarely an index is
    out of range, since that ends the kernel."""
    ways = w.draw(st.integers(1, 4))
    labels, end, targets = [w.label() for _ in range(ways)], w.label(), w.label()
    choices = [w.draw(st.sampled_from(labels)) for _ in range(w.draw(st.integers(ways, 6)))]
    w.emit(f"{targets}: .branchtargets {', '.join(choices)}")
    w.emit(f"and.b32 %j, {w.register(32)}, 7")
    if w.draw(st.integers(0, 9)):
        w.emit(f"min.u32 %j, %j, {len(choices) - 1}")
    w.emit(f"{w.guard()}brx.idx %j, {targets}")
    for label in labels:
        w.mark(label)
        _body(w, w.draw(st.integers(1, 2)), depth - 1)
        if w.draw(st.booleans()):
            w.emit(f"bra {end}")
    w.mark(end)


def _leave(w: Writer, _: int) -> None:
    """Draws an early exit of some lanes: to the end of the body, or of the kernel."""
    way = w.draw(st.sampled_from(("bra DONE", "ret", "exit")))
    w.emit(f"@{w.register(1)} {way}")


def _barrier(w: Writer, _: int) -> None:
    w.emit(w.draw(st.sampled_from(("bar.sync 0", "bar.sync 0", "barrier.sync 1"))))
