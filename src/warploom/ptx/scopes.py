"""The names that one scope of a PTX text declares.

`.reg .b32 %r<1000000>;` declares a million registers in one line. A scope stores such a range as
it is written, and a register comes into being when an instruction names it: a text's cost follows
its length, not the numbers in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from warploom.core.types import ScalarType
from warploom.isa.instruction import Register

Meaning = Register | tuple[Register, ...] | str
"""A register, the parts of a vector register, or the IR's name of anything else."""

MOST_REGISTERS = 1 << 20
"""The most registers that one range declares; ptxas has no stated limit."""

LONGEST_NUMBER = len(str(MOST_REGISTERS))
DIGITS = "0123456789"


@dataclass(frozen=True)
class RegisterRange:
    """`count` registers whose names are a prefix and the numbers from 0: their type, the elements
    of each (1 for a scalar register), and the index of the token that names the prefix."""

    count: int
    type: ScalarType
    vector: int
    at: int


@dataclass
class Scope:
    """The names between two braces: what each means, and the ranges of registers by prefix.

    `least` has, for each prefix, the least number with which a declared name continues it: `%r12`
    and `%r5` give 5 for `%r` and 2 for `%r1`.
    """

    names: dict[str, Meaning] = field(default_factory=dict[str, Meaning])
    ranges: dict[str, RegisterRange] = field(default_factory=dict[str, RegisterRange])
    least: dict[str, int] = field(default_factory=dict[str, int])

    def find_in_ranges(self, name: str) -> tuple[RegisterRange, int] | None:
        """Returns the range that declares a name and the name's number in it, if one does."""
        for prefix, number in _splits(name):
            registers = self.ranges.get(prefix)
            if registers is not None and number < registers.count:
                return registers, number
        return None

    def declare(self, name: str, meaning: Meaning) -> bool:
        """Declares a name; returns False if the scope has it already."""
        if name in self.names or (self.ranges and self.find_in_ranges(name)):
            return False
        self.names[name] = meaning
        self._note(name)
        return True

    def declare_range(self, prefix: str, registers: RegisterRange) -> bool:
        """Declares a range of registers; returns False if the scope has one of its names already.

        Of two ranges that share a name, one begins within the other: `%r1<5>` begins with `%r10`,
        which `%r<20>` has.
        """
        first = f"{prefix}0"
        taken = self.least.get(prefix, registers.count) < registers.count
        if registers.count and (taken or self.find_in_ranges(first)):
            return False
        if registers.count:
            self.ranges[prefix] = registers
            self._note(first)
        return True

    def _note(self, name: str) -> None:
        """Notes the ways in which a declared name is a prefix and a number."""
        for prefix, number in _splits(name):
            self.least[prefix] = min(number, self.least.get(prefix, number))


def _splits(name: str) -> Iterator[tuple[str, int]]:
    """Yields each prefix and number that make a name: `%r12` is `%r1` and 2, or `%r` and 12. A
    number has no zero in front and is no longer than that of any range."""
    stem, last = len(name.rstrip(DIGITS)), len(name) - 1
    if not 0 < stem <= last:
        return
    start = max(stem, last + 1 - LONGEST_NUMBER)
    for at in range(last, start - 1, -1):
        if name[at] != "0" or at == last:
            yield name[:at], int(name[at:])
