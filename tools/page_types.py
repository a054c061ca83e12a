"""Makes `web/src/schema.ts`: the TypeScript types of all that the page reads.

python tools/page_types.py            writes it
python tools/page_types.py --check    says whether it is current
"""

from __future__ import annotations

import dataclasses
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec

from warploom.cost.fields import FIELDS
from warploom.machine import lanes_off, placement
from warploom.observe import schema, trace
from warploom.report.terms import CODE_PHRASES, PHRASES, meanings
from warploom.ui import schema as page

TARGET = Path(__file__).parent.parent / "web" / "src" / "schema.ts"

NAMES = {int: "number", str: "string", bool: "boolean", float: "number", type(None): "null"}


def page_types() -> str:
    """The text of the file."""
    found = [lanes_off.LanesOff, lanes_off.ReconvergencePoint, placement.ResidentKernel]
    for module in (schema, trace, page):
        made = (v for v in vars(module).values() if isinstance(v, type))
        own = (v for v in made if issubclass(v, msgspec.Struct) and v.__module__ == module.__name__)
        found += [v for v in own if v is not schema.TraceData]  # its fields are `trace.Trace`'s
    parts = ["// Made by tools/page_types.py from the Python schema; do not edit.", ""]
    parts.append(f"export const VERSION = {schema.VERSION};")
    parts.append(f"export const DIVERGED = {schema.DIVERGED};")
    parts.append(f"export const MET = {schema.MET};")
    costs = ", ".join(f'"{name}"' for name in FIELDS[: len(schema.NO_COST)])
    parts.append(f"export const COSTS = [{costs}] as const;")
    parts.append(f"export const PHRASES: Words = {json.dumps(PHRASES, indent=2)};")
    parts.append(f"export const CODE_PHRASES: Words = {json.dumps(CODE_PHRASES, indent=2)};")
    glossary = json.dumps(meanings(), indent=2)
    parts.append(f"export const GLOSSARY: Readonly<Record<string, string>> = {glossary};")
    parts.append("type Words = Readonly<Record<string, Readonly<Record<string, string>>>>;")
    parts.append("")
    parts += [_interface(one) for one in found if not one.__name__.startswith("_")]
    return "\n".join(parts)


def _interface(made: type[Any]) -> str:
    hints = typing.get_type_hints(made)
    if dataclasses.is_dataclass(made):
        names = [field.name for field in dataclasses.fields(made)]
    else:
        names = list(made.__struct_fields__)
    lines = [f"  {name}: {_type(hints[name])};" for name in names]
    return "\n".join([f"export interface {made.__name__} {{", *lines, "}", ""])


def _type(hint: Any) -> str:
    if hint in NAMES:
        return NAMES[hint]
    if hint is bytes:
        return "Uint8Array"
    origin, given = get_origin(hint), get_args(hint)
    if origin is tuple:
        if given[-1] is Ellipsis:
            return f"readonly {_bracketed(given[0])}[]"
        return f"readonly [{', '.join(map(_type, given))}]"
    if origin is dict:
        return f"Readonly<Record<{', '.join(map(_type, given))}>>"
    if origin in (types.UnionType, typing.Union):
        return " | ".join(map(_type, given))
    return hint.__name__


def _bracketed(hint: Any) -> str:
    text = _type(hint)
    return f"({text})" if " " in text else text


def main() -> None:
    if "--check" in sys.argv:
        sys.exit(
            TARGET.read_text("utf-8") != page_types()
            and f"{TARGET} is not current: run this script"
        )
    TARGET.write_text(page_types(), "utf-8")


if __name__ == "__main__":
    main()
