"""Since when there is an instruction: tables of patterns by release, and how one is looked up.

A pattern is the name of an instruction, or `*`, and parts that its opcode has in that order; a part
behind `!` is one that it does not have. A part with `::` matches as a whole and by what stands
before it. The address of `ld`, `st`, `atom` and `red` without a state space has the part `generic`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warploom.isa.spec import OLDEST, Operation, Release, is_decoration

__all__ = ["Release", "Table", "is_named", "since"]

Table = Mapping[Release, tuple[str, ...]]

ADDRESSED = ("ld", "st", "atom", "red")
SPACES = frozenset({"global", "shared", "local", "const", "param"})


def since(table: Table, operation: Operation, declared: Release = OLDEST) -> Release:
    """Returns the newest release that an instruction needs: of the table, or that its syntax line
    declares."""
    parts = _parts(operation)
    found = declared
    for release, patterns in table.items():
        if release > found and any(_matches(p, operation.name, parts) for p in patterns):
            found = release
    return found


def is_named(pattern: str, operation: Operation) -> bool:
    """Returns whether a pattern names an instruction."""
    return _matches(pattern, operation.name, _parts(operation))


def _parts(operation: Operation) -> list[str]:
    """Returns the parts of its opcode in the order of its syntax, those with `::` in both
    spellings."""
    written = [p for p in operation.modifiers.values.values() if not is_decoration(p)]
    parts = [spelt for part in written for spelt in dict.fromkeys((part.partition("::")[0], part))]
    generic = operation.name in ADDRESSED and not SPACES & set(parts)
    return ["generic", *parts] if generic else parts


def _matches(pattern: str, name: str, parts: Sequence[str]) -> bool:
    """Returns whether an opcode has the name of a pattern, its parts in order, and none of those
    with "!" before them."""
    name_pattern, *wanted = pattern.split(".")
    if name_pattern not in ("*", name):
        return False
    rest = iter(parts)
    return all(part[1:] not in parts if part.startswith("!") else part in rest for part in wanted)
