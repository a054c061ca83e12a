"""Declarations in PTX text: variables, parameters, registers, initial values, pragmas.

Source: PTX ISA, "State Spaces, Types, and Variables".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from warploom.core.types import OPAQUE, PRED, TYPES, ScalarType
from warploom.isa.instruction import Immediate, Space, Symbol
from warploom.ptx.banks import BANKED, split_bank
from warploom.ptx.constants import constant, integer, integer_literal, offset
from warploom.ptx.cursor import Cursor
from warploom.ptx.debug import string
from warploom.ptx.module import Initializer, Masked, Variable
from warploom.ptx.names import PARTS, Names
from warploom.ptx.samplers import sampler_settings
from warploom.ptx.scopes import MOST_REGISTERS, RegisterRange

SPACES = {
    f".{name}": Space(name) for name in ["reg", "param", "const", "global", "local", "shared"]
}
LINKAGES = frozenset({".extern", ".visible", ".weak", ".common"})
VECTORS = {".v2": 2, ".v4": 4}
MOST_VECTOR_BITS = 128
TEXTURE_SPACE = ".tex"
LAST_TEXTURE_SPACE = (1, 4)
STATIC = frozenset({Space.GLOBAL, Space.CONST})
"""State spaces whose variables live as long as their module, wherever they are declared."""


def starts_variable(text: str) -> bool:
    """Returns whether a token names a state space, perhaps with a bank."""
    return text in SPACES or text == TEXTURE_SPACE or BANKED.fullmatch(text) is not None


def begins_declaration(text: str) -> bool:
    """Returns whether a token begins a directive of a module that is not one of functions, too."""
    other = (".entry", ".func", ".file", ".section", ".alias", ".tex")
    return text in LINKAGES or text in other or starts_variable(text)


def linkage(cursor: Cursor) -> str:
    """Return a linkage directive without its dot, "" where none comes next."""
    return cursor.take()[1:] if cursor.text in LINKAGES else ""


def skip_attribute(cursor: Cursor) -> None:
    """Step past `.attribute(...)`: managed and unified memory look alike to a kernel."""
    if cursor.accept(".attribute"):
        cursor.expect("(")
        depth = 1
        while depth:
            text = cursor.take()
            if not text:
                raise cursor.wrong("`)`")
            depth += {"(": 1, ")": -1}.get(text, 0)


def scalar_type(cursor: Cursor, opaque: dict[str, ScalarType] | None = None) -> ScalarType:
    """Return a type, or one of the opaque ones, which must come next."""
    name = cursor.text[1:] if cursor.text.startswith(".") else ""
    found = TYPES.get(name) or (opaque or {}).get(name)
    if found is None:
        raise cursor.wrong("a type such as .u32")
    cursor.at += 1
    return found


MOST_ALIGNMENT = 1 << 32


def alignment(cursor: Cursor) -> int:
    """`.align n`, 0 where it is left out."""
    if not cursor.accept(".align"):
        return 0
    at = cursor.at
    align = integer(cursor, "an alignment in bytes")
    if not 0 < align < MOST_ALIGNMENT or align & (align - 1):
        raise cursor.error("an alignment must be a power of two that fits in 32 bits", at)
    return align


def variables(cursor: Cursor, names: Names) -> list[Variable]:
    """Return one declaration with its semicolon: `.shared .align 4 .b8 a[16], b;`."""
    first = _variable(cursor, names)
    found = [first]
    while cursor.accept(","):
        found.append(_declarator(cursor, names, first))
    cursor.expect(";")
    return found


def parameters(cursor: Cursor, names: Names) -> tuple[Variable, ...]:
    """Parameters in parentheses."""
    cursor.expect("(")
    found: list[Variable] = []
    if cursor.accept(")"):
        return ()
    while True:
        found.extend(_by_part(_variable(cursor, names)))
        if cursor.accept(")"):
            return tuple(found)
        if not cursor.accept(","):
            raise cursor.wrong("`,` or `)`")


def _by_part(parameter: Variable) -> Iterator[Variable]:
    """Yields a parameter; one that is a vector of registers as a parameter for each part."""
    if parameter.space is not Space.REG or parameter.vector == 1:
        yield parameter
        return
    for part in PARTS[: parameter.vector]:
        yield replace(parameter, name=f"{parameter.name}.{part}", vector=1)


def _variable(cursor: Cursor, names: Names) -> Variable:
    """Return a variable: everything before its name, then the name and what follows it."""
    link = linkage(cursor)
    name, bank = split_bank(cursor, names)
    if name == TEXTURE_SPACE:
        return _texture(cursor, names, link)
    space = SPACES.get(name)
    if space is None:
        raise cursor.wrong("a state space such as .global or .param")
    cursor.at += 1
    skip_attribute(cursor)
    align = alignment(cursor)
    vector = VECTORS.get(cursor.text, 1)
    if vector > 1:
        cursor.at += 1
    type = scalar_type(cursor, OPAQUE)
    pointer_space, pointer_align = _pointer(cursor)
    shared_part = Variable("", space, type, (), vector, align, link)
    shared_part = replace(
        shared_part, pointer_space=pointer_space, pointer_align=pointer_align, bank=bank
    )
    return _declarator(cursor, names, shared_part)


def _texture(cursor: Cursor, names: Names, link: str) -> Variable:
    """Return a texture as PTX declared it before version 1.5: `.tex .u32 t;` (PTX ISA, "Texture
    State Space (deprecated)")."""
    if names.version > LAST_TEXTURE_SPACE:
        message = "`.tex` was removed after PTX 1.4; write `.global .texref`"
        raise cursor.error(message, cursor.at)
    cursor.expect(TEXTURE_SPACE)
    at = cursor.at
    if scalar_type(cursor).name not in ("u32", "u64"):
        raise cursor.error("a variable in .tex must be .u32 or .u64", at)
    texture = Variable("", Space.GLOBAL, OPAQUE["texref"], linkage=link)
    name_at = cursor.at
    declared = _declarator(cursor, names, texture)
    if declared.shape:
        raise cursor.error("a texture in the .tex state space must not be an array", name_at)
    return declared


def _pointer(cursor: Cursor) -> tuple[Space | None, int]:
    """`.ptr .space .align n` behind a parameter's type; without a space it points anywhere."""
    if not cursor.accept(".ptr"):
        return None, 0
    space = SPACES.get(cursor.text, Space.GENERIC)
    if space is not Space.GENERIC:
        cursor.at += 1
    return space, alignment(cursor)


def _declarator(cursor: Cursor, names: Names, common: Variable) -> Variable:
    at = cursor.at
    if cursor.accept("_"):  # a prototype's parameters need no names
        name = "_"
    elif common.space is Space.REG:
        written = cursor.name("a name")
        name = names.declare_register(written, common.type, common.vector, at)
    else:
        name = names.declare(cursor.name("a name"), at, static=common.space in STATIC)
    shape = _shape(cursor)
    initial = None
    if cursor.accept("="):
        settings = common.type.name in OPAQUE and cursor.text == "{"
        initial = sampler_settings(cursor) if settings else initializer(cursor, names)
    if shape and shape[0] is None and isinstance(initial, tuple):
        shape = (len(initial), *shape[1:])
    made = replace(common, name=name, shape=shape, initial=initial, span=cursor.span(at))
    names.variables[name] = made
    return made


def _shape(cursor: Cursor) -> tuple[int | None, ...]:
    shape: list[int | None] = []
    while cursor.accept("["):
        at = cursor.at
        length = None if cursor.text == "]" else integer(cursor, "an array length")
        if length is None and shape:
            raise cursor.error("only the outermost length of an array may be omitted", at)
        if length is not None and length < 0:
            raise cursor.error("an array length must not be negative", at)
        cursor.expect("]")
        shape.append(length)
    return tuple(shape)


def initializer(cursor: Cursor, names: Names) -> Initializer:
    """Return a number, the address of a symbol, or a list of these in braces."""
    if not cursor.accept("{"):
        return _initial_value(cursor, names)
    found: list[Initializer] = []
    while not cursor.accept("}"):
        found.append(initializer(cursor, names))
        if cursor.text != "}":
            cursor.expect(",")
    return tuple(found)


def _initial_value(cursor: Cursor, names: Names) -> Immediate | Symbol | Masked:
    """Return a number, the address of a symbol, or part of one: `0xff00(x)`."""
    at = cursor.at
    if cursor.text == "generic" or names.get(cursor.text) is not None:
        return _initial_symbol(cursor, names)
    mask = integer_literal(cursor.text)
    if mask is None or cursor.next_text != "(":
        return constant(cursor)
    cursor.at += 2
    symbol = _initial_symbol(cursor, names)
    cursor.expect(")")
    return Masked(symbol, mask.bits, cursor.span(at, cursor.at))


def _initial_symbol(cursor: Cursor, names: Names) -> Symbol:
    """`x + 4` or `generic(x) + 4`, which is the same: a generic address of global memory is the
    plain one."""
    at = cursor.at
    added = 0
    in_generic = cursor.accept("generic")
    if in_generic:
        cursor.expect("(")
    name_at = cursor.at
    written = cursor.name("the name of a variable or a function")
    known = names.get(written)
    if not isinstance(known, str):
        raise cursor.error(names.undeclared(written), name_at)
    if in_generic:
        added = offset(cursor)
        cursor.expect(")")
    return Symbol(known, added + offset(cursor), cursor.span(at, cursor.at))


def registers(cursor: Cursor, names: Names) -> None:
    """`.reg .b32 %r<6>, x;` or `.reg .v4 .f32 v;`."""
    start = cursor.at
    cursor.expect(".reg")
    alignment(cursor)
    vector = VECTORS.get(cursor.text, 1)
    if vector > 1:
        cursor.at += 1
    type = scalar_type(cursor)
    if vector > 1 and (type is PRED or vector * type.bits > MOST_VECTOR_BITS):
        raise cursor.error("a vector must have at most 128 bits and no predicates", start)
    while True:
        at = cursor.at
        name = cursor.name("a register's name")
        if cursor.accept("<"):
            count = integer_literal(cursor.take())
            if count is None or count.bits > MOST_REGISTERS:
                message = f"expected the number of registers to declare, at most {MOST_REGISTERS}"
                raise cursor.error(message, cursor.at - 1)
            cursor.expect(">")
            names.declare_registers(name, RegisterRange(count.bits, type, vector, at))
        else:
            names.declare_register(name, type, vector, at)
        if not cursor.accept(","):
            break
    cursor.expect(";")


def pragma(cursor: Cursor) -> list[str]:
    """`.pragma "text", ...;`."""
    cursor.expect(".pragma")
    found = [string(cursor)]
    while cursor.accept(","):
        found.append(string(cursor))
    cursor.expect(";")
    return found


def numbers(cursor: Cursor) -> tuple[int, ...]:
    """Integers with commas between, perhaps none."""
    if not cursor.text[:1].isdigit():
        return ()
    found = [integer(cursor)]
    while cursor.accept(","):
        found.append(integer(cursor))
    return tuple(found)
