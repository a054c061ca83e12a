"""The grammar of the operands of machine instructions, as nvdisasm prints them.

    operands = operand {"," operand}
    operand  = [sign] place ["." modifiers] | number | label | barrier | "{" numbers "}" | special
    place    = register | "|" register "|" | constant | memory | matrix
    constant = "c[" bank "][" address "]" | "cx[" uniform "][" address "]"
    memory   = ["desc[" uniform "]"] "[" address "]"
    matrix   = ("gdesc" | "idesc" | "tmem") "[" uniform "]"

Source: CUDA Binary Utilities, "Instruction Set Reference" and the listings of `nvdisasm`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from warploom.core.errors import WarploomError


class ListingError(WarploomError):
    """A listing has what this reader does not know."""


class Kind(Enum):
    """Kinds of operands."""

    REGISTER = "register"
    UNIFORM = "uniform register"
    PREDICATE = "predicate"
    CONSTANT = "constant"
    MEMORY = "memory"
    MATRIX = "matrix"
    NUMBER = "number"
    LABEL = "label"
    BARRIER = "barrier"
    SPECIAL = "special register"


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand: its text, and the registers that the text names, without RZ, URZ and PT."""

    kind: Kind
    text: str
    registers: tuple[str, ...] = ()


_FORMS: tuple[tuple[Kind, str], ...] = (
    (Kind.LABEL, r"`\(.*\)"),
    (Kind.CONSTANT, r"[-~!|+]*cx?\[[^\]]*\]\[[^\]]*\](?:\.\w+)*\|?(?:\.\w+)*"),
    (Kind.MEMORY, r"(?:[a-z]+\[\w+\])*\[[^\]]*\](?:\.\w+)*"),
    (Kind.MATRIX, r"[a-z]+\[U?R(?:\d+|Z)\](?:\.\w+)*"),
    (Kind.UNIFORM, r"[-~!|+]*U(?:R\d+|RZ)\|?(?:\.\w+)*"),
    (Kind.PREDICATE, r"[!]?U?P(?:\d+|T|R)(?:\.\w+)*"),
    (Kind.REGISTER, r"[-~!|+]*R(?:\d+|Z)\|?(?:\.\w+)*"),
    (Kind.BARRIER, r"B\d+|PM\d+|\{[\d,]*\}"),
    (Kind.NUMBER, r"[-+~]*(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|INF|Q?S?NAN)(?:\.\w+)*"),
    (Kind.SPECIAL, r"(?:[A-Za-z_]|\dD)[\w.@$]*(?:\([^)]*\))?"),
)
_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _FORMS)
_REGISTERS = re.compile(r"\bU?[RP]\d+\b")
_SEPARATOR = re.compile(r",(?![^\[]*\]|[^{]*\})|(?<=\S)\s+(?=-?0x|`|[-+]?\[)")


def read_operands(text: str) -> tuple[Operand, ...]:
    """Returns the operands of an instruction; ListingError for one of no known form."""
    parts = (part.strip() for part in _SEPARATOR.split(text))
    return tuple(_read(part) for part in parts if part)


@lru_cache(maxsize=1 << 14)
def _read(text: str) -> Operand:
    for kind, pattern in _PATTERNS:
        if pattern.fullmatch(text):
            named = () if kind is Kind.LABEL else tuple(dict.fromkeys(_REGISTERS.findall(text)))
            return Operand(kind, text, named)
    raise ListingError(f"nvdisasm printed an operand of an unknown form: {text!r}")
