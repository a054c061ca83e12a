"""Instructions in PTX text: the opcode, looked up in the instruction tables, and the operands.

Source: PTX ISA, "Instruction Statements"; for calls, "Control Flow Instructions: call".
"""

from __future__ import annotations

from difflib import get_close_matches
from itertools import islice

from warploom.core.errors import UnsupportedInstruction
from warploom.core.source import Location, Span
from warploom.core.types import TYPES
from warploom.isa import ops as ops  # importing it fills the instruction tables
from warploom.isa.instruction import (
    Decorated,
    Guard,
    Indexed,
    Instruction,
    Operand,
    Register,
    Sum,
    Vector,
)
from warploom.isa.kinds import OpKind
from warploom.isa.spec import FORMS, Operation, UnknownOpcode, decode
from warploom.ptx.banks import check_bank, split_bank
from warploom.ptx.cursor import NAME, Cursor
from warploom.ptx.indexing import sum_of, with_computed_operands
from warploom.ptx.names import Names
from warploom.ptx.old_forms import FLUSHING_END, UNROUNDED, flushing, rounded
from warploom.ptx.operands import operand, operands_until, register
from warploom.ptx.spaces import in_space_of_variable


def instruction(cursor: Cursor, names: Names, location: Location | None) -> tuple[Instruction, ...]:
    """Return one instruction with its guard and its semicolon, behind those that it needs and the
    text leaves out."""
    guard = _guard(cursor, names) if cursor.text == "@" else None
    at = cursor.at
    text = cursor.texts[at]
    bank = None
    if "[" in text:
        text, bank = split_bank(cursor, names)
    if text in UNROUNDED:
        text = rounded(cursor, names, text)
    try:
        operation = decode(text)
    except UnknownOpcode as unknown:
        raise _unknown(cursor, unknown) from None
    if operation.kind is OpKind.ABSENT:
        message = f"`{text}` is not supported: {operation.spec.doc}"
        raise _unsupported(cursor, at, 0, message)
    if names.target < FLUSHING_END:
        operation = flushing(operation)
    cursor.at = at + 1
    span = Span(cursor.lines[at], cursor.columns[at], len(text), cursor.tokens.source)
    operands = _call(cursor, names) if operation.kind is OpKind.CALL else _operands(cursor, names)
    operation = in_space_of_variable(operation, operands, names)
    if bank is not None:
        check_bank(cursor, names, bank, operands, at)
    if operation.spec.has_implicit:
        operands = _with_implicit(operation, operands, names)
    if not UNFINISHED.isdisjoint(map(type, operands)):
        operation, operands = _undecorated(cursor, operation, operands)
        return with_computed_operands(
            Instruction(operation, operands, guard, span, location), names
        )
    return (Instruction(operation, operands, guard, span, location),)


UNFINISHED = frozenset({Decorated, Indexed, Sum})
"""Operands that a finished instruction does not have."""


ENDING = frozenset({",", ";"})
"""What stands behind an operand."""


def _guard(cursor: Cursor, names: Names) -> Guard:
    cursor.expect("@")
    negated = cursor.accept("!")
    return Guard(register(cursor, names), negated)


def _operands(cursor: Cursor, names: Names) -> tuple[Operand, ...]:
    texts = cursor.texts
    if texts[cursor.at] == ";":
        cursor.at += 1
        return ()
    found: list[Operand] = []
    while True:
        at = cursor.at
        meaning = names.get(texts[at])
        if type(meaning) is Register and texts[at + 1] in ENDING:  # the most frequent by far
            span = Span(cursor.lines[at], cursor.columns[at], len(texts[at]), cursor.tokens.source)
            found.append(Register(meaning.name, meaning.type, span))
            cursor.at = at + 1
        else:
            found.append(operand(cursor, names))
            if texts[cursor.at] == "+" and isinstance(found[-1], Register):
                found[-1] = sum_of(found[-1], cursor)
        text = texts[cursor.at]
        if text not in ENDING:
            raise cursor.wrong("`,` or `;`")
        cursor.at += 1
        if text == ";":
            return tuple(found)


