"""Linking for clients: PTX texts with their names become one PTX text."""

from __future__ import annotations

from collections.abc import Sequence

from warploom.ptx.link import link
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify


def linked(parts: Sequence[tuple[str, str]]) -> str:
    """The text of all parts as one; PtxError or LinkError where that cannot be."""
    if len(parts) == 1:
        return parts[0][1]
    modules = [parse(text, name) for name, text in parts]
    for module in modules:
        verify(module)
    return link(modules).text
