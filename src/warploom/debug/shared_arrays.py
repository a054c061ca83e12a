"""Reads the types of shared variables from their declarations in CUDA C++: NVIDIA's compilers do
not describe them in debug information.

A length is an integer, or an expression of integers, macros and constants of the same source.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping

from warploom.debug.source_types import type_of
from warploom.debug.types import Array, Type
from warploom.host.programs.cpp_types import read_type

_SHARED = re.compile(
    r"__shared__\s+(?:__align__\(\d+\)\s*|alignas\(\d+\)\s*)?"
    r"([\w: ]+?)\s*\b(\w+)((?:\s*\[[^\]]*\])*)\s*;"
)
_CONSTANT = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(.+?)[ \t]*$"
    r"|\bconst(?:expr)?\s+[\w ]+?\b(\w+)\s*=\s*([^;{]+);",
    re.MULTILINE,
)
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: int.__add__,
    ast.Sub: int.__sub__,
    ast.Mult: int.__mul__,
    ast.Div: int.__floordiv__,
    ast.Mod: int.__mod__,
}
DEEPEST = 16
"""So many constants are followed from one to the next."""


def declared_arrays(own: str, whole: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Returns the shared variables that a kernel's own source declares: the type of their elements
    as text, and their lengths, outermost first, 0 where one is not known. `whole` is the source
    that has the constants."""
    constants = {m[1] or m[3]: m[2] or m[4] for m in _CONSTANT.finditer(whole)}
    return {
        m[2]: (m[1], tuple(_number(n, constants) for n in re.findall(r"\[([^\]]*)\]", m[3])))
        for m in _SHARED.finditer(own)
    }


def array_type(declared: tuple[str, tuple[int, ...]], size: int) -> Type | None:
    """Returns the type of a shared variable of so many bytes: one length that is not known follows
    from the size, and of several it is an array of one dimension. None where the type is not known
    or does not fit."""
    found = read_type(declared[0].strip())
    made = type_of(found) if found is not None else None
    if made is None or not made.size:
        return None
    counts = list(declared[1])
    if counts.count(0) > 1:
        counts = [0]
    if 0 in counts:
        known = math.prod(count for count in counts if count) * made.size
        counts[counts.index(0)] = size // known
    for count in reversed(counts):
        made = Array(made, count)
    return made if made.size == size else None


def _number(text: str, constants: Mapping[str, str], depth: int = 0) -> int:
    """Returns the value of a length; 0 where it is not known."""
    try:
        return max(0, _value(ast.parse(text.strip(), mode="eval").body, constants, depth))
    except (SyntaxError, ValueError, ZeroDivisionError):
        return 0


def _value(node: ast.expr, constants: Mapping[str, str], depth: int) -> int:
    """Returns the value of an expression. Raises ValueError where it has none here."""
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name) if name in constants and depth < DEEPEST:
            return _value(
                ast.parse(constants[name].strip(), mode="eval").body, constants, depth + 1
            )
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
            sides = (_value(each, constants, depth) for each in (left, right))
            return _OPERATORS[type(op)](*sides)
        case _:
            raise ValueError
