"""Several PTX modules as one: what one declares, another defines.

`.extern` declares, `.visible` defines once, `.weak` defines where nobody else does, and what is
`.common` is as large as the largest of its kind. Names without a linkage stay their module's own
(`ptx.private_names`). A function that nobody defines is left to who builds a kernel that calls it.
Source: PTX ISA, "Linking Directives".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from warploom.core.errors import LinkError
from warploom.core.source import Span, Text
from warploom.isa.instruction import Instruction, Space
from warploom.ptx.module import Function, Module, Variable
from warploom.ptx.printer import print_module
from warploom.ptx.private_names import rename_private, shared_names

Named = Variable | Function

RANKS = {"weak": 1, "common": 2}
"""Which definition prevails, the stronger one over the weaker; all others are 3."""


@dataclass(frozen=True)
class _Name:
    """A name that modules share: where it is declared or defined, and what it stands for, None for
    a function that nobody defines."""

    mentions: list[Named]
    winner: Named | None


def link(modules: Sequence[Module]) -> Module:
    """Return one module of several, each of them verified; its text is as the printer writes it.

    Raises LinkError where two modules define one name, or declare it differently, or where none
    defines a variable.
    """
    _check_address_sizes(modules)
    _check_banks(modules)
    renamed = rename_private(modules)
    names = [_Name(found, _winner(found)) for found in _mentions(renamed)]
    for name in names:
        for one in name.mentions:
            _check_fit(one, name.winner or name.mentions[0])
    newest = max(renamed, key=_architecture)
    options = (t for module in renamed for t in module.target if not t.startswith("sm_"))
    files = dict.fromkeys(file for module in renamed for _, file in module.files)
    made = replace(
        newest,
        version=max(module.version for module in renamed),
        target=tuple(dict.fromkeys((*newest.target, *options))),
        variables=tuple(_variables(renamed, names)),
        functions=tuple(_functions(renamed, names)),
        pragmas=tuple(chain.from_iterable(module.pragmas for module in renamed)),
        files=tuple(enumerate(files, 1)),
        name=" + ".join(module.name for module in modules),
    )
    return replace(made, text=print_module(made))


def _architecture(module: Module) -> int:
    """Return the number in `.target sm_75`."""
    found = (re.match(r"sm_(\d+)", target) for target in module.target)
    return max((int(one[1]) for one in found if one), default=0)


def _check_address_sizes(modules: Sequence[Module]) -> None:
    first = modules[0]
    for module in modules[1:]:
        if module.address_size != first.address_size:
            raise LinkError(
                f"addresses have {module.address_size} bits here but {first.address_size} in "
                f"{first.name}; use the same .address_size in both",
                Span(1, 1, text=Text(module.name, module.text)),
            )


def _check_banks(modules: Sequence[Module]) -> None:
    """Banks go with the version of their module, and the linked one has the newest of all."""
    for variable in chain.from_iterable(module.variables for module in modules):
        if variable.bank:
            message = (
                "a module with a variable in a constant bank (.const[N]) cannot be linked; pass a "
                "pointer instead"
            )
            raise LinkError(message, variable.span)


# ---- names ---------------------------------------------------------------------------------------


def _mentions(modules: Sequence[Module]) -> list[list[Named]]:
    """Return every declaration and definition of the names that modules share, name by name."""
    found: dict[str, list[Named]] = {}
    for module in modules:
        shared = shared_names(module)
        for one in (*module.variables, *module.functions):
            if one.name in shared:
                found.setdefault(one.name, []).append(one)
    return list(found.values())


def _winner(mentions: list[Named]) -> Named | None:
    """Return the definition that a name stands for; None for a function that nobody defines."""
    defined = [one for one in mentions if _is_definition(one)]
    if not defined:
        first = mentions[0]
        if isinstance(first, Function):
            return None
        opened = [v for v in mentions if isinstance(v, Variable) and _is_open_shared(v)]
        if len(opened) == len(mentions):
            return max(opened, key=lambda v: v.alignment)
        message = f"no linked module defines `{first.name}`; link a module that defines it"
        raise LinkError(message, first.span)
    strength = max(_rank(one) for one in defined)
    strongest = [one for one in defined if _rank(one) == strength]
    if strength == RANKS["common"]:
        return _common([one for one in strongest if isinstance(one, Variable)])
    if strength > RANKS["common"] and len(strongest) > 1:
        raise _twice(strongest[0], strongest[1])
    return strongest[0]


def _common(variables: list[Variable]) -> Variable:
    """Return the largest of several common variables; only it may have an initial value."""
    begun = [v for v in variables if v.initial is not None]
    if len(begun) > 1:
        raise _twice(begun[0], begun[1])
    largest = max(variables, key=lambda v: v.size)
    chosen = begun[0] if begun else largest
    if chosen.size < largest.size:
        message = (
            f"`{chosen.name}` has an initial value here, but is declared with a larger size in "
            f"{place(largest)}"
        )
        raise LinkError(message, chosen.span)
    return chosen


def _twice(first: Named, second: Named) -> LinkError:
    return LinkError(
        f"`{second.name}` is defined here ({place(second)}) and in {place(first)}; rename one of"
        f" them, or make it local to its module (`static` in CUDA C++, no .visible in PTX)",
        second.span,
    )


def _check_fit(one: Named, winner: Named) -> None:
    """Check that a name is defined as it is declared."""
    if isinstance(one, Function) and isinstance(winner, Function):
        fits = _signature(one) == _signature(winner)
    elif isinstance(one, Variable) and isinstance(winner, Variable):
        sized = None not in one.shape and "common" not in (one.linkage, winner.linkage)
        fits = one.space is winner.space and (not sized or one.size == winner.size)
    else:
        fits = False
    if not fits:
        raise LinkError(
            f"the declaration of `{one.name}` here ({place(one)}) differs from its definition in "
            f"{place(winner)}; make them identical",
            one.span,
        )


def place(one: Named) -> str:
    """Returns where something is declared, as `file:line`: of the source, if its code has it."""
    body = one.body if isinstance(one, Function) else None
    made = (s.location for s in body or () if isinstance(s, Instruction) and s.location)
    location = next(made, None)
    return str(location.written if location else one.span)


def _signature(function: Function) -> tuple[bool, list[int], list[int]]:
    """Returns what callers see of a function: what it takes and gives, in bytes."""
    takes = [p.size for p in function.parameters]
    return function.is_entry, takes, [r.size for r in function.returns]


def _is_open_shared(variable: Variable) -> bool:
    """Returns whether it is the dynamic shared memory of a launch, which nobody defines."""
    return (
        variable.space is Space.SHARED and variable.linkage == "extern" and None in variable.shape
    )


def _is_definition(one: Named) -> bool:
    return one.body is not None if isinstance(one, Function) else one.linkage != "extern"


def _rank(one: Named) -> int:
    return RANKS.get(one.linkage, 3)


# ---- what is left --------------------------------------------------------------------------------


def _variables(modules: Sequence[Module], names: Sequence[_Name]) -> Iterator[Variable]:
    """Yield the variables of all modules, each once. Those that several modules mention are
    declared first, for others may begin with their address."""
    kept = {id(name.winner): name for name in names}
    shared = {name.mentions[0].name for name in names}
    for name in names:
        winner = name.winner
        if isinstance(winner, Variable) and len(name.mentions) > 1 and _is_definition(winner):
            yield replace(winner, linkage="extern", initial=None)
    for variable in chain.from_iterable(module.variables for module in modules):
        if id(variable) in kept:
            yield _aligned(variable, kept[id(variable)].mentions)
        elif variable.name not in shared:
            yield variable


def _aligned(variable: Variable, mentions: Sequence[Named]) -> Variable:
    """Return a variable that several modules define together has the strictest of their
    alignments."""
    if variable.linkage != "common":
        return variable
    return replace(variable, align=max(v.alignment for v in mentions if isinstance(v, Variable)))


def _functions(modules: Sequence[Module], names: Sequence[_Name]) -> Iterator[Function]:
    """Yield the functions of all modules, each once; those that several modules mention are
    declared first."""
    kept = {id(name.winner) for name in names}
    shared = {name.mentions[0].name for name in names}
    for name in names:
        chosen = name.winner or name.mentions[0]
        several = len(name.mentions) > 1 or name.winner is None
        if isinstance(chosen, Function) and several and not chosen.is_entry:
            yield _declaration(chosen)
    for function in chain.from_iterable(module.functions for module in modules):
        if id(function) in kept or function.name not in shared:
            yield function


def _declaration(function: Function) -> Function:
    """Return a function without its body."""
    signature = {p.name for p in (*function.parameters, *function.returns)}
    registers = tuple(r for r in function.registers if r.name in signature)
    return replace(function, body=None, directives=(), registers=registers)
