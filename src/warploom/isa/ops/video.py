"""Video instructions: PTX ISA, "Video Instructions" (scalar and SIMD).

Each takes parts of its operands, which the text writes behind the registers (`%r1.b2`) and the form
has as its last modifiers (`isa.spec`). Everything is computed in 64 or 128 bits, where nothing
overflows, and cut to what the destination holds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from itertools import product

from warploom.core.types import S64, S128, U32, U64, unsigned
from warploom.isa.spec import Modifiers, Semantics, Unit, op
from warploom.isa.terms import (
    Term,
    compare,
    constant,
    extend,
    maximum,
    minimum,
    pack,
    reinterpret,
    select,
    shift_left,
    shift_right,
    truncate,
)

WORDS = ("u32", "s32")
PARTS = ("b0", "b1", "b2", "b3", "h0", "h1")
RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")
SECONDARY = ("add", "min", "max")
TYPES = {"dtype": WORDS, "atype": WORDS, "btype": WORDS}

Combine = Callable[[Modifiers, Term, Term], Term]


def selectors(name: str, choices: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Returns the slot of an operand's parts."""
    return {f"{name}sel": tuple(f"{name}={choice}" for choice in choices)}


def cut(value: Term, place: int, bits: int, *, signed: bool) -> Term:
    """Returns `bits` bits of a word from `place` on, extended to 64."""
    raised = shift_left(extend(reinterpret(value, U32), S64), constant(64 - place - bits, U32))
    lowered = raised if signed else reinterpret(raised, U64)
    return reinterpret(shift_right(lowered, constant(64 - bits, U32)), S64)


def whole_part(selected: str) -> tuple[int, int]:
    """Returns where a selected part begins, and how many bits it has."""
    if not selected:
        return 0, 32
    bits = 8 if selected[0] == "b" else 16
    return bits * int(selected[1]), bits


def chosen(m: Modifiers, name: str) -> str:
    """Returns what stands behind an operand, without the dot."""
    return m.text(f"{name}sel", "").partition("=")[2]


def bounded(value: Term, bits: int, *, signed: bool) -> Term:
    """Returns `value` clamped to an integer range of `bits` bits."""
    top = (1 << (bits - signed)) - 1
    return minimum(maximum(value, -top - 1 if signed else 0), top)


def is_signed(m: Modifiers, name: str) -> bool:
    """Returns whether the type in a slot is .s32."""
    return m[name] == "s32"


# ---- one result ---------------------------------------------------------------------------------


def operand(m: Modifiers, value: Term, name: str) -> Term:
    """Returns the part of operand a or b that is selected, in 64 bits."""
    signed = is_signed(m, f"{name}type")
    return cut(value, *whole_part(chosen(m, name)), signed=signed)


def finished(m: Modifiers, found: Term, c: Term | None, *, signed: bool) -> Term:
    """Returns the result clamped, then joined with c by a second operation or put among its
    bits."""
    place, bits = whole_part(chosen(m, "d"))
    if "sat" in m:
        found = bounded(found, bits, signed=signed)
    if c is None:
        return truncate(found, U32)
    if "op2" in m:
        addend = extend(cut(c, 0, 32, signed=signed), found.type)
        second_operation = {"add": Term.__add__, "min": minimum, "max": maximum}[m.text("op2", "")]
        return truncate(second_operation(found, addend), U32)
    mask = ((1 << bits) - 1) << place
    placed = shift_left(truncate(found, U32), constant(place, U32))
    return (placed & mask) | (reinterpret(c, U32) & ~mask)


def scalar(
    head: str, tail: str, src: str, written: str, **choices: tuple[str, ...]
) -> Callable[[Semantics], Semantics]:
    """Declares the three syntax lines of a scalar instruction: alone, with a second operation, with
    its result put among the bits of c. `head` and `tail` stand before and behind `.sat`'s place."""
    behind = "{.asel}{.bsel}"
    names = choices | selectors("a", PARTS) | selectors("b", PARTS) | selectors("d", PARTS)

    def register(semantics: Semantics) -> Semantics:
        for line, sources in (
            (f"{head}{tail}{behind}", src),
            (f"{head}{tail}.op2{behind}", f"{src}, c:{written}"),
            (f"{head}{tail}.dsel{behind}", f"{src}, c:{written}"),
        ):
            given = names | {"op2": SECONDARY}
            op(line, dst=f"d:{written}", src=sources, unit=Unit.INTEGER, **given)(semantics)
        return semantics

    return register


