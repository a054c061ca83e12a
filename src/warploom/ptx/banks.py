"""Constant banks, as PTX had them before version 2.2: `.extern .const[2] .b32 x[];` begins bank 2,
and `ld.const[2].b32` reads it.

Bank 0 is the constant memory of all other variables. Whoever fills another bank does it through one
of its arrays, all of which begin where the bank does.
Source: PTX ISA, "Banked Constant State Space (deprecated)".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from warploom.isa.instruction import Address, Operand, Symbol
from warploom.ptx.cursor import Cursor
from warploom.ptx.names import Names

BANKED = re.compile(r"(.*\.const)\[(\d+)\](.*)")
LAST_BANK = 10
LAST_VERSION = (2, 1)


def split_bank(cursor: Cursor, names: Names) -> tuple[str, int]:
    """Return the next token without its bank, and the bank (0 where it names none)."""
    found = BANKED.fullmatch(cursor.text)
    if found is None:
        return cursor.text, 0
    before, number, behind = found.groups()
    if names.version > LAST_VERSION:
        major, minor = names.version
        message = (
            "constant banks were removed after PTX 2.1, but this module has .version "
            f"{major}.{minor}: declare `.const` without a bank, or pass a pointer as a parameter"
        )
        raise cursor.error(message, cursor.at)
    if len(number) > 2 or int(number) > LAST_BANK:
        raise cursor.error(f"there is no constant bank {number}; the last is 10", cursor.at)
    return before + behind, int(number)


def check_bank(
    cursor: Cursor, names: Names, bank: int, operands: Sequence[Operand], at: int
) -> None:
    """Check that a load that names a bank reads variables of that bank."""
    for operand in operands:
        if isinstance(operand, Address) and isinstance(operand.base, Symbol):
            variable = names.variables.get(operand.base.name)
            if variable is not None and variable.bank != bank:
                name, has = operand.base.name, variable.bank
                message = (
                    f"`{name}` is in constant bank {has}, but this instruction reads bank {bank}"
                )
                raise cursor.error(message, at)
