"""Lines of PTX as anchors: a text in which each instruction begins a line of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from warploom.isa.spec import Unit
from warploom.machinecode.listing import Listing, MachineInstruction
from warploom.machinecode.opcodes import execution_of
from warploom.program.program import Program, Site
from warploom.ptx.module import Module

Owners = Sequence[tuple[str, int] | None]
"""For each line of a text the PTX instruction that began last: its function and its index there."""

Sites = Sequence[Site | None]
"""The same as sites of a program, one object for each."""


def own_lines(module: Module) -> tuple[str, tuple[tuple[str, int] | None, ...]]:
    """Returns a module's text with a new line before each instruction that is not the first of its
    line; and for each line of it the function and the index there of the instruction that began
    last, None before the first."""
    begins: dict[int, list[tuple[int, str, int]]] = defaultdict(list)
    for function in module.functions:
        for index, made in enumerate(function.instructions):
            begins[made.span.line].append((made.span.column, function.name, index))
    lines: list[str] = []
    owners: list[tuple[str, int] | None] = []
    latest: tuple[str, int] | None = None
    for number, written in enumerate(module.text.split("\n"), 1):
        cut = 0
        for place, (column, function, index) in enumerate(sorted(begins.get(number, ()))):
            if place:
                lines.append(written[cut : column - 1])
                owners.append(latest)
                cut = column - 1
            latest = (function, index)
        lines.append(written[cut:])
        owners.append(latest)
    return "\n".join(lines), tuple(owners)


def sites_of(program: Program, owners: Owners) -> tuple[Site | None, ...]:
    """Returns the owners of lines as sites: those of the program, where it has them."""
    known: dict[tuple[str, int], Site] = {}
    for site in program.sites:
        known.setdefault((site.function, site.index), site)
    return tuple(
        None if owner is None else known.setdefault(owner, Site(*owner)) for owner in owners
    )


_SURFACES = {"SULD": "suld", "SUST": "sust", "SURED": "sured", "SUATOM": "sured"}


def with_texture_lines(program: Program, listing: Listing, owners: Owners) -> Listing:
    """Returns a listing whose texture instructions have the lines of those of the PTX.

    ptxas gives them the line of what made one of their operands: theirs is the next one of such an
    instruction. `owners` are those of `own_lines`.
    """
    names = {
        (site.function, site.index): made.operation.name
        for site, made in zip(program.sites, program.instructions, strict=True)
        if made.operation.spec.unit is Unit.TEXTURE
    }
    if not names:
        return listing
    made = tuple(_with_line(one, names, owners) for one in listing.instructions)
    return replace(listing, instructions=made)


def _with_line(
    made: MachineInstruction, names: Mapping[tuple[str, int], str], owners: Owners
) -> MachineInstruction:
    if made.line is None or execution_of(made.name).unit != "texture":
        return made
    known = _SURFACES.get(made.name)
    wanted = ("tex", "tld4") if known is None else (known,)
    for line in range(made.line, len(owners) + 1):
        owner = owners[line - 1]
        if owner is not None and names.get(owner) in wanted:
            return replace(made, line=line)
    return made