def arithmetic(name: str, combine: Combine, formula: str) -> None:
    """Declares a scalar instruction of two operands."""

    def semantics(m: Modifiers, a: Term, b: Term, c: Term | None = None) -> Term:
        found = combine(m, operand(m, a, "a"), operand(m, b, "b"))
        signed = is_signed(m, "dtype")
        return reinterpret(finished(m, found, c, signed=signed), m.scalar("dtype"))

    semantics.__doc__ = f"d = {formula} for the selected parts of a and b   PTX ISA, Video: {name}"
    head, types = f"{name}.dtype.atype.btype", "a:atype, b:btype"
    scalar(head, "{.sat}", types, "dtype", **TYPES)(semantics)


def difference(_: Modifiers, a: Term, b: Term) -> Term:
    """Returns the absolute difference of a and b."""
    return maximum(a - b, b - a)


def average(_: Modifiers, a: Term, b: Term) -> Term:
    """Half of the sum, away from zero where it is positive (PTX ISA, vavrg2)."""
    total = a + b
    return shift_right(select(total >= 0, total + 1, total), constant(1, U32))


COMBINE: dict[str, tuple[Combine, str]] = {
    "add": (lambda m, a, b: a + b, "a + b"),
    "sub": (lambda m, a, b: a - b, "a - b"),
    "absdiff": (difference, "|a - b|"),
    "min": (lambda m, a, b: minimum(a, b), "min(a, b)"),
    "max": (lambda m, a, b: maximum(a, b), "max(a, b)"),
}

for name, (function, text) in COMBINE.items():
    arithmetic(f"v{name}", function, text)


def related(m: Modifiers, a: Term, b: Term) -> Term:
    """Returns 1 where a and b stand in the relation of `.cmp`, else 0."""
    return select(compare(m.text("cmp", ""), a, b), constant(1, S64), 0)


@scalar(
    "vset.atype.btype",
    ".cmp",
    "a:atype, b:btype",
    "u32",
    atype=WORDS,
    btype=WORDS,
    cmp=RELATIONS,
)
def vset(m: Modifiers, a: Term, b: Term, c: Term | None = None) -> Term:
    """d = (a cmp b) ? 1 : 0 for the selected parts of a and b   PTX ISA, Video: vset"""
    found = related(m, operand(m, a, "a"), operand(m, b, "b"))
    return finished(m, found, c, signed=False)


MODES = {"dtype": WORDS, "atype": WORDS, "btype": ("u32",), "mode": ("clamp", "wrap")}


def shift_amount(m: Modifiers, b: Term) -> Term:
    """Returns how far a shift goes: up to 32 places, or so many modulo 32."""
    amount = truncate(operand(m, b, "b"), U32)
    return amount & 31 if m["mode"] == "wrap" else minimum(amount, 32)


@scalar("vshl.dtype.atype.btype", "{.sat}.mode", "a:atype, b:u32", "dtype", **MODES)
def vshl(m: Modifiers, a: Term, b: Term, c: Term | None = None) -> Term:
    """d = a << b for the selected parts of a and b   PTX ISA, Video: vshl"""
    found = shift_left(extend(operand(m, a, "a"), S128), shift_amount(m, b))
    signed = is_signed(m, "dtype")
    return reinterpret(finished(m, found, c, signed=signed), m.scalar("dtype"))


@scalar("vshr.dtype.atype.btype", "{.sat}.mode", "a:atype, b:u32", "dtype", **MODES)
def vshr(m: Modifiers, a: Term, b: Term, c: Term | None = None) -> Term:
    """d = a >> b for the selected parts of a and b   PTX ISA, Video: vshr"""
    found = shift_right(operand(m, a, "a"), shift_amount(m, b))
    signed = is_signed(m, "dtype")
    return reinterpret(finished(m, found, c, signed=signed), m.scalar("dtype"))


SCALED = {**TYPES, "scale": ("shr7", "shr15"), **selectors("a", PARTS), **selectors("b", PARTS)}


