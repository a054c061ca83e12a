"""The settings of a sampler that a PTX text initializes: `{ addr_mode_0 = wrap, ... }`.

Source: PTX ISA, "Texture Sampler and Surface Types".
"""

from __future__ import annotations

from warploom.isa.instruction import Immediate
from warploom.ptx.constants import integer
from warploom.ptx.cursor import Cursor
from warploom.texture.descriptors import (
    ADDRESS_MODES,
    LINEAR,
    MODES_AT,
    NORMALIZED,
    SAMPLER_TAG,
)

FILTERS = ("nearest", "linear")
MODES = tuple(f"addr_mode_{axis}" for axis in range(3))
COORDINATES = ("normalized_coords", "force_unnormalized_coords")


def sampler_settings(cursor: Cursor) -> Immediate:
    """Return the settings in braces, as the word that a sampler is (`texture.descriptors`)."""
    at, word = cursor.at, SAMPLER_TAG | NORMALIZED
    cursor.expect("{")
    while True:
        name_at = cursor.at
        name = cursor.name("a setting such as filter_mode")
        cursor.expect("=")
        if name in MODES:
            word |= _chosen(cursor, ADDRESS_MODES) << (MODES_AT + 4 * MODES.index(name))
        elif name == "filter_mode":
            word |= LINEAR * _chosen(cursor, FILTERS)
        elif name in COORDINATES:
            normalized = bool(integer(cursor, "0 or 1")) is (name == "normalized_coords")
            word = word | NORMALIZED if normalized else word & ~NORMALIZED
        else:
            known = ", ".join((*COORDINATES, "filter_mode", *MODES))
            raise cursor.error(
                f"`{name}` is not a sampler setting; the settings are {known}", name_at
            )
        if cursor.accept("}"):
            return Immediate(word, 0, cursor.span(at, cursor.at))
        cursor.expect(",")


def _chosen(cursor: Cursor, names: tuple[str, ...]) -> int:
    at = cursor.at
    name = cursor.name(f"one of {', '.join(names)}")
    if name not in names:
        raise cursor.error(f"`{name}` is not one of {', '.join(names)}", at)
    return names.index(name)
