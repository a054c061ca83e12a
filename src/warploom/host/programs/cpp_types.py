"""The C++ types of kernel parameters: reads them, and compares them with NumPy's.

Source: CUDA C++ Programming Guide, "Built-in Vector Types"; Itanium C++ ABI, "Builtin types"
(`long` has 8 bytes, but 4 on Windows).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import numpy as np


class Class(Enum):
    """Classes of arithmetic types."""

    SIGNED = "i"
    UNSIGNED = "u"
    FLOAT = "f"
    BFLOAT = "bfloat"
    BOOL = "b"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """An arithmetic type: its class and its size in bytes. `raw` types are views of memory that may
    hold anything: `void`, and `char`, by which C++ copies objects."""

    kind: Class
    bytes: int
    raw: bool = False

    @property
    def is_integer(self) -> bool:
        return self.kind in (Class.SIGNED, Class.UNSIGNED, Class.BOOL)

    @property
    def numpy_name(self) -> str:
        """Returns the name of the NumPy type with the same values."""
        if self.kind is Class.BFLOAT:
            return "ml_dtypes.bfloat16"
        return "np.bool_" if self.kind is Class.BOOL else f"np.{np.dtype(self._code).name}"

    @property
    def dtype(self) -> np.dtype[Any]:
        """Returns the NumPy type of such elements in memory; of bfloat16, which NumPy does not
        have, that of their bits."""
        return np.dtype(f"u{self.bytes}" if self.kind is Class.BFLOAT else self._code)

    @property
    def range(self) -> tuple[int, int]:
        """Returns the least and the greatest value of an integer type."""
        if self.kind is Class.BOOL:
            return 0, 1
        bits = 8 * self.bytes - (self.kind is Class.SIGNED)
        return (-(1 << bits) if self.kind is Class.SIGNED else 0), (1 << bits) - 1

    @property
    def _code(self) -> str:
        return f"{self.kind.value}{self.bytes}"


@dataclass(frozen=True, slots=True)
class CppType:
    """A type made of an arithmetic type: the type itself, or a pointer to it (`pointers` is 1), to
    a pointer (2) and so on. Its vectors count as the type."""

    element: Arithmetic
    pointers: int = 0

    def accepts(self, dtype: np.dtype[Any]) -> bool:
        """Returns whether an array of that type may be what the pointer points to.

        Integers of either sign, bits of floating-point numbers of 2 bytes and parts of complex
        numbers are accepted; so is raw memory on either side: bytes, structures.
        """
        if dtype.itemsize == 1 or dtype.kind not in "iubfcmM":
            return True
        if self.pointers > 1:
            return dtype.kind in "iu" and dtype.itemsize == 8
        size, element = dtype.itemsize, self.element
        if element.raw:
            return True
        if dtype.kind == "c":
            return element.kind is Class.FLOAT and size == 2 * element.bytes
        if dtype.kind == "f":
            return element.kind is Class.FLOAT and size == element.bytes
        return size == element.bytes and (element.is_integer or size == 2)


_LONG = 4 if sys.platform == "win32" else 8

_INTEGERS = {"char": 1, "short": 2, "int": 4, "long": _LONG, "long long": 8}

_FLOATS = {
    "float": Arithmetic(Class.FLOAT, 4),
    "double": Arithmetic(Class.FLOAT, 8),
    "half": Arithmetic(Class.FLOAT, 2),
    "__half": Arithmetic(Class.FLOAT, 2),
    "__half2": Arithmetic(Class.FLOAT, 2),
    "half2": Arithmetic(Class.FLOAT, 2),
    "nv_bfloat16": Arithmetic(Class.BFLOAT, 2),
    "__nv_bfloat16": Arithmetic(Class.BFLOAT, 2),
    "nv_bfloat162": Arithmetic(Class.BFLOAT, 2),
    "__nv_bfloat162": Arithmetic(Class.BFLOAT, 2),
}

_WORDS = {
    "size_t": Arithmetic(Class.UNSIGNED, 8),
    "ptrdiff_t": Arithmetic(Class.SIGNED, 8),
    "uintptr_t": Arithmetic(Class.UNSIGNED, 8),
    "intptr_t": Arithmetic(Class.SIGNED, 8),
    "bool": Arithmetic(Class.BOOL, 1),
    "void": Arithmetic(Class.UNSIGNED, 1, raw=True),
    "dim3": Arithmetic(Class.UNSIGNED, 4),
}

VECTORS = {
    "uchar": "unsigned char",
    "ushort": "unsigned short",
    "uint": "unsigned int",
    "ulong": "unsigned long",
    "longlong": "long long",
    "ulonglong": "unsigned long long",
} | {name: name for name in ("char", "short", "int", "long", "float", "double")}

QUALIFIERS = frozenset(
    ["const", "volatile", "restrict", "__restrict", "__restrict__", "__grid_constant__", "struct"]
)
_TOKEN = re.compile(r"[A-Za-z_][\w:]*|\S")
_VECTOR = re.compile(r"(\w+?)[1-4](_(16|32)a)?")


@cache
def _named() -> Mapping[str, Arithmetic]:
    """Returns the arithmetic types with one name; those of several words have them in order."""
    named = {**_FLOATS, **_WORDS}
    for name, size in _INTEGERS.items():
        named[name] = named[f"signed {name}"] = Arithmetic(Class.SIGNED, size)
        named[f"unsigned {name}"] = Arithmetic(Class.UNSIGNED, size)
    named["char"] = Arithmetic(Class.SIGNED, 1, raw=True)
    for bits in (8, 16, 32, 64):
        named[f"int{bits}_t"] = Arithmetic(Class.SIGNED, bits // 8)
        named[f"uint{bits}_t"] = Arithmetic(Class.UNSIGNED, bits // 8)
    return named


def read_type(text: str) -> CppType | None:
    """Returns the type that a C++ text names ("const unsigned int *"), None where that is a
    structure, a name of the program's own, or anything else that is not read here."""
    words: list[str] = []
    pointers = 0
    for token in _TOKEN.findall(text):
        if token == "*":
            pointers += 1
        elif token not in QUALIFIERS:
            words.append(token.removeprefix("::").removeprefix("std::").removeprefix("cuda::std::"))
    element = _arithmetic(words)
    return None if element is None else CppType(element, pointers)


def _arithmetic(words: list[str]) -> Arithmetic | None:
    """Returns the arithmetic type of those words, whose order C++ leaves open; a vector's
    element."""
    if len(words) == 1 and (found := _VECTOR.fullmatch(words[0])) and found[1] in VECTORS:
        words = VECTORS[found[1]].split()
    signs = [word for word in words if word in ("signed", "unsigned")]
    rest = sorted(word for word in words if word not in ("signed", "unsigned"))
    if "int" in rest and len(rest) > 1:  # `short int`, `long long int`
        rest.remove("int")
    return _named().get(" ".join([*signs, *(rest or ["int"])]) if words else "")