def _call(cursor: Cursor, names: Names) -> tuple[Operand, ...]:
    """`(returns), callee, (arguments), targets`; all but the callee may be left out."""
    returns = Vector(())
    if cursor.text == "(":
        returns = _list(cursor, names)
        cursor.expect(",")
    callee = operand(cursor, names)
    arguments = Vector(())
    targets: tuple[Operand, ...] = ()
    if cursor.accept(","):
        if cursor.text == "(":
            arguments = _list(cursor, names)
            if cursor.accept(","):
                targets = (operand(cursor, names),)
        else:
            targets = (operand(cursor, names),)
    cursor.expect(";")
    return (returns, callee, arguments, *targets)


def _list(cursor: Cursor, names: Names) -> Vector:
    at = cursor.at
    cursor.expect("(")
    # A vector of registers is a parameter for each part, as in `declarations.parameters`.
    passed: list[Operand] = []
    for each in operands_until(")", cursor, names):
        passed.extend(each.elements if isinstance(each, Vector) else (each,))
    return Vector(tuple(passed), cursor.span(at, cursor.at))


def _with_implicit(
    operation: Operation, operands: tuple[Operand, ...], names: Names
) -> tuple[Operand, ...]:
    """Return the operands with those that no text shows in their places."""
    given = iter(operands)
    found: list[Operand] = []
    for spec in operation.spec.operands:
        if spec.implicit:
            found.append(names.implicit_register(spec.name, TYPES[spec.type]))
        else:
            found.extend(islice(given, 1))
    return (*found, *given)


def _undecorated(
    cursor: Cursor, operation: Operation, operands: tuple[Operand, ...]
) -> tuple[Operation, tuple[Operand, ...]]:
    """Plain registers, and the operation that knows what stood at them."""
    plain = list(operands)
    parts: list[str] = []
    signs: list[str] = []
    for index, (spec, given) in enumerate(zip(operation.spec.operands, operands, strict=False)):
        if not isinstance(given, Decorated):
            continue
        plain[index] = given.register
        parts += [f".{spec.name}={given.part}"] if given.part else []
        signs += [f".-{spec.name}"] if given.negated else []
        try:
            decode(operation.text + "".join((*parts, *signs)))
        except UnknownOpcode:
            message = (
                f"`{operation.text}` does not accept a suffix such as `.b0`, or a minus sign, on "
                "this register: use the plain register, or a suffix that the instruction accepts"
            )
            raise cursor.unsupported(message, given.span) from None
    return decode(operation.text + "".join((*parts, *signs))), tuple(plain)


def _unknown(cursor: Cursor, unknown: UnknownOpcode) -> Exception:
    """Return the error for an opcode that no table has, pointing at the part to blame."""
    at, part = cursor.at, unknown.part
    if not NAME.match(unknown.text):
        return cursor.wrong("an instruction, a directive or a label")
    name = unknown.text.partition(".")[0]
    if part == 0:
        near = get_close_matches(name, FORMS, 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return _unsupported(cursor, at, 0, f"`{unknown.text}` is not a known instruction{hint}")
    choices = ", ".join(f".{choice}" for choice in unknown.expected) or "nothing more"
    parts = unknown.text.split(".")
    if part < len(parts):
        message = f"`.{parts[part]}` is not valid here in `{unknown.text}`"
    else:
        message = f"`{unknown.text}` needs more modifiers"
    return _unsupported(cursor, at, part, f"{message}; valid here: {choices}")


def _unsupported(cursor: Cursor, at: int, part: int, message: str) -> UnsupportedInstruction:
    """Return an error at one dotted part of the opcode at token `at` (behind it where it has
    fewer)."""
    text = cursor.texts[at]
    parts = text.split(".")
    before = min(len(text), sum(len(p) + 1 for p in parts[:part]))
    length = len(parts[part]) if part < len(parts) else 1
    whole = cursor.span(at)
    return cursor.unsupported(message, Span(whole.line, whole.column + before, length, whole.text))
