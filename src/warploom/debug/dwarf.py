"""Functions, variables and types of a PTX text, from the DWARF in its debug sections.

Registers stand in locations as numbers whose bytes are the characters of their names; state spaces
as address classes (CUDA's `cuda_dwarf.h`; NVPTX backend of LLVM, `NVPTXDwarfDebug`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from inspect import signature
from io import BytesIO
from typing import Any

from warploom.debug.sections import Sections, read_sections
from warploom.debug.types import (
    Arithmetic,
    Array,
    Encoding,
    Enumeration,
    Member,
    Pointer,
    Structure,
    Type,
)
from warploom.isa.instruction import Space

SPACES = {
    4: Space.CONST,
    5: Space.GLOBAL,
    6: Space.LOCAL,
    7: Space.PARAM,
    8: Space.SHARED,
}
"""State spaces by address class; what has another class is a generic address or a register."""

_ENCODINGS = {
    2: Encoding.BOOLEAN,
    4: Encoding.FLOAT,
    5: Encoding.SIGNED,
    6: Encoding.CHARACTER,
    7: Encoding.UNSIGNED,
    8: Encoding.UNSIGNED,
    16: Encoding.CHARACTER,
}
"""By DW_ATE code (DWARF, "Encoding attribute values")."""

DEEPEST = 32
"""A type that is nested more deeply is not read: pointers lead back to where they came from."""


@dataclass(frozen=True)
class Operation:
    """An operation of a location, by its name in DWARF."""

    name: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Located:
    """A location that holds for the lines of the text from `start` up to `end`."""

    start: int
    end: int
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Variable:
    """Describes a local variable or a parameter. `space` is None where the debug information has no
    address class; `constant` is the value of a variable that has no location."""

    name: str
    type: Type | None
    locations: tuple[Located, ...]
    space: Space | None
    is_parameter: bool
    line: int = 0
    constant: int | None = None


@dataclass
class Scope:
    """A function, a block of one, or a copy of an inlined function: what is declared in it for the
    lines of the text from `start` up to `end`."""

    name: str
    start: int
    end: int
    variables: list[Variable] = field(default_factory=list[Variable])
    inner: list[Scope] = field(default_factory=list["Scope"])
    inlined: bool = False

    def at(self, line: int) -> Iterator[Scope]:
        """Yields the scopes around a line, the outermost first."""
        if self.start <= line < self.end:
            yield self
            for scope in self.inner:
                yield from scope.at(line)


@dataclass(frozen=True)
class Debugged:
    """Holds the debug sections of a text. `variables` are those of the module; `symbols` the
    names of PTX variables by the numbers that stand for them in locations."""

    scopes: tuple[Scope, ...]
    variables: tuple[Variable, ...]
    symbols: dict[int, str]

    def at(self, line: int) -> list[Scope]:
        """Returns the scopes around a line of the text, the outermost first."""
        return [scope for function in self.scopes for scope in function.at(line)]


NOTHING = Debugged((), (), {})


@lru_cache(maxsize=8)
def read_debug_info(text: str) -> Debugged:
    """Returns what the debug sections of a text hold, nothing where it has none that can be
    read."""
    if ".debug_info" not in text:
        return NOTHING
    sections = read_sections(text)
    try:
        return _Reader(sections).read()
    except Exception:  # of a text that says it is DWARF and is not
        return NOTHING


class _Reader:
    def __init__(self, sections: Sections) -> None:
        self._sections, self._types = sections, dict[int, Type | None]()
        self._dwarf = _opened(sections.content)
        self._locations = sections.content.get(".debug_loc", b"")

    def read(self) -> Debugged:
        scopes: list[Scope] = []
        variables: list[Variable] = []
        for unit in self._dwarf.iter_CUs():
            module = import_module("elftools.dwarf.dwarf_expr")
            self._parser = module.DWARFExprParser(unit.structs)
            for entry in unit.get_top_DIE().iter_children():
                self._declared(entry, scopes, variables)
        return Debugged(tuple(scopes), tuple(variables), self._sections.variables)

    def _declared(self, entry: Any, scopes: list[Scope], variables: list[Variable]) -> None:
        """Reads what a unit or a namespace declares."""
        if entry.tag == "DW_TAG_subprogram" and "DW_AT_low_pc" in entry.attributes:
            scopes.append(self._scope(entry))
        elif entry.tag == "DW_TAG_variable":
            variables.append(self._variable(entry))
        elif entry.tag == "DW_TAG_namespace":
            for inner in entry.iter_children():
                self._declared(inner, scopes, variables)

    def _scope(self, entry: Any, parent: Scope | None = None) -> Scope:
        low, high = (entry.attributes.get(f"DW_AT_{end}_pc") for end in ("low", "high"))
        start, end = (parent.start, parent.end) if parent else (0, 0)
        if low is not None and high is not None:
            start, end = low.value, high.value
            end += 0 if high.form == "DW_FORM_addr" else start
        scope = Scope(_name(entry), start, end)
        scope.inlined = entry.tag == "DW_TAG_inlined_subroutine"
        for inner in entry.iter_children():
            if inner.tag in ("DW_TAG_variable", "DW_TAG_formal_parameter"):
                scope.variables.append(self._variable(inner))
            elif inner.tag in ("DW_TAG_lexical_block", "DW_TAG_inlined_subroutine"):
                scope.inner.append(self._scope(inner, scope))
        return scope

    def _variable(self, entry: Any) -> Variable:
        attributes = _origin(entry).attributes | entry.attributes
        space = attributes.get("DW_AT_address_class")
        constant = attributes.get("DW_AT_const_value")
        line = attributes.get("DW_AT_decl_line")
        return Variable(
            _name(entry),
            self._type_of(_origin(entry) if "DW_AT_type" not in entry.attributes else entry),
            tuple(self._located(attributes.get("DW_AT_location"))),
            SPACES.get(space.value) if space else None,
            entry.tag == "DW_TAG_formal_parameter",
            line.value if line else 0,
            constant.value if constant and isinstance(constant.value, int) else None,
        )

    def _located(self, location: Any) -> Iterator[Located]:
        if location is None:
            return
        if isinstance(location.value, int):
            yield from self._location_list(location.value)
        else:
            yield Located(0, 1 << 62, self._operations(bytes(location.value)))

    def _location_list(self, at: int) -> Iterator[Located]:
        """Yields a location list (DWARF 2 to 4, "Location Lists")."""
        data = self._locations
        while at + 16 <= len(data):
            start, end = (int.from_bytes(data[at + n : at + n + 8], "little") for n in (0, 8))
            at += 16
            if not start and not end:
                return
            size = int.from_bytes(data[at : at + 2], "little")
            yield Located(start, end, self._operations(data[at + 2 : at + 2 + size]))
            at += 2 + size

    def _operations(self, expression: bytes) -> tuple[Operation, ...]:
        parsed = self._parser.parse_expr(list(expression))
        return tuple(Operation(each.op_name, tuple(each.args)) for each in parsed)

    # ---- types ----------------------------------------------------------------------------------

    def _type_of(self, entry: Any, depth: int = 0) -> Type | None:
        """Returns the type that an entry refers to."""
        if "DW_AT_type" not in entry.attributes or depth > DEEPEST:
            return None
        found = entry.get_DIE_from_attribute("DW_AT_type")
        if found.offset not in self._types:
            self._types[found.offset] = None
            self._types[found.offset] = self._type(found, depth)
        return self._types[found.offset]

    def _type(self, entry: Any, depth: int) -> Type | None:
        size = entry.attributes.get("DW_AT_byte_size")
        match entry.tag:
            case "DW_TAG_base_type":
                code = entry.attributes["DW_AT_encoding"].value
                return Arithmetic(_name(entry), size.value, _ENCODINGS.get(code, Encoding.UNSIGNED))
            case "DW_TAG_pointer_type":
                return Pointer(self._type_of(entry, depth + 1))
            case "DW_TAG_reference_type" | "DW_TAG_rvalue_reference_type":
                return Pointer(self._type_of(entry, depth + 1), reference=True)
            case "DW_TAG_array_type":
                return self._array(entry, depth)
            case "DW_TAG_structure_type" | "DW_TAG_class_type" | "DW_TAG_union_type":
                members = tuple(self._members(entry, depth))
                selector, choices = self._variants(entry, depth)
                whole = size.value if size else 0
                return Structure(_name(entry), whole, members, selector, choices)
            case "DW_TAG_enumeration_type":
                names = {
                    inner.attributes["DW_AT_const_value"].value: _name(inner)
                    for inner in entry.iter_children()
                    if inner.tag == "DW_TAG_enumerator"
                }
                return Enumeration(_name(entry), size.value if size else 4, names)
            case _:  # typedef, const, volatile and the like
                return self._type_of(entry, depth + 1)

    def _array(self, entry: Any, depth: int) -> Type | None:
        made = self._type_of(entry, depth + 1)
        counts = [
            inner.attributes["DW_AT_upper_bound"].value + 1
            if "DW_AT_upper_bound" in inner.attributes
            else inner.attributes["DW_AT_count"].value
            if "DW_AT_count" in inner.attributes
            else 0
            for inner in entry.iter_children()
            if inner.tag == "DW_TAG_subrange_type"
        ]
        for count in reversed(counts):
            made = None if made is None else Array(made, count)
        return made

    def _variants(self, entry: Any, depth: int) -> tuple[Member | None, dict[int, Member]]:
        """Returns the member that selects one of several others, and those by its values."""
        for part in entry.iter_children():
            if part.tag == "DW_TAG_variant_part" and "DW_AT_discr" in part.attributes:
                place = part.get_DIE_from_attribute("DW_AT_discr")
                choices = {
                    variant.attributes["DW_AT_discr_value"].value: member
                    for variant in part.iter_children()
                    if "DW_AT_discr_value" in variant.attributes
                    for member in self._members(variant, depth)
                }
                selector = next(
                    (m for m in self._members(entry, depth) if m.name == _name(place)), None
                )
                return selector, choices
        return None, {}

    def _members(self, entry: Any, depth: int) -> Iterator[Member]:
        for inner in entry.iter_children():
            if inner.tag not in ("DW_TAG_member", "DW_TAG_inheritance"):
                continue
            at = inner.attributes.get("DW_AT_data_member_location")
            type = self._type_of(inner, depth + 1)
            if type is None or "DW_AT_external" in inner.attributes:
                continue
            bits, bit = (inner.attributes.get(f"DW_AT_{n}") for n in ("bit_size", "bit_offset"))
            low = type.size * 8 - bit.value - bits.value if bits and bit else 0
            name = "" if inner.tag == "DW_TAG_inheritance" else _name(inner)
            yield Member(name, type, self._offset(at), low, bits.value if bits else 0)

    def _offset(self, at: Any) -> int:
        if at is None:
            return 0
        if isinstance(at.value, int):
            return at.value
        return self._operations(bytes(at.value))[0].arguments[0]


def _origin(entry: Any) -> Any:
    """Returns the entry of which a copy of an inlined function, or of what is in it, is one."""
    for attribute in ("DW_AT_abstract_origin", "DW_AT_specification"):
        if attribute in entry.attributes:
            return _origin(entry.get_DIE_from_attribute(attribute))
    return entry


def _name(entry: Any) -> str:
    """Returns the name of an entry as its source has it; what is mangled is read."""
    from warploom.core.mangled import read_symbol

    found = entry.attributes.get("DW_AT_name") or _origin(entry).attributes.get("DW_AT_name")
    text = found.value.decode(errors="replace") if found is not None else ""
    return read_symbol(text).name if text.startswith("_Z") else text


def _opened(sections: dict[str, bytes]) -> Any:
    """Returns pyelftools' reader of sections."""
    module = import_module("elftools.dwarf.dwarfinfo")

    def described(name: str) -> Any:
        data = sections.get(f".{name}", b"")
        return module.DebugSectionDescriptor(BytesIO(data), f".{name}", 0, len(data), 0)

    every = signature(module.DWARFInfo).parameters
    given: dict[str, Any] = {name: None for name in every if name != "config"}
    for name in ("debug_info", "debug_abbrev", "debug_str", "debug_loc"):
        given[f"{name}_sec"] = described(name)
    config = module.DwarfConfig(little_endian=True, machine_arch="x64", default_address_size=8)
    return module.DWARFInfo(config, **given)
