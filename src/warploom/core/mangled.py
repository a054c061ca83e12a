"""Mangled names of kernels, read as C++ writes them.

Source: Itanium C++ ABI, "Mangling"; the package itanium_demangler reads most of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

LONGEST = 4096
"""Longer names are not read; compilers shorten theirs long before."""

_PART = re.compile(r"(\d+)")
ANONYMOUS = "_GLOBAL__N_"
"""Anonymous namespaces are named like that."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A kernel's name: `name` with its namespaces, `arguments` of a template with their brackets,
    and the types of its parameters, None where they are not known."""

    name: str
    arguments: str = ""
    parameters: tuple[str, ...] | None = None

    def __str__(self) -> str:
        parameters = "" if self.parameters is None else f"({', '.join(self.parameters)})"
        return f"{self.name}{self.arguments}{parameters}"

    @property
    def template(self) -> str:
        """Return the name with the arguments of its template, without parameters."""
        return self.name + self.arguments

    @property
    def spellings(self) -> tuple[str, ...]:
        """Return each way in which C++ may name it: with and without template arguments, with
        types."""
        types = str(self).removeprefix(self.name + self.arguments)
        return self.name, self.name + self.arguments, self.name + types, str(self)


@lru_cache(maxsize=1024)
def read_symbol(symbol: str) -> Symbol:
    """Returns what a symbol names in C++; one that is not mangled names itself."""
    if not symbol.startswith("_Z") or len(symbol) > LONGEST:
        return Symbol(symbol)
    from itanium_demangler import parse

    try:
        return _read(parse(symbol)) or Symbol(_name_alone(symbol))
    except Exception:  # of a name that the package does not know how to read
        return Symbol(_name_alone(symbol))


def shown_name(symbol: str) -> str:
    """Returns a symbol as messages and tables show it: `scale(float*, int)`."""
    return str(read_symbol(symbol))


def _read(tree: Any) -> Symbol | None:
    """Return the name and the parameters of a function; None for anything else."""
    if tree is None or tree.kind != "func" or tree.name is None:
        return None
    parts = tree.name.value if tree.name.kind == "qual_name" else (tree.name,)
    names = [str(_untagged(part)) for part in parts if part.kind != "tpl_args"]
    arguments = parts[-1] if parts[-1].kind == "tpl_args" else None
    shown = (
        ""
        if arguments is None
        else f"<{', '.join(map(_argument, _without_packs(arguments.value)))}>"
    )
    parameters = tuple(_type(node) for node in _without_packs(tree.arg_tys))
    return Symbol(
        "::".join(name for name in names if not name.startswith(ANONYMOUS)),
        shown,
        () if parameters == ("void",) else parameters,
    )


def _untagged(part: Any) -> Any:
    """Return a part of a name without its ABI tags, which no source has."""
    while part.kind == "abi":
        part = part.value
    return part


def _without_packs(nodes: tuple[Any, ...]) -> list[Any]:
    """Return the nodes, with those of a pack in place of the pack."""
    flat: list[Any] = []
    for node in nodes:
        if node.kind == "expand_arg_pack":
            flat += _expanded(node.value)
        elif node.kind == "tpl_arg_pack":
            flat += node.value
        else:
            flat.append(node)
    return flat


def _expanded(node: Any) -> list[Any]:
    """Return the types that a pattern stands for: one for each of the pack inside of it."""
    if node.kind == "tpl_arg_pack":
        return list(node.value)
    return [node._replace(value=inner) for inner in _expanded(node.value)]


def _type(node: Any) -> str:
    return re.sub(r"\((?:unsigned |)(?:int|long)\)(\d)", r"\1", str(node))


def _argument(node: Any) -> str:
    """Return a template's argument: a type, or a value as C++ writes it."""
    if node.kind != "literal":
        return _type(node)
    value = str(node.value).replace("n", "-", 1)
    if node.ty.kind != "builtin":
        return f"({node.ty}){value}"
    return {"0": "false", "1": "true"}[value] if node.ty.value == "bool" else value


def _name_alone(symbol: str) -> str:
    """Return the name in front of parameters that cannot be read."""
    nested = symbol.startswith("_ZN")
    at = 3 if nested else 2
    parts: list[str] = []
    while (found := _PART.match(symbol, at)) and (nested or not parts):
        start = found.end()
        at = start + int(found[1])
        if at > len(symbol):
            return symbol
        if not symbol.startswith(ANONYMOUS, start):
            parts.append(symbol[start:at])
    return "::".join(parts) or symbol


_DOTTED = "_$_"
"""What clang writes into PTX for a dot: `kernel.variable` is a variable of a kernel in OpenCL C."""

_LOCAL_NAME = re.compile(r"_ZZ\w+?E(\d+)(\w+)")
"""A variable declared in a function (Itanium C++ ABI, "Local names")."""


def variable_name(symbol: str) -> str:
    """Return the name of a variable as its source has it, without the function that declares it."""
    symbol = symbol.partition("@")[0]
    if _DOTTED in symbol:
        return symbol.rpartition(_DOTTED)[2]
    if found := _LOCAL_NAME.match(symbol):
        for other in re.finditer(r"E(\d+)", symbol):
            rest = symbol[other.end() :]
            if len(rest) >= int(other[1]) and rest[: int(other[1])].isidentifier():
                tail = rest[int(other[1]) :]
                if not tail or tail.startswith("_"):
                    return rest[: int(other[1])]
        return found[2]
    return read_symbol(symbol).name if symbol.startswith("_Z") else symbol
