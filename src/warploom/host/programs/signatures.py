"""The parameters of kernels as their C++ source declares them: names, types, the text of each.

The mangled name of a C++ kernel has the types; the declaration in the source has the names, and
for an `extern "C"` kernel the types as well. What neither has stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warploom.core.mangled import read_symbol
from warploom.core.types import Kind
from warploom.host.programs.cpp_types import Class, CppType, read_type
from warploom.host.programs.debug_types import debug_parameters
from warploom.ptx.module import Variable

_BLANKS = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_WORD = re.compile(r"\s*([A-Za-z_]\w*)\s*(\(?)")
_DECLARED = re.compile(r"(?P<type>.*?[\s*&])(?P<name>[A-Za-z_]\w*)\s*(?P<dims>(?:\[[^\]]*\]\s*)*)")
ATTRIBUTES = frozenset(
    ["__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__attribute__", "__block_size__"]
)
"""Words before the name of a kernel that have parentheses of their own."""

_OPEN, _CLOSED = "([{<", ")]}>"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel's parameter: `text` as declared ("float *y", empty where unknown), its name, and
    its type, None where that is unknown or not arithmetic."""

    text: str = ""
    name: str = ""
    type: CppType | None = None


def signature_of(
    symbol: str, parameters: Sequence[Variable], source: str, ptx: str = ""
) -> tuple[Parameter, ...]:
    """Returns the declared parameters of a kernel, one for each that PTX declares: as its source,
    the debug information in the PTX, and its mangled name give them."""
    read, count = read_symbol(symbol), len(parameters)
    types = read.parameters
    if types is None or len(types) != count:
        types = None
    simple = read.name.rpartition("::")[2]
    written = [d for d in _declarations(source, simple) if len(d) == count]
    fitting = {tuple(d) for d in written if types is None or _agree(d, types)}
    if len(fitting) == 1:
        [declared] = fitting
    else:
        declared = _debugged(symbol, ptx, count)
    if types is not None:
        mangled = [Parameter(_spaced(text), "", read_type(text)) for text in types]
        declared = [
            Parameter(d.text or m.text, d.name, m.type)
            for d, m in zip(declared, mangled, strict=True)
        ]
    return tuple(map(_checked, declared, parameters))


def _debugged(symbol: str, ptx: str, count: int) -> tuple[Parameter, ...]:
    """Returns the parameters as debug information has them, unknown ones where it does not."""
    declared = debug_parameters(ptx, symbol) or ()
    if len(declared) != count:
        return (Parameter(),) * count
    return tuple(
        Parameter(f"{type}{'' if type.endswith('*') else ' '}{name}".strip(), name, read_type(type))
        for type, name in declared
    )


def _agree(declared: Sequence[Parameter], types: Sequence[str]) -> bool:
    """Returns whether a declaration may have these types: where both are known, they are equal."""
    known = [(d.type, read_type(text)) for d, text in zip(declared, types, strict=True)]
    return all(None in pair or pair[0] == pair[1] for pair in known)


def _spaced(text: str) -> str:
    """Returns a type as it is written by hand: "float *" for "float*"."""
    return re.sub(r"(?<=\w)\*", " *", text)


def _checked(declared: Parameter, parameter: Variable) -> Parameter:
    """Returns the declaration, without its type where the parameter in PTX cannot have that one."""
    type = declared.type
    if type is None:
        return declared
    if parameter.shape or parameter.vector > 1:
        fits = False
    elif type.pointers:
        fits = parameter.type.is_integer and parameter.size == 8
    else:
        is_float = parameter.type.kind is Kind.FLOAT
        fits = is_float == (type.element.kind is Class.FLOAT)
        fits = fits and parameter.size == type.element.bytes
    return declared if fits else Parameter(declared.text, declared.name)


# ---- declarations in the source -----------------------------------------------------------------


def _declarations(source: str, name: str) -> Iterator[list[Parameter]]:
    """Yields the parameters of each kernel of that name that the text declares."""
    if "__global__" not in source:
        return
    text = _BLANKS.sub(" ", source)
    for found in re.finditer(r"\b__global__\b", text):
        start = _parameters_at(text, found.end(), name)
        stop = _closing(text, start) if start else 0
        if stop:
            inside = text[start : stop - 1]
            parts = [" ".join(part.split()) for part in _parts(inside)]
            yield [_parameter(part) for part in parts if part and part != "void"]


def _parameters_at(text: str, at: int, name: str) -> int:
    """Returns the index of the first parameter of a declaration whose attributes begin there; 0 if
    it is of another name."""
    while word := _WORD.match(text, at):
        at = word.end()
        if not word[2]:
            continue
        if word[1] not in ATTRIBUTES:
            return at if word[1] == name else 0
        at = _closing(text, at)
        if not at:
            break
    return 0


def _closing(text: str, at: int) -> int:
    """Returns the position after the parenthesis that closes the one before `at`; 0 where none
    does."""
    depth = 1
    for found in re.compile(r"[()]").finditer(text, at):
        depth += 1 if found[0] == "(" else -1
        if not depth:
            return found.end()
    return 0


def _parts(text: str) -> list[str]:
    """Returns the text cut at its commas, but for those in brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in _OPEN) - (character in _CLOSED)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _parameter(text: str) -> Parameter:
    """Returns one parameter's declaration, without its default value."""
    text = text.partition("=")[0].strip()
    found = _DECLARED.fullmatch(text)
    if found is None or read_type(found["name"]) is not None:  # such as "unsigned int"
        return Parameter(text, "", read_type(text))
    pointers = "*" * found["dims"].count("[")
    return Parameter(text, found["name"], read_type(found["type"] + pointers))
