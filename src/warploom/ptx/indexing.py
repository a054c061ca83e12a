"""Operands that are computed before their instruction: `a[3]`, `a[r]`, `a[r + 1]`, `r + 1`.

Elements of arrays stand for an address, and are read as the address that they stand for. One that a
register chooses, and the sum of a register and a constant, are computed by instructions of their
own, which are counted as such: ptxas, too, emits an IADD3 for `st.global.u32 [p], r + 1`. It scales
by the elements' type whatever the dimensions; so only arrays of one dimension of scalars are
indexed here. Source: PTX ISA, "Arrays as Operands"; the manual does not show sums of registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from warploom.core.types import B32, TYPES, Kind, ScalarType
from warploom.isa.instruction import Address, Immediate, Indexed, Instruction, Register, Sum, Symbol
from warploom.isa.spec import decode
from warploom.ptx.constants import integer, offset
from warploom.ptx.cursor import Cursor
from warploom.ptx.names import Names


def indexed(cursor: Cursor, names: Names) -> Indexed:
    """`a[...]`, which comes next."""
    at = cursor.at
    name = str(names.get(cursor.take()))
    variable = names.variables.get(name)
    if variable is None or len(variable.shape) != 1 or variable.vector != 1:
        message = "only one-dimensional arrays of scalars can be indexed"
        raise cursor.error(f"{message}; write `[{cursor.texts[at]} + bytes]`", at)
    cursor.expect("[")
    index = None
    if isinstance(names.get(cursor.text), Register):
        index = _index(cursor, names)
        number = offset(cursor)
    else:
        number = integer(cursor, "a number, a register, or a register plus a number")
    cursor.expect("]")
    scale, span = variable.type.bytes, cursor.span(at, cursor.at)
    return Indexed(Symbol(name, number * scale, span), index, scale, span)


def _index(cursor: Cursor, names: Names) -> Register:
    at, known = cursor.at, names.get(cursor.take())
    assert isinstance(known, Register)
    if not known.type.is_integer or known.type.bits not in (32, names.address_bits):
        message = f"`{known.name}` ({known.type}) cannot be an index; use a 32-bit integer register"
        raise cursor.error(message, at)
    return Register(known.name, known.type, cursor.span(at))


def with_computed_operands(made: Instruction, names: Names) -> tuple[Instruction, ...]:
    """Return an instruction with the addresses of elements and the registers of sums in their
    places, behind the instructions that compute these."""
    before: list[Instruction] = []
    plain = list(made.operands)
    for place, (spec, given) in enumerate(zip(made.operation.spec.operands, plain, strict=False)):
        if isinstance(given, Sum):
            if spec.written:
                message = (
                    f"`{given.register.name} + {given.added}` is not a register, so it cannot be "
                    "a destination"
                )
                raise names.cursor.unsupported(message, given.span)
            target = replace(names.temporary("%sum", given.register.type), span=given.span)
            plain[place] = target
            before.append(_addition(given, target, made))
        if not isinstance(given, Indexed):
            continue
        type = made.operation.type_of(spec)
        if spec.type != "address" and type is None:
            continue  # no place for an address, which the verifier will say
        found: Register | Symbol = given.symbol
        if given.index is not None:
            found = names.temporary(
                "%element", B32 if type and type.bits == 32 else _pointer(names)
            )
            before += _steps(given, given.index, found, made)
        plain[place] = _as_address(found) if spec.type == "address" else found
    return (*before, replace(made, operands=tuple(plain)))


def sum_of(register: Register, cursor: Cursor) -> Sum:
    """`+ n` behind a register, which comes next. As ptxas does, refuses registers that are no
    integers of 16 to 64 bits."""
    at = cursor.at
    added = offset(cursor)
    span = cursor.span(at - 1, cursor.at)
    type = register.type
    if type.kind in (Kind.FLOAT, Kind.PREDICATE) or type.bits not in (16, 32, 64):
        message = f"`{register.name}` ({type}) cannot have an offset here; use an add instruction"
        raise cursor.error(message, at - 1)
    return Sum(register, added, span)


def _addition(given: Sum, target: Register, made: Instruction) -> Instruction:
    """Return `target` = a register plus a constant."""
    add = decode(f"add.u{target.type.bits}")
    return replace(
        made, operation=add, operands=(target, given.register, Immediate(given.added)), guard=None
    )


def _pointer(names: Names) -> ScalarType:
    return TYPES[f"b{names.address_bits}"]


def _as_address(found: Register | Symbol) -> Address:
    if isinstance(found, Register):
        return Address(found, 0, found.span)
    return Address(replace(found, offset=0), found.offset, found.span)


def _steps(
    given: Indexed, index: Register, target: Register, made: Instruction
) -> Iterator[Instruction]:
    """`target` = the array's address + `index` * bytes of an element; an index of 32 bits is
    extended by its own signedness."""
    bits = target.type.bits
    kind = "s" if index.type.is_signed else "u"
    wide = index.type.bits < bits
    product = decode(f"mad.{'wide' if wide else 'lo'}.{kind}{index.type.bits}")
    yield replace(
        made, operation=decode(f"mov.u{bits}"), operands=(target, given.symbol), guard=None
    )
    factors = (index, Immediate(given.scale), target)
    yield replace(made, operation=product, operands=(target, *factors), guard=None)
