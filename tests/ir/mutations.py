"""Changes one field of one node of a Warp IR: every data class in it is a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, is_dataclass, replace
from enum import Enum
from random import Random
from typing import Any

from warploom.core.types import TYPES, ScalarType
from warploom.ir.warp_ir import WarpIR
from warploom.isa.spec import Operation

Path = tuple[tuple[str, Any], ...]
"""How a node is found from the IR: by the name of a field, an index, or a key."""

NAMES = {("Program", "name")}
"""Fields that only name what they belong to."""


def nodes(node: object, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yields the data classes in a value with their paths, the value among them. An operation of
    the instruction tables is a value, not a node."""
    if is_dataclass(node) and not isinstance(node, Operation | ScalarType):
        yield path, node
        for each in _compared(node):
            yield from nodes(getattr(node, each.name), (*path, ("field", each.name)))
    elif isinstance(node, tuple):
        for index, one in enumerate(node):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            yield from nodes(one, (*path, ("index", index)))
    elif isinstance(node, Mapping):
        for key, one in node.items():  # pyright: ignore[reportUnknownVariableType]
            yield from nodes(one, (*path, ("key", key)))


def mutable_fields(node: Any) -> Iterator[str]:
    """Yields the fields of a node that take part in comparisons, and have another value."""
    for each in _compared(node):
        if (type(node).__name__, each.name) not in NAMES and _other(
            getattr(node, each.name), Random(0)
        ):
            yield each.name


def mutant(ir: WarpIR, path: Path, name: str, random: Random) -> WarpIR:
    """Returns an IR in which the field `name` of the node at a path has another value."""

    def changed(node: Any) -> Any:
        [value] = _other(getattr(node, name), random)
        return replace(node, **{name: value})

    return _replaced(ir, path, changed)


def _compared(node: Any) -> Iterator[Field[Any]]:
    return (each for each in fields(node) if each.compare)


def _replaced(node: Any, path: Path, change: Any) -> Any:
    """Returns a value in which the node at a path is replaced by `change` of it."""
    if not path:
        return change(node)
    (kind, at), *rest = path
    if kind == "field":
        return replace(node, **{at: _replaced(getattr(node, at), tuple(rest), change)})
    if kind == "index":
        return (*node[:at], _replaced(node[at], tuple(rest), change), *node[at + 1 :])
    return {**node, at: _replaced(node[at], tuple(rest), change)}


def _other(value: Any, random: Random) -> list[Any]:
    """Returns a list with another value of the same type; empty if there is none."""
    match value:
        case bool():
            return [not value]
        case Enum():
            return [random.choice([one for one in type(value) if one is not value])]
        case int():
            return [value + 1]
        case str():
            return [f"{value}x"]
        case ScalarType():
            return [random.choice([one for one in TYPES.values() if one != value])]
        case tuple() if value:
            return [value[:-1]]
        case frozenset() if value:
            return [value - {random.choice(sorted(value, key=str))}]
        case Mapping() if value:
            left_out = random.choice(sorted(value, key=str))
            return [{key: one for key, one in value.items() if key != left_out}]
        case _:
            return []