@op(
    "vmad.dtype.atype.btype{.sat}{.scale}{.asel}{.bsel}{.aneg}{.bneg}",
    dst="d:dtype",
    src="a:atype, b:btype, c:dtype",
    unit=Unit.INTEGER,
    aneg=("-a",),
    bneg=("-b",),
    **SCALED,
)
@op(
    "vmad.dtype.atype.btype{.sat}{.scale}{.asel}{.bsel}.cneg",
    dst="d:dtype",
    src="a:atype, b:btype, c:dtype",
    unit=Unit.INTEGER,
    cneg=("-c",),
    **SCALED,
)
@op(
    "vmad.dtype.atype.btype.po{.sat}{.scale}{.asel}{.bsel}",
    dst="d:dtype",
    src="a:atype, b:btype, c:dtype",
    unit=Unit.INTEGER,
    **SCALED,
)
def vmad(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = (+-(a * b) +- c) >> scale for the selected parts of a and b; .po adds 1 before the shift
    PTX ISA, Video: vmad"""
    minus = ("aneg" in m) != ("bneg" in m)
    signed = is_signed(m, "atype") or is_signed(m, "btype") or minus or "cneg" in m
    found = extend(operand(m, a, "a"), S128) * extend(operand(m, b, "b"), S128)
    addend = extend(cut(c, 0, 32, signed=signed), S128)
    found = (-found if minus else found) + (-addend if "cneg" in m else addend)
    found = found + 1 if "po" in m else found
    found = shift_right(found, constant(int(m.text("scale", "shr0")[3:]), U32))
    if "sat" in m:
        found = bounded(found, 32, signed=signed)
    return reinterpret(truncate(found, U32), m.scalar("dtype"))


# ---- two or four results at once ----------------------------------------------------------------


def digits(m: Modifiers, name: str, default: str) -> list[int]:
    """Returns the numbers behind an operand, that of the lowest part first."""
    return [int(digit) for digit in reversed(chosen(m, name)[1:] or default)]


def lanes(m: Modifiers, name: str, words: tuple[Term, Term], count: int) -> list[Term]:
    """Returns the parts of {b, a} that operand `name` stands for, lowest first, in 64 bits."""
    bits, signed = 32 // count, is_signed(m, f"{name}type")
    own = "76543210"[-count:] if name == "a" else "76543210"[-2 * count : -count]
    places = digits(m, name, own)
    return [cut(words[at // count], at % count * bits, bits, signed=signed) for at in places]


def gathered(m: Modifiers, found: list[Term], c: Term, *, signed: bool) -> Term:
    """Returns the results that the mask lets through, added to c or put among its parts."""
    count = len(found)
    bits = 32 // count
    through = digits(m, "d", "3210"[-count:])
    if "sat" in m:
        found = [bounded(value, bits, signed=signed) for value in found]
    if "add" in m:
        words = [truncate(found[at], U32) for at in through]
        return reduce(Term.__add__, words, reinterpret(c, U32))
    kept = [cut(c, at * bits, bits, signed=False) for at in range(count)]
    parts = [found[at] if at in through else kept[at] for at in range(count)]
    return pack([truncate(part, unsigned(bits)) for part in parts], U32)


@cache
def simd(count: int) -> dict[str, tuple[str, ...]]:
    """Returns the slots behind the operands of a two-way or four-way instruction."""
    letter = {2: "h", 4: "b"}[count]
    choices = tuple(
        letter + "".join(word) for word in product("01234567"[: 2 * count], repeat=count)
    )
    some = [
        letter + "".join(str(at) for at in reversed(range(count)) if mask >> at & 1)
        for mask in range(1, 1 << count)
    ]
    return selectors("a", choices) | selectors("b", choices) | selectors("d", tuple(some))


def declare_simd(
    name: str, count: int, combine: Combine, head: str, formula: str, *, dtype: str
) -> None:
    """Declares both syntax lines of a two-way or four-way instruction."""

    def semantics(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
        lanes_of_a, lanes_of_b = (lanes(m, source, (a, b), count) for source in "ab")
        found = [combine(m, x, y) for x, y in zip(lanes_of_a, lanes_of_b, strict=True)]
        signed = dtype == "dtype" and is_signed(m, "dtype")
        return reinterpret(gathered(m, found, c, signed=signed), c.type)

    semantics.__doc__ = f"d = {formula} in each of {count} parts   PTX ISA, Video: {name}"
    sat = "{.sat}" if dtype == "dtype" else ""
    for modifiers in (sat, ".add"):
        op(
            f"{name}{head}{modifiers}{{.dsel}}{{.asel}}{{.bsel}}",
            dst=f"d:{dtype}",
            src=f"a:atype, b:btype, c:{dtype}",
            unit=Unit.INTEGER,
            cmp=RELATIONS,
            **TYPES,
            **simd(count),
        )(semantics)


for count in (2, 4):
    for name, (function, text) in {**COMBINE, "avrg": (average, "(a + b) / 2")}.items():
        line = ".dtype.atype.btype"
        declare_simd(f"v{name}{count}", count, function, line, text, dtype="dtype")
    text = "(a cmp b) ? 1 : 0"
    declare_simd(f"vset{count}", count, related, ".atype.btype.cmp", text, dtype="u32")
