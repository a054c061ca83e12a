"""The debug sections of a PTX text as bytes.

Compilers write DWARF as numbers into sections of the text; names stand there for places in the code
and in other sections (PTX ISA, "Debugging Directives"). Code has no addresses in PTX, so the number
of the line of the text in which a label or an instruction stands is taken for one; a variable gets
one from `VARIABLES_AT` on, a section is at 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

VARIABLES_AT = 1 << 48
"""The first number that stands for a variable of the text."""

_SECTION = re.compile(r"\.section\s+(\.debug_\w+)\s*\{(.*?)\}", re.DOTALL)
_ITEM = re.compile(r"\.b(8|16|32|64)\s+([^\n]*)|([\w$.%]+):")
_LABEL = re.compile(r"^\s*([\w$.%]+):", re.MULTILINE)
_TERM = re.compile(r"([+-]?)\s*([^\s+-]+)")


@dataclass(frozen=True)
class Sections:
    """The sections of a text by name, and the names of the variables that have numbers."""

    content: dict[str, bytes]
    variables: dict[int, str]


@lru_cache(maxsize=8)
def read_sections(text: str) -> Sections:
    """Returns the debug sections of a PTX text."""
    code_end = text.find(".section")
    if code_end < 0:
        return Sections({}, {})
    labels = _code_labels(text[:code_end])
    found = [(name, content) for name, content in _SECTION.findall(text)]
    for name, content in found:
        labels[name] = 0
        labels |= _section_labels(content)
    variables: dict[str, int] = {}
    made = {name: _assembled(content, labels, variables) for name, content in found}
    return Sections(made, {number: name for name, number in variables.items()})


def _code_labels(code: str) -> dict[str, int]:
    """Returns the lines of the labels in the code."""
    labels: dict[str, int] = {}
    for number, line in enumerate(code.split("\n"), 1):
        if found := _LABEL.match(line):
            labels[found[1]] = number
    return labels


def _section_labels(content: str) -> dict[str, int]:
    """Returns the offsets of the labels in a section."""
    labels: dict[str, int] = {}
    at = 0
    for bits, values, label in _ITEM.findall(content):
        if label:
            labels[label] = at
        else:
            at += int(bits) // 8 * (values.split("//")[0].count(",") + 1)
    return labels


def _assembled(content: str, labels: dict[str, int], variables: dict[str, int]) -> bytes:
    """Returns the bytes of a section, little-endian."""
    made = bytearray()
    for bits, values, label in _ITEM.findall(content):
        if label:
            continue
        size = int(bits) // 8
        for value in values.split("//")[0].split(","):
            number = _number(value, labels, variables)
            made += (number % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(made)


def _number(text: str, labels: dict[str, int], variables: dict[str, int]) -> int:
    """Returns a number, or the sum of some, of which names may be parts."""
    total = 0
    for sign, term in _TERM.findall(text):
        if term[0].isdigit():
            value = int(term, 0)
        elif term in labels:
            value = labels[term]
        else:
            value = variables.setdefault(term, VARIABLES_AT + (len(variables) << 32))
        total += -value if sign == "-" else value
    return total
