"""Listings of machine code by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warploom.machinecode.control import control_of
from warploom.machinecode.listing import Listing, MachineInstruction
from warploom.machinecode.operands import read_operands


def listing(
    code: Sequence[tuple[str, int | None]], functions: Mapping[str, int] | None = None
) -> Listing:
    """Instructions, each with its line of PTX: "@P0 BRA >3" leads to the third one from 0 on."""
    made: list[MachineInstruction] = []
    for index, (text, line) in enumerate(code):
        text, _, target = text.partition(" >")
        guard, _, rest = text.partition(" ") if text.startswith("@") else ("", "", text)
        opcode, _, operands = rest.partition(" ")
        targets = (16 * int(target),) if target else ()
        made.append(
            MachineInstruction(
                *(16 * index, guard.lstrip("@"), opcode, read_operands(operands), targets, line),
                control_of(0),
            )
        )
    return Listing("k", tuple(made), {name: 16 * at for name, at in (functions or {}).items()})
