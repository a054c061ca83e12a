"""Operands of instructions: registers, symbols, numbers, addresses, vectors and pairs.

Source: PTX ISA, "Instruction Operands".
"""

from __future__ import annotations

import re

from warploom.core.source import Span
from warploom.isa.instruction import (
    Address,
    Decorated,
    Immediate,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from warploom.isa.special import SPECIAL_REGISTERS
from warploom.ptx.constants import constant, integer, offset
from warploom.ptx.cursor import NAME, Cursor
from warploom.ptx.indexing import indexed
from warploom.ptx.names import PARTS, Names

PART = re.compile(r"[bh][0-7]{1,4}")
"""What may stand behind a register: which bytes or halves (PTX ISA, "Video Instructions")."""


def operand(cursor: Cursor, names: Names) -> Operand:
    """Return the operand that comes next."""
    at = cursor.at
    text = cursor.texts[at]
    known = names.get(text)
    if type(known) is Register:
        cursor.at = at + 1
        span = Span(cursor.lines[at], cursor.columns[at], len(text), cursor.tokens.source)
        register = Register(known.name, known.type, span)
        return register if cursor.texts[at + 1] != "|" else _pair(cursor, names, register, at)
    if isinstance(known, tuple):
        cursor.at = at + 1
        span = cursor.span(at)
        return Vector(tuple(Register(r.name, r.type, span) for r in known), span)
    if known is not None:
        return _symbol(cursor, names) if cursor.next_text != "[" else indexed(cursor, names)
    return _other(cursor, names)


def _other(cursor: Cursor, names: Names) -> Operand:
    at, text = cursor.at, cursor.text
    if text == "[":
        return _address(cursor, names)
    if text == "{":
        return _vector(cursor, names)
    if text == "_":
        cursor.at += 1
        sink = Sink(cursor.span(at))
        return sink if cursor.text != "|" else _pair(cursor, names, sink, at)
    if text == "!" and isinstance(names.get(cursor.next_text), Register):
        cursor.at += 1
        return Negated(register(cursor, names), cursor.span(at, cursor.at))
    if text in SPECIAL_REGISTERS or f"{text.removesuffix('.w')}.x" in SPECIAL_REGISTERS:
        cursor.at += 1
        return _special(text, cursor.span(at))
    if text == "-" and isinstance(names.get(cursor.next_text.partition(".")[0]), Register):
        cursor.at += 1
        inner = operand(cursor, names)
        if isinstance(inner, Decorated):
            return Decorated(inner.register, inner.part, True, cursor.span(at, cursor.at))
        assert isinstance(inner, Register)
        return Decorated(inner, "", True, cursor.span(at, cursor.at))
    if NAME.match(text) and text != "WARP_SZ":
        base, _, part = text.rpartition(".")
        known = names.get(base)
        if isinstance(known, Register) and PART.fullmatch(part):
            cursor.at += 1
            span = cursor.span(at)
            return Decorated(Register(known.name, known.type, span), part, False, span)
        raise cursor.error(names.undeclared(text), at)
    if not text or text in ",;)]}":
        raise cursor.wrong("an operand")
    return constant(cursor)


def _special(name: str, span: Span) -> Operand:
    """Return a special register; one that is a vector, such as `%tid`, as its parts, of which the
    fourth is always 0 (PTX ISA, "Special Registers: %tid")."""
    if name in SPECIAL_REGISTERS:
        return Special(name, span)
    if name.endswith(".w"):
        return Immediate(0, 0, span)
    return Vector(tuple(_special(f"{name}.{part}", span) for part in PARTS), span)


def register(cursor: Cursor, names: Names) -> Register:
    """Return a register, which must come next."""
    at, text = cursor.at, cursor.text
    known = names.get(text)
    if not isinstance(known, Register):
        if NAME.match(text) and known is None:
            raise cursor.error(names.undeclared(text), at)
        raise cursor.wrong("a register")
    cursor.at += 1
    return Register(known.name, known.type, cursor.span(at))


def _pair(cursor: Cursor, names: Names, first: Operand, at: int) -> Pair:
    cursor.expect("|")
    second_at = cursor.at
    second = Sink(cursor.span(second_at)) if cursor.accept("_") else register(cursor, names)
    return Pair(first, second, cursor.span(at, cursor.at))


def _symbol(cursor: Cursor, names: Names) -> Symbol:
    at = cursor.at
    name = str(names.get(cursor.take()))
    added = offset(cursor)
    return Symbol(name, added, cursor.span(at, cursor.at))


def _vector(cursor: Cursor, names: Names) -> Vector | Pair:
    at = cursor.at
    cursor.expect("{")
    elements = operands_until("}", cursor, names)
    vector = Vector(elements, cursor.span(at, cursor.at))
    return vector if cursor.text != "|" else _pair(cursor, names, vector, at)


def operands_until(closing: str, cursor: Cursor, names: Names) -> tuple[Operand, ...]:
    """Operands with commas between, and the token that closes them."""
    if cursor.accept(closing):
        return ()
    found = [operand(cursor, names)]
    while not cursor.accept(closing):
        if not cursor.accept(","):
            raise cursor.wrong(f"`,` or `{closing}`")
        found.append(operand(cursor, names))
    return tuple(found)


def _address(cursor: Cursor, names: Names) -> Address | Vector:
    """`[base + offset]`; `[base, more ...]` (a texture or a tensor and its coordinates) becomes a
    Vector that begins with the Address."""
    at = cursor.at
    cursor.expect("[")
    base_at = cursor.at
    known = names.get(cursor.text)
    base: Register | Symbol | None = None
    if isinstance(known, Register):
        base = register(cursor, names)
    elif isinstance(known, str):
        cursor.at += 1
        base = Symbol(known, 0, cursor.span(base_at))
    elif NAME.match(cursor.text):
        raise cursor.error(names.undeclared(cursor.text), base_at)
    added = offset(cursor) if base is not None else integer(cursor, "an address")
    if cursor.text == ",":
        first = Address(base, added, cursor.span(base_at, cursor.at))
        cursor.at += 1
        rest = operands_until("]", cursor, names)
        return Vector((first, *rest), cursor.span(at, cursor.at))
    cursor.expect("]")
    # `.unified` behind an address only promises where it points (PTX ISA, ld); nobody needs it.
    cursor.accept(".unified")
    return Address(base, added, cursor.span(at, cursor.at))
