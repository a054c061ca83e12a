"""Lines of PTX as anchors: a text in which each instruction begins a line of its own."""

from __future__ import annotations

from collections import defaultdict

from warploom.ptx.ir import Module


def own_lines(module: Module) -> tuple[str, tuple[tuple[str, int] | None, ...]]:
    """Return a module's text with a new line before each instruction that is not the first of its
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
