"""Reads the declared parameters of a kernel from the debug information in its PTX.

Compilers write DWARF as numbers into `.section .debug_info` and `.debug_abbrev` (PTX ISA,
"Debugging Directives"); pyelftools reads it. References to code and to other sections stand there
as names; they count as 0, which is what a section begins at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from inspect import signature
from io import BytesIO
from itertools import islice
from typing import Any

_SECTION = re.compile(r"\.section\s+\.(debug_info|debug_abbrev|debug_str)\s*\{(.*?)\}", re.DOTALL)
_DATA = re.compile(r"\.b(8|16|32|64)\s+([^\n]*)")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+)")

DEEPEST = 16
"""A type of more parts, such as pointers to pointers, is not read."""

Declared = tuple[str, str]
"""The type of a parameter as C++ writes it, empty where it is not known; and its name."""


def debug_parameters(ptx: str, symbol: str) -> list[Declared] | None:
    """Returns the declared parameters of the kernel with this symbol, None where there is no
    debug information of it, or none that can be read."""
    if ".debug_info" not in ptx:
        return None
    found = _sections(ptx)
    if "debug_info" not in found or "debug_abbrev" not in found:
        return None
    try:
        return _of_kernel(found, symbol)
    except Exception:  # of a text that says it is DWARF and is not
        return None


@lru_cache(maxsize=2)  # a module of many kernels
def _sections(ptx: str) -> dict[str, bytearray]:
    """Returns the bytes of the sections of a text, by name."""
    found: dict[str, bytearray] = {}
    for name, content in _SECTION.findall(ptx):
        found.setdefault(name, bytearray()).extend(_bytes(content))
    return found


def _bytes(content: str) -> bytes:
    """Returns the bytes of a section: its numbers, little-endian; a name counts as 0."""
    made = bytearray()
    for bits, values in _DATA.findall(content):
        for value in values.split("//")[0].split(","):
            number = int(value, 0) if _NUMBER.fullmatch(value := value.strip()) else 0
            size = int(bits) // 8
            made += (number % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(made)


def _of_kernel(sections: dict[str, bytearray], symbol: str) -> list[Declared] | None:
    dwarf = _opened(sections)
    most = len(sections["debug_info"])
    for unit in dwarf.iter_CUs():
        for entry in islice(unit.get_top_DIE().iter_children(), most):
            if entry.tag == "DW_TAG_subprogram" and symbol in _names(entry):
                inside = islice(entry.iter_children(), most)
                return [
                    (_type(each, DEEPEST), _text(each, "DW_AT_name"))
                    for each in inside
                    if each.tag == "DW_TAG_formal_parameter"
                ]
    return None


def _opened(sections: dict[str, bytearray]) -> Any:
    """Returns pyelftools' reader of these sections."""
    module = import_module("elftools.dwarf.dwarfinfo")

    def described(name: str) -> Any:
        data = bytes(sections.get(name, b""))
        return module.DebugSectionDescriptor(BytesIO(data), f".{name}", 0, len(data), 0)

    every = signature(module.DWARFInfo).parameters
    given: dict[str, Any] = {name: None for name in every if name != "config"}
    for name in ("debug_info", "debug_abbrev", "debug_str"):
        given[f"{name}_sec"] = described(name)
    config = module.DwarfConfig(little_endian=True, machine_arch="x64", default_address_size=8)
    return module.DWARFInfo(config, **given)


def _names(entry: Any) -> Iterator[str]:
    """Yields the names under which a function is known."""
    for attribute in ("DW_AT_linkage_name", "DW_AT_MIPS_linkage_name", "DW_AT_name"):
        if attribute in entry.attributes:
            yield _text(entry, attribute)


def _text(entry: Any, attribute: str) -> str:
    value = entry.attributes[attribute].value if attribute in entry.attributes else b""
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _type(entry: Any, deepest: int) -> str:
    """Returns the type that an entry refers to, as C++ writes it."""
    if "DW_AT_type" not in entry.attributes:
        return "void"
    if not deepest:
        return ""
    type = entry.get_DIE_from_attribute("DW_AT_type")
    match type.tag:
        case "DW_TAG_pointer_type":
            inner = _type(type, deepest - 1)
            return inner and f"{inner} *"
        case "DW_TAG_const_type" | "DW_TAG_volatile_type" | "DW_TAG_restrict_type":
            return _type(type, deepest - 1)
        case "DW_TAG_typedef":
            return _type(type, deepest - 1)
        case _:
            return _text(type, "DW_AT_name")
