"""From a `Module` back to PTX text that parses to an equal module.

Spans and source locations are not written: they take no part in equality.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, zip_longest

from warploom.core.types import ScalarType
from warploom.isa.instruction import (
    Address,
    Decorated,
    Element,
    Immediate,
    Indexed,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Space,
    Special,
    Sum,
    Symbol,
    Vector,
)
from warploom.isa.kinds import OpKind
from warploom.ptx.module import (
    Function,
    Initializer,
    Label,
    Masked,
    Module,
    Pragma,
    Prototype,
    Statement,
    Targets,
    Variable,
)
from warploom.ptx.names import PARTS


def print_module(module: Module) -> str:
    """PTX text of a module."""
    major, minor = module.version
    lines = [f".version {major}.{minor}"]
    if module.target:
        lines.append(f".target {', '.join(module.target)}")
    lines.append(f".address_size {module.address_size}")
    lines.extend(f".pragma {_quoted(text)};" for text in module.pragmas)
    lines.extend(_declarations(module))
    if "debug" in module.target:  # it announces sections, which a module does not keep
        lines.append(".section .debug_str { }")
    return "\n".join(lines) + "\n"


def _declarations(module: Module) -> Iterator[str]:
    """Variables and functions, each behind what it names: a variable comes as early as the
    functions in its initial value let it."""
    functions = {f.name for f in module.functions}
    printed: set[str] = set()
    pending = list(module.variables)
    for function in (*module.functions, None):
        while pending and not (_named(pending[0].initial) & functions) - printed:
            yield f"{_variable(pending.pop(0))};"
        if function is not None:
            yield from _function(function)
            printed.add(function.name)


def _named(initial: Initializer | None) -> set[str]:
    """Return the symbols in an initial value."""
    match initial:
        case Symbol(name) | Masked(Symbol(name)):
            return {name}
        case tuple():
            return {name for part in initial for name in _named(part)}
        case _:
            return set()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# ---- functions ----------------------------------------------------------------------------------


def _function(function: Function) -> Iterator[str]:
    yield _heading(function)
    if function.body is None:
        yield ";"
        return
    yield "{"
    signature = (*function.returns, *function.parameters, *_implicit(function))
    shown = {one.name.partition(".")[0] for one in signature}
    declared = [r for r in function.registers if r.name.partition(".")[0] not in shown]
    yield from (f"\t{line}" for line in _registers(declared))
    yield from (f"\t{_statement(s)}" for s in function.body)
    yield "}"


def _implicit(function: Function) -> Iterator[Register]:
    """Yield the registers that instructions use and no text shows."""
    for made in function.instructions:
        if made.operation.spec.has_implicit:
            names = {form.name for form in made.operation.spec.operands if form.implicit}
            yield from (o for o in made.operands if isinstance(o, Register) and o.name in names)


def _heading(function: Function) -> str:
    """Everything before the body."""
    words = [f".{function.linkage}"] if function.linkage else []
    words.append(".entry" if function.is_entry else ".func")
    if function.returns:
        words.append(_parameters(function.returns))
    words.append(function.name + _parameters(function.parameters))
    if function.noreturn:
        words.append(".noreturn")
    words.extend(_directive(name, values) for name, values in function.directives)
    return " ".join(words)


def _directive(name: str, values: tuple[int | str, ...]) -> str:
    if name == "pragma":
        return f".pragma {', '.join(_quoted(str(v)) for v in values)};"
    return f".{name} {', '.join(map(str, values))}".rstrip()


def _parameters(parameters: Iterable[Variable]) -> str:
    return f"({', '.join(map(_variable, _with_vectors(parameters)))})"


def _with_vectors(parameters: Iterable[Variable]) -> Iterator[Variable]:
    """Yields parameters, those that are the parts of one vector of registers as this vector."""
    for stem, group in groupby(parameters, lambda one: one.name.partition(".")[0]):
        parts = list(group)
        if "." in parts[0].name:
            yield replace(parts[0], name=stem, vector=len(parts))
        else:
            yield from parts


def _variable(variable: Variable) -> str:
    """Return a declaration without its semicolon."""
    words = [f".{variable.linkage}"] if variable.linkage else []
    words.append(f".{variable.space.value}" + f"[{variable.bank}]" * bool(variable.bank))
    if variable.align:
        words.append(f".align {variable.align}")
    if variable.vector > 1:
        words.append(f".v{variable.vector}")
    words.append(str(variable.type))
    if variable.pointer_space is not None:
        words.append(".ptr")
        if variable.pointer_space is not Space.GENERIC:
            words.append(f".{variable.pointer_space.value}")
        if variable.pointer_align:
            words.append(f".align {variable.pointer_align}")
    shape = "".join(f"[{'' if n is None else n}]" for n in variable.shape)
    words.append(variable.name + shape)
    if variable.initial is not None:
        words.append(f"= {_initial(variable.initial)}")
    return " ".join(words)


def _initial(initial: Initializer) -> str:
    match initial:
        case Masked(symbol, mask):
            return f"{mask:#x}({print_operand(symbol)})"
        case tuple():
            return f"{{{', '.join(_initial(part) for part in initial)}}}"
        case _:
            return print_operand(initial)


def _registers(registers: list[Register]) -> Iterator[str]:
    """Declarations that declare these registers in this order; `%r0 %r1 %r2` in a row become
    `%r<3>`, the parts of a vector its name."""
    at = 0
    while at < len(registers):
        first = registers[at]
        base, _, part = first.name.partition(".")
        if part:
            count = _run(registers, at, first.type, [f"{base}.{p}" for p in PARTS])
            yield f".reg .v{count} {first.type} {base};"
        else:
            prefix = first.name.removesuffix("0") if re.search(r"(?<!\d)0$", first.name) else ""
            rest = range(len(registers) - at)
            count = _run(registers, at, first.type, (f"{prefix}{n}" for n in rest)) if prefix else 0
            yield f".reg {first.type} {f'{prefix}<{count}>' if prefix else base};"
        at += max(1, count)


def _run(registers: list[Register], at: int, type: ScalarType, names: Iterable[str]) -> int:
    """Returns how many registers from index `at` on have these names and this type."""
    count = 0
    for register, name in zip(registers[at:], names, strict=False):
        if register.name != name or register.type != type:
            break
        count += 1
    return count


# ---- statements ---------------------------------------------------------------------------------


def _statement(statement: Statement) -> str:
    match statement:
        case Instruction():
            return print_instruction(statement)
        case Label(name):
            return f"{name}:"
        case Variable():
            return f"{_variable(statement)};"
        case Pragma(text):
            return f".pragma {_quoted(text)};"
        case Targets(name, names, calls):
            kind = ".calltargets" if calls else ".branchtargets"
            return f"{name}: {kind} {', '.join(names)};"
        case Prototype(name, returns, parameters, noreturn):
            words = [f"{name}: .callprototype"]
            if returns:
                words.append(_parameters(returns))
            words.append(f"_ {_parameters(parameters)}")
            if noreturn:
                words.append(".noreturn")
            return f"{' '.join(words)};"


def print_instruction(instruction: Instruction) -> str:
    guard = ""
    if instruction.guard is not None:
        guard = f"@{'!' if instruction.guard.negated else ''}{instruction.guard.register.name} "
    operation = instruction.operation
    if operation.kind is OpKind.CALL:
        return f"{guard}{operation.text} {_call(instruction.operands)};"
    shown = ", ".join(_decorated(instruction))
    return f"{guard}{operation.opcode} {shown}".rstrip() + ";"


def _decorated(instruction: Instruction) -> Iterator[str]:
    """Yield the operands that the text shows, with what the operation says to stand at them."""
    operation = instruction.operation
    forms = (form for form in operation.spec.operands if not form.implicit)
    for operand, form in zip_longest(instruction.written, forms):
        if operand is not None:
            before, behind = operation.decorations.get(form.name if form else "", ("", ""))
            yield f"{before}{print_operand(operand)}{behind}"


def _call(operands: tuple[Operand, ...]) -> str:
    returns, callee, arguments, *targets = operands
    assert isinstance(returns, Vector)
    assert isinstance(arguments, Vector)
    parts = [f"({_operands(returns.elements)})"] if returns.elements else []
    parts.append(print_operand(callee))
    if arguments.elements:
        parts.append(f"({_operands(arguments.elements)})")
    return ", ".join([*parts, *map(print_operand, targets)])


def _operands(operands: Iterable[Operand]) -> str:
    return ", ".join(print_operand(o) for o in operands)


def print_operand(operand: Operand) -> str:
    """Returns the text of an operand."""
    match operand:
        case Register(name) | Special(name):
            return name
        case Immediate(value, float_bits):
            return _immediate(value, float_bits)
        case Symbol(name, offset):
            return f"{name}+{offset}" if offset else name
        case Address():
            return f"[{_address(operand)}]"
        case Vector((Address() as first, *rest)):
            return f"[{', '.join([_address(first), *map(print_operand, rest)])}]"
        case Vector(elements):
            return f"{{{_operands(elements)}}}"
        case Pair(first, second):
            return f"{print_operand(first)}|{print_operand(second)}"
        case Negated(register):
            return f"!{register.name}"
        case Element(register, index):
            return f"{register.name}.{PARTS[index]}"
        case Sink():
            return "_"
        case Indexed(symbol, index, scale):
            number = str(symbol.offset // scale)
            return f"{symbol.name}[{f'{index.name} + {number}' if index else number}]"
        case Sum(register, added):
            return f"{register.name} + {added}"
        case Decorated(register, part, negated):
            return f"{'-' * negated}{register.name}{f'.{part}' * bool(part)}"


def _immediate(value: int, float_bits: int) -> str:
    if float_bits:
        return f"0{'f' if float_bits == 32 else 'd'}{value:0{float_bits // 4}X}"
    # A literal of 2^63 is unsigned, and so would its negative be.
    return str(value) if value != -(1 << 63) else f"{value + 1}-1"


def _address(address: Address) -> str:
    if address.base is None:
        return str(address.offset)
    return f"{address.base.name}+{address.offset}" if address.offset else address.base.name
