"""Reads what clang writes into LLVM IR about OpenCL kernels: their parameters as the source
declares them, and the sizes of work-groups that they require or prefer."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

PARAMETER_FACTS = ("addr_space", "access_qual", "type", "type_qual", "name")

_KERNEL = re.compile(r"^define [^@\n]*\b(?:spir|ptx)_kernel\b[^@\n]*@(\w+)\((.*)$", re.MULTILINE)
_ATTACHED = re.compile(r"!(\w+) !(\d+)")
_NODE = re.compile(r"^!(\d+) = (?:distinct )?!\{(.*)\}$", re.MULTILINE)
_ITEM = re.compile(r'!"((?:[^"\\]|\\.)*)"|i32 (-?\d+)|(<[^>]*>|\w+) (?:undef|poison)')

SIZES = ("reqd_work_group_size", "work_group_size_hint")
TYPE_HINT = "vec_type_hint"


class DeclaredParameter(msgspec.Struct, frozen=True):
    """A kernel's parameter as declared: the LLVM number of its address space (0: private, 1:
    global, 2: constant, 3: local), its access qualifier ("none" for what is no image), its type and
    the qualifiers of that, and its name, empty where the program was built without names."""

    space: int
    access: str
    type: str
    qualifiers: str
    name: str = ""


class DeclaredKernel(msgspec.Struct, frozen=True):
    """A kernel as declared: its parameters, and its attributes by name; `shows_names` is whether
    programs can ask for its parameters."""

    parameters: tuple[DeclaredParameter, ...] = ()
    sizes: dict[str, tuple[int, int, int]] = {}
    type_hint: str = ""
    shows_names: bool = True

    @property
    def attributes(self) -> str:
        """Returns its attributes as OpenCL writes them, separated by blanks."""
        sizes = [f"{name}({','.join(map(str, three))})" for name, three in self.sizes.items()]
        return " ".join([*sizes, *([f"{TYPE_HINT}({self.type_hint})"] if self.type_hint else [])])


def declared_kernels(ir: str) -> dict[str, DeclaredKernel]:
    """Returns the kernels of a module of LLVM IR by their names."""
    nodes = {number: list(_items(text)) for number, text in _NODE.findall(ir)}
    found: dict[str, DeclaredKernel] = {}
    for kernel, rest in _KERNEL.findall(ir):
        facts = {name: nodes.get(number, []) for name, number in _ATTACHED.findall(rest)}
        columns = [facts.get(f"kernel_arg_{name}", []) for name in PARAMETER_FACTS]
        if not columns[-1]:
            columns[-1] = [""] * len(columns[0])
        found[kernel] = DeclaredKernel(
            tuple(
                DeclaredParameter(int(space), str(access), str(type), str(qualifiers), str(name))
                for space, access, type, qualifiers, name in zip(*columns, strict=True)
            ),
            {n: _three(facts[n]) for n in SIZES if n in facts},
            _hinted(*facts[TYPE_HINT]) if facts.get(TYPE_HINT) else "",
        )
    return found


def _items(text: str) -> Iterator[str | int]:
    """Yields the strings, integers and types of a node."""
    for quoted, number, type in _ITEM.findall(text):
        if number:
            yield int(number)
        else:
            yield _vector(type) if type else quoted


def _vector(type: str) -> str:
    """Returns a type of LLVM IR in OpenCL's words."""
    names = {"i8": "char", "i16": "short", "i32": "int", "i64": "long"}
    found = re.fullmatch(r"<(\d+) x (\w+)>", type)
    count, element = (found[1], found[2]) if found else ("", type)
    return f"{names.get(element, element)}{count}"


def _hinted(type: str | int, is_signed: str | int) -> str:
    """Returns the type of a hint, which LLVM IR has without its sign."""
    has_sign = str(type).startswith(("char", "short", "int", "long"))
    return f"{'u' if has_sign and not is_signed else ''}{type}"


def _three(values: list[str | int]) -> tuple[int, int, int]:
    x, y, z = (*map(int, values), 1, 1)[:3]
    return x, y, z
