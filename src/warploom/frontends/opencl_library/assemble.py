"""Writes the source of the built-in functions that a program calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import resources

from warploom.frontends.opencl_library import (
    atomics,
    conversions,
    images,
    mathematics,
    vectors,
    work_items,
)
from warploom.frontends.opencl_library.elementwise import (
    COMMON_FUNCTIONS,
    INTEGER_FUNCTIONS,
    ORDERED_FUNCTIONS,
    RELATIONAL_FUNCTIONS,
    Elementwise,
)

_MANGLED = re.compile(r"_Z(\d+)(\w+)")
_SAMPLER = "__translate_sampler_initializer"

_HEAD = """
#define __cl_inline __attribute__((overloadable, always_inline))
#pragma clang diagnostic ignored "-Weverything"
"""


@cache
def elementwise() -> Mapping[str, tuple[Elementwise, ...]]:
    """Returns the rows of functions of components by their names."""
    rows = (
        *(*INTEGER_FUNCTIONS, *ORDERED_FUNCTIONS, *COMMON_FUNCTIONS, *RELATIONAL_FUNCTIONS),
        *(*mathematics.MATHEMATICS, *mathematics.IMPRECISE),
    )
    names = dict.fromkeys(row.name for row in rows)
    return {name: tuple(row for row in rows if row.name == name) for name in names}


@cache
def generators() -> Mapping[str, Callable[[str], Iterator[str]]]:
    """Returns the functions that write the definitions of other names."""
    return {
        **vectors.VECTOR_FUNCTIONS,
        **atomics.ATOMIC_FUNCTIONS,
        **images.IMAGE_FUNCTIONS,
        **work_items.SUB_GROUP_FUNCTIONS,
    }


def types_text() -> str:
    """Returns the header of types and constants that programs are compiled with."""
    return (resources.files("warploom.frontends.opencl_library") / "types.h").read_text("utf-8")


def function_name(symbol: str) -> str:
    """Returns the name of a function by its symbol: what the length says, where it is mangled."""
    found = _MANGLED.match(symbol)
    return found[2][: int(found[1])] if found else symbol


def is_built_in(name: str) -> bool:
    """Returns whether the library has a function."""
    tables = (elementwise(), generators(), work_items.ONES)
    return any(name in table for table in tables) or bool(conversions.NAME.fullmatch(name))


def library_text(symbols: Iterable[str]) -> str:
    """Returns the source of the built-in functions that symbols name, empty for none: all overloads
    of each, after those that they call."""
    names = dict.fromkeys(function_name(symbol) for symbol in symbols)
    wanted = [name for name in names if is_built_in(name)]
    if not wanted and _SAMPLER not in names:
        return ""
    lines = [_HEAD, *mathematics.declarations(), work_items.PRELUDE]
    if any("vote" in _one(n) or "popc" in _one(n) for n in wanted):
        lines.append(work_items.VOTES)
    if _SAMPLER in names or any(n in images.IMAGE_FUNCTIONS for n in wanted):
        lines += [images.PRELUDE, *images.declarations()]
    if any(name.startswith("vstore") and "half" in name for name in wanted):
        lines += conversions.half_roundings()
    written: set[str] = set()
    for name in wanted:
        lines += _written(name, written)
    return "\n".join(lines) + "\n"


def _one(name: str) -> str:
    return work_items.ONES.get(name, "")


def _written(name: str, written: set[str]) -> Iterator[str]:
    """Yields the definitions of a function after those of what it calls."""
    if name in written:
        return
    written.add(name)
    rows = elementwise().get(name, ())
    for needed in _needs(name):
        yield from _written(needed, written)
    for row in rows:
        yield from row.lines()
    if name in generators():
        yield from generators()[name](name)
    elif name in work_items.ONES:
        yield f"__cl_inline {work_items.ONES[name]}"
    elif conversions.NAME.fullmatch(name):
        yield from conversions.conversion(name)


def _needs(name: str) -> tuple[str, ...]:
    of_rows = (needed for row in elementwise().get(name, ()) for needed in row.needs)
    return (
        *of_rows,
        *vectors.NEEDS.get(name, ()),
        *images.NEEDS.get(name, ()),
        *work_items.NEEDS.get(name, ()),
    )
