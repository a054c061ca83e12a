"""Renames the private symbols of modules that are linked, where several modules have the same name.

A name that has no linkage belongs to its module: where another module has it too, the later one is
renamed, in every function and initial value. So are names inside a function that a variable or a
function of another module has: after this a name within the modules means one thing.
Source: PTX ISA, "Linking Directives".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from warploom.isa.instruction import Instruction, Space, Symbol
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
from warploom.ptx.rename import Renaming


def rename_private(modules: Sequence[Module]) -> tuple[Module, ...]:
    """Return the modules, with private symbols renamed such that only shared ones have equal
    names."""
    shared = {name for module in modules for name in shared_names(module)}
    taken = set(shared)
    renamings: list[dict[str, str]] = []
    for module in modules:
        names: dict[str, str] = {}
        for name in dict.fromkeys(one.name for one in (*module.variables, *module.functions)):
            if name not in shared:
                unique = _unique(name, taken)
                taken.add(unique)
                names |= {name: unique} if unique != name else {}
        renamings.append(names)
    pairs = zip(modules, renamings, strict=True)
    return tuple(_module(module, names, taken) for module, names in pairs)


def shared_names(module: Module) -> set[str]:
    """Returns what other modules may mean by its name; a launch asks for every kernel by name."""
    functions = {f.name for f in module.functions if f.linkage or f.is_entry}
    return functions | {v.name for v in module.variables if v.linkage}


def _unique(name: str, taken: set[str]) -> str:
    """`name`, or where it is taken, one made from it."""
    unique, count = name, 0
    while unique in taken:
        count += 1
        unique = f"{name}${count}"
    return unique


def _module(module: Module, names: dict[str, str], taken: set[str]) -> Module:
    variables = tuple(_variable(variable, Renaming(names=names)) for variable in module.variables)
    functions = tuple(_function(function, names, taken) for function in module.functions)
    return replace(module, variables=variables, functions=functions)


def _function(function: Function, names: dict[str, str], taken: set[str]) -> Function:
    """Return a function with the names of its module, and its own ones away from those taken."""
    own = set(_declared(function))
    used = own | taken
    inner: dict[str, str] = {}
    for name in sorted(own & taken):
        inner[name] = _unique(name, used)
        used.add(inner[name])
    meaning = {name: to for name, to in names.items() if name not in own} | inner
    if not meaning and function.name not in names:
        return function
    renaming = Renaming(names=meaning)
    return replace(
        function,
        name=names.get(function.name, function.name),
        parameters=tuple(_variable(p, renaming) for p in function.parameters),
        returns=tuple(_variable(r, renaming) for r in function.returns),
        body=None if function.body is None else tuple(_renamed(function.body, renaming)),
    )


def _declared(function: Function) -> Iterator[str]:
    """Yield the names that a function gives to anything but registers."""
    signature = (*function.parameters, *function.returns)
    yield from (p.name for p in signature if p.space is not Space.REG)
    for statement in function.body or ():
        if isinstance(statement, Label | Variable | Prototype | Targets):
            yield statement.name


def _renamed(body: Sequence[Statement], renaming: Renaming) -> Iterator[Statement]:
    for statement in body:
        match statement:
            case Instruction():
                yield renaming.instruction(statement)
            case Variable():
                yield _variable(statement, renaming)
            case Label(name) | Prototype(name):
                yield replace(statement, name=renaming.name(name))
            case Targets(name, names):
                found = tuple(renaming.name(target) for target in names)
                yield replace(statement, name=renaming.name(name), names=found)
            case Pragma():
                yield statement


def _variable(variable: Variable, renaming: Renaming) -> Variable:
    if variable.space is Space.REG:
        return variable
    initial = _initial(variable.initial, renaming)
    return replace(variable, name=renaming.name(variable.name), initial=initial)


def _initial(initial: Initializer | None, renaming: Renaming) -> Initializer | None:
    match initial:
        case Symbol(name):
            return replace(initial, name=renaming.name(name))
        case Masked(symbol):
            return replace(initial, symbol=replace(symbol, name=renaming.name(symbol.name)))
        case tuple():
            return tuple(made for part in initial if (made := _initial(part, renaming)) is not None)
        case _:
            return initial
